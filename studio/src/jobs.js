// A long thing under way: how far it is, and a way to stop it.

import { send } from "./api.js";
import { plain, seconds } from "./format.js";
import { icon } from "./icons.js";
import { attempt, store } from "./session.js";

export function running(kind, state = store.state) {
  const job = state.jobs[kind];
  return job?.state === "running" ? job : null;
}

/** The box of a running job; a network's training can also be ended early with what it learnt. */
export function jobBox(job, { keep = false } = {}) {
  const value = job.done === null ? "" : ` value="${job.done}"`;
  const finish = keep ? `<button class="button" data-act="keep">Finish now</button>` : "";
  return `<div class="job" role="group" aria-label="${plain(job.words)}">
    <div class="row apart"><span>${plain(job.words)}</span><small>${seconds(job.seconds)}</small></div>
    <progress max="1"${value} aria-label="${plain(job.words)}"></progress>
    <div class="row"><button class="button" data-act="stop">${icon("stop")}Stop</button>${finish}</div>
  </div>`;
}

export function stopJob(kind, keep = false) {
  const job = running(kind);
  if (job) attempt(send("POST", `jobs/${job.id}/cancel`, { keep }));
}
