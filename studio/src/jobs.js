// Long things under way, above the results whatever tab is open: how far they are, and how to stop them.

import { send } from "./api.js";
import { $, fill, onAct } from "./dom.js";
import { plain, seconds, sentence } from "./format.js";
import { icon } from "./icons.js";
import { attempt, store } from "./session.js";

export function running(kind, state = store.state) {
  const job = state.jobs[kind];
  return job?.state === "running" ? job : null;
}

/** Show the running jobs; a network's training can also be ended early with what it learnt. */
export function startJobs() {
  const strip = $("#jobs");
  onAct(strip, {
    stop: ({ dataset }) => stop(dataset.kind, false),
    keep: ({ dataset }) => stop(dataset.kind, true),
  });
  store.watch(["jobs", "methods", "gone"], (state) => {
    const boxes = ["train", "export"].map((kind) => running(kind, state)).filter(Boolean);
    strip.hidden = !boxes.length || state.gone;
    fill(strip, boxes.map((job) => jobBox(job, state.methods)).join(""));
  });
}

function jobBox(job, methods) {
  const value = job.done === null ? "" : ` value="${job.done}"`;
  const network = job.kind === "train" && methods.find((method) => method.name === job.method)?.network;
  const finish = network ? `<button class="button" data-act="keep" data-kind="${job.kind}">Finish now</button>` : "";
  const words = plain(sentence(job.words).slice(0, -1));
  return `<div class="job" role="group" aria-label="${words}">
    <div class="row apart"><span>${words}</span><small>${seconds(job.seconds)}</small></div>
    <progress max="1"${value} aria-label="${words}"></progress>
    <div class="row">${finish}<button class="button" data-act="stop" data-kind="${job.kind}">${icon("stop")}Stop</button></div>
  </div>`;
}

function stop(kind, keep) {
  const job = running(kind);
  if (job) attempt(send("POST", `jobs/${job.id}/cancel`, { keep }));
}
