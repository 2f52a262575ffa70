// Points that a person answers: those that teach most ("Look next"), and random ones ("Verify").

import { send } from "./api.js";
import { $, fill, message, onAct } from "./dom.js";
import { count, hectares, many, percent, plain } from "./format.js";
import { icon } from "./icons.js";
import { running } from "./jobs.js";
import { attempt, change, KINDS, mapOf, store, WORDS } from "./session.js";

const SUGGESTED = 10;

let fly = () => {};

export function startAskedPanels(flyTo) {
  fly = flyTo;
  const common = {
    ...Object.fromEntries(KINDS.map((kind) => [kind, () => answer(kind)])),
    next: () => step(1),
    back: () => step(-1),
    go: (button) => go(Number(button.dataset.id)),
  };
  onAct($("#panel-next"), { ...common, suggest });
  onAct($("#panel-verify"), {
    ...common,
    draw: () => draw(Number($("#sample-size")?.value ?? 60)),
    end: () => attempt(send("DELETE", "verification")).then((found) => found && take("verification", found)),
  });
  store.watch(["suggestions", "maps", "jobs", "settings", "current", "gone", "labels"], renderNext);
  store.watch(["verification", "maps", "jobs", "settings", "current", "gone"], renderVerify);
}

/** The points of the open tab, or none. */
export function askedPoints(state = store.state) {
  if (state.tab === "next") return state.suggestions.points;
  if (state.tab === "verify" && state.verification.state === "asking") return state.verification.points;
  return [];
}

export function currentPoint(state = store.state) {
  return askedPoints(state).find((point) => point.id === state.current) ?? null;
}

function take(name, value) {
  store.set({ [name]: value });
}

export async function suggest() {
  store.set({ tab: "next" });
  const found = await attempt(send("POST", "suggestions", { size: SUGGESTED }));
  if (!found) return;
  take("suggestions", found);
  go(found.points.find((point) => !point.answer)?.id ?? found.points[0]?.id);
}

async function draw(size) {
  const found = await attempt(send("POST", "verification", { size }));
  if (found) take("verification", found);
}

/** Fly to a point. */
export function go(id) {
  const point = askedPoints().find((known) => known.id === id);
  if (!point) return;
  store.set({ current: id });
  fly(point);
}

/** Fly to the next point that has no answer, or to the next at all. */
export function step(by) {
  const points = askedPoints();
  if (!points.length) return;
  const at = points.findIndex((point) => point.id === store.state.current);
  const around = points.map((_, i) => points[(((at + by * (i + 1)) % points.length) + points.length) % points.length]);
  go((around.find((point) => !point.answer) ?? around[0]).id);
}

/** Answer the point that is asked about and go on at once; what could not be kept is asked again. */
export async function answer(kind) {
  const point = currentPoint();
  if (!point) return;
  const { tab } = store.state;
  const name = tab === "next" ? "suggestions" : "verification";
  mark(name, point.id, kind);
  if (askedPoints().some((other) => !other.answer)) step(1);
  const kept =
    tab === "next"
      ? await change("strokes", { kind, origin: "suggestion", pixels: [[point.row, point.column]] })
      : await attempt(send("PUT", `verification/${point.id}`, { answer: kind }));
  if (!kept) mark(name, point.id, point.answer);
  else if (tab === "verify") take("verification", withLater(kept));
}

function mark(name, id, given) {
  const all = store.state[name];
  const points = all.points.map((point) => (point.id === id ? { ...point, answer: given } : point));
  take(name, { ...all, points });
}

/** What the server holds, and answers given since, which are on their way to it. */
function withLater(found) {
  const given = new Map(store.state.verification.points.map((point) => [point.id, point.answer]));
  return { ...found, points: found.points.map((point) => ({ ...point, answer: point.answer ?? given.get(point.id) ?? null })) };
}

function dots(points, current) {
  const items = points.map(
    (point, i) =>
      `<button class="${point.answer ?? ""}" data-act="go" data-id="${point.id}" aria-label="Point ${i + 1}${point.answer ? `, ${WORDS[point.answer]}` : ", not answered"}"${point.id === current ? ' aria-current="true"' : ""}></button>`,
  );
  return `<div class="dots">${items.join("")}</div>`;
}

function card(points, current, label, more = "") {
  const at = points.findIndex((point) => point.id === current);
  if (at < 0) {
    return `<button class="button primary wide" data-act="next">${icon("target")}Go to the first <kbd>N</kbd></button>`;
  }
  const { answer: given } = points[at];
  const buttons = KINDS.map(
    (kind, i) =>
      `<button class="button answer-${kind}" data-act="${kind}" aria-pressed="${given === kind}">${icon(kind)}${["Yes", "No", "Don't know"][i]} <kbd>${i + 1}</kbd></button>`,
  );
  return `<div class="asked">
    <div class="row apart"><small>Point ${at + 1} of ${points.length}</small><small>${more}</small></div>
    <p class="question">Is this ${plain(label)}?</p>
    <div class="answers">${buttons.join("")}</div>
    <div class="row fill"><button class="button" data-act="back">${icon("back")}Back</button><button class="button" data-act="next">Next${icon("next")} <kbd>N</kbd></button></div>
  </div>`;
}

const NEXT_WORDS = `<h2>Where should I look next?</h2>
  <p class="note">Places that may be the class and are far from your labels. A few answers here teach more than many
  labels elsewhere.</p>`;

function renderNext(state) {
  const { suggestions, settings, gone } = state;
  const panel = $("#panel-next");
  const { points } = suggestions;
  const trained = mapOf("run", state);
  const parts = [`<section>${NEXT_WORDS}</section>`];
  if (!trained) {
    parts.push(`<section>${message("", "Needs a learnt map: label ten pixels of the class, and it is made.", "help")}</section>`);
  } else if (!points.length) {
    parts.push(`<section><button class="button primary wide" data-act="suggest"${gone ? " disabled" : ""}>${icon("target")}Suggest ${SUGGESTED} places</button></section>`);
  } else {
    const open = points.filter((point) => !point.answer).length;
    const point = points.find((known) => known.id === state.current);
    const more = point ? `probability ${point.probability.toFixed(2)}` : "";
    const done = open ? "" : `<div class="message">${icon("check")}<p>All answered. The next map learns from them.</p></div>`;
    const again = `<button class="button wide${open ? "" : " primary"}" data-act="suggest"${gone || running("train", state) ? " disabled" : ""}>${icon("target")}Suggest others</button>`;
    parts.push(`<section>${dots(points, state.current)}${card(points, state.current, settings.label, more)}</section>`);
    parts.push(`<section>${done}${again}</section>`);
  }
  fill(panel, parts.join(""));
}

const VERIFY_WORDS = `<h2>How right is the map?</h2>
  <p class="note">Random points, from what is mapped and what is not. The map is hidden, so that it cannot sway you; from
  the answers follow precision, recall and area, whatever the labels were like.</p>`;

function renderVerify(state) {
  const { verification, settings, gone } = state;
  const parts = [`<section>${VERIFY_WORDS}</section>`];
  if (!mapOf("run", state)) {
    parts.push(`<section>${message("", "Needs a learnt map: label ten pixels of the class, and it is made.", "help")}</section>`);
  } else if (verification.state === "preparing") {
    parts.push(`<section><p>The map is written first, as it will be exported. Then the points are drawn.</p><progress aria-label="The map is written"></progress></section>`);
  } else if (verification.state === "asking") {
    const { points, result, stale } = verification;
    if (stale) parts.push(`<section>${message("check", "The export has changed since these points were drawn: draw anew to verify it.")}</section>`);
    const open = points.some((point) => !point.answer);
    const asked = `<section>${dots(points, state.current)}${card(points, state.current, settings.label)}</section>`;
    const told = result ? resultMarkup(result, open) : "";
    parts.push(open ? asked + told : told + asked); // what was asked for first, once all is answered
    parts.push(`<section><div class="row fill">${sizeAndDraw(gone, "Draw anew")}<button class="button" data-act="end">End</button></div></section>`);
  } else {
    parts.push(`<section>${sizeAndDraw(gone, "Begin")}</section>`);
  }
  fill($("#panel-verify"), parts.join(""));
}

function sizeAndDraw(gone, words) {
  const primary = words === "Begin" ? " primary" : "";
  const choice =
    words === "Begin"
      ? `<label><span class="what">Points</span><select id="sample-size"><option>30</option><option selected>60</option><option>100</option><option>200</option></select></label>`
      : "";
  return `${choice}<button class="button${primary}${choice ? " wide" : ""}" data-act="draw"${gone ? " disabled" : ""}>${words}</button>`;
}

/** Figures with intervals; folded while points are open, for they would tell what the map thinks. */
function resultMarkup(result, open) {
  const rows = [
    ["Precision", result.precision, percent],
    ["Recall", result.recall, percent],
    ["Area", result.area, percent],
  ].map(([name, figure, words]) => estimateRow(name, figure, words));
  const area = result.hectares
    ? `<p>The class covers <b>${hectares(result.hectares.value)}</b> (${hectares(result.hectares.low)} to ${hectares(result.hectares.high)}).</p>`
    : "";
  const all = `<dl class="estimate">${rows.join("")}</dl>${area}
    <p class="note">From ${many(result.answered, "answer")} of ${count(result.asked)}; the intervals hold the truth 19 times in 20.</p>`;
  const folded = `<details><summary>What ${many(result.answered, "answer")} tell so far</summary>${all}</details>`;
  return `<section aria-label="What the answers tell">${open ? folded : all}</section>`;
}

function estimateRow(name, figure, words) {
  if (!figure || figure.value === null) return `<dt>${name}</dt><dd>not known yet</dd><dd></dd>`;
  const low = 100 * (figure.low ?? figure.value);
  const high = 100 * (figure.high ?? figure.value);
  const range = figure.low === null ? "" : `<small>${words(figure.low)} to ${words(figure.high)}</small>`;
  return `<dt>${name}</dt>
    <dd><svg class="interval" viewBox="0 0 100 10" preserveAspectRatio="none" aria-hidden="true"><rect class="all" x="0" y="4" width="100" height="2"/><rect class="range" x="${low}" y="2" width="${Math.max(1, high - low)}" height="6"/><rect class="value" x="${Math.min(99, Math.max(0, 100 * figure.value - 0.5))}" y="0" width="1.2" height="10"/></svg></dd>
    <dd class="value">${words(figure.value)} ${range}</dd>`;
}
