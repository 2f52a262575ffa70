// Results: labels, the map and its cut, and what is being learnt.

import { send } from "./api.js";
import { $, fill, message, onAct } from "./dom.js";
import { count, hectares, many, percent, plain, seconds, sentence } from "./format.js";
import { icon } from "./icons.js";
import { running } from "./jobs.js";
import { attempt, loadCut, mapOf, moveCut, shownMap, store } from "./session.js";
import { colour } from "./theme.js";
import { locked } from "./tools.js";

const BARS = 50;
const INSET = 8; // pixels, half of the slider's thumb: value and bar stand above each other
export const FEWEST = 10; // positive labels that training needs

const GUIDE = `<ol class="steps">
  <li><b>Click a few pixels of the class.</b> The point tool <kbd>P</kbd> is in hand; dragging moves the map. A few
    pixels in many places are better than many in one.</li>
  <li><b>See it appear.</b> A first map comes within seconds; a better one is learnt from ${FEWEST} labels on.</li>
  <li><b>Answer what it asks.</b> <i>Look next</i> leads to the places that teach most.</li>
  <li><b>Move the cut, verify, export.</b> Everything is saved as you go; <kbd>?</kbd> lists all keys.</li>
</ol>`;

const SKELETON = `
  <section aria-label="Labels">
    <label class="class"><span class="what">Class</span><input type="text" id="class-name" maxlength="60" autocomplete="off" spellcheck="false"></label>
    <dl class="counts" id="counts"></dl>
  </section>
  <section id="guide" aria-label="How to begin"></section>
  <section id="blind" hidden></section>
  <section id="the-map" aria-label="The map" hidden>
    <div id="map-head"></div>
    <dl class="figures" id="figures"></dl>
    <div class="cut">
      <div class="histogram"><canvas id="histogram" aria-hidden="true"></canvas><i id="cut-line" hidden></i></div>
      <label for="cut" class="visually-hidden">Cut: pixels with a higher probability are mapped</label>
      <input type="range" id="cut" min="0" max="200" step="1">
    </div>
    <div class="row apart"><div class="legend" id="cut-legend"></div><span class="row"><output id="cut-value" for="cut"></output></span></div>
    <div id="cut-note"></div>
    <div id="verdict"></div>
  </section>
  <section id="learning" aria-label="Learning" hidden>
    <div class="row apart"><h2>Learning</h2><label class="row"><input type="checkbox" id="auto">by itself</label></div>
    <label><span class="visually-hidden">Method</span><select id="method" class="wide"></select></label>
    <div id="training"></div>
  </section>`;

export function startMapPanel() {
  const panel = $("#panel-map");
  panel.innerHTML = SKELETON;
  const name = $("#class-name");
  name.addEventListener("change", () => attempt(send("PUT", "settings", { label: name.value.trim() || "class" })));
  name.addEventListener("keydown", (event) => event.key === "Enter" && name.blur());
  $("#auto").addEventListener("change", (event) => attempt(send("PUT", "settings", { auto: event.target.checked })));
  $("#method").addEventListener("change", (event) => attempt(send("PUT", "settings", { method: event.target.value })));
  const slider = $("#cut");
  slider.addEventListener("input", () => moveCut(shownMap(), Number(slider.value)));
  onAct(panel, {
    train,
    own: () => moveCut(shownMap(), null),
  });
  new ResizeObserver(drawHistogram).observe($("#histogram"));
  store.watch(["labels", "settings", "methods", "jobs", "gone"], render);
  store.watch(["labels", "maps", "layer", "settings", "tab", "verification"], renderMap);
  store.watch(["cuts", "layer", "maps", "overlay"], renderCut);
  store.watch(["maps", "layer", "swipe"], (state) => {
    loadCut(shownMap(state));
    if (state.swipe) loadCut(mapOf(state.swipe.left, state));
  });
}

export async function train() {
  const job = await attempt(send("POST", "train", {}));
  if (job) store.set({ jobs: { ...store.state.jobs, train: job } });
}

function setValue(input, value) {
  if (document.activeElement !== input && input.value !== value) input.value = value;
}

function render(state) {
  const { labels, settings, methods, gone } = state;
  if (!labels) return;
  const { counts } = labels;
  const total = counts.positive + counts.negative + counts.unknown;
  setValue($("#class-name"), settings.label);
  fill(
    $("#counts"),
    [["positive", "the class"], ["negative", "not this"], ["unknown", "don't know"]]
      .map(([kind, words]) => `<div class="of-${kind}"><dt>${words}</dt><dd>${count(counts[kind])}</dd></div>`)
      .join(""),
  );
  fill($("#guide"), total ? "" : GUIDE);
  $("#guide").hidden = total > 0;
  $("#learning").hidden = total === 0;
  $("#auto").checked = settings.auto;
  const select = $("#method");
  fill(select, methods.map(methodMarkup).join(""));
  setValue(select, settings.method);
  const job = running("train", state);
  select.disabled = Boolean(job) || gone;
  fill($("#training"), trainingMarkup(state, job));
}

// How long it takes is what a mapper chooses by; what it minimises shows under the pointer.
function methodMarkup({ name, words, network }) {
  const takes = network ? "a network, minutes" : "seconds";
  return `<option value="${plain(name)}" title="${plain(words)}">${plain(name)} (${takes})</option>`;
}

function trainingMarkup({ labels, jobs, gone }, job) {
  const last = jobs.train;
  const lacking = FEWEST - labels.counts.positive;
  const parts = [];
  if (last?.state === "failed") parts.push(message("poor", sentence(last.error ?? "Training failed")));
  if (last?.state === "cancelled") parts.push(`<p class="note">Stopped. The map is as it was.</p>`);
  const off = lacking > 0 || gone || job ? " disabled" : "";
  parts.push(`<button class="button wide" data-act="train"${off}>${icon("play")}${job ? "Learning" : "Learn now"} <kbd>T</kbd></button>`);
  if (lacking > 0) parts.push(`<p class="note">Needs ${many(lacking, "more label")} of the class.</p>`);
  return parts.join("");
}

function renderMap(state) {
  const map = shownMap(state);
  const blind = locked(state);
  $("#the-map").hidden = !map || blind;
  $("#blind").hidden = !blind;
  if (blind) fill($("#blind"), `<p class="note">The map is hidden while random points are answered.</p>`);
  if (!map || !state.labels) return;
  const behind = map.kind !== "similar" && map.revision !== null && map.revision < state.labels.revision;
  const words = map.kind === "similar" ? "Similar pixels" : map.kind === "quick" ? "First map" : "Learnt map";
  fill(
    $("#map-head"),
    `<div class="row apart"><h2>${words}</h2><small>${map.seconds === null || map.seconds === undefined ? "" : seconds(map.seconds)}</small></div>
     <p class="note">${plain(map.name)}${behind ? "; labels have changed since" : ""}</p>`,
  );
  fill($("#verdict"), map.verdict ? verdictMarkup(map.verdict) : "");
}

function verdictMarkup({ level, words, finding }) {
  const more = finding ? `<details><summary>Why</summary><p class="note">${plain(finding)}</p></details>` : "";
  return message(level, words, level === "good" ? "check" : "warning") + more;
}

let latest = null;

function renderCut(state) {
  const map = shownMap(state);
  const cut = map && state.cuts[map.id];
  const moved = cut && latest?.scene === cut.scene; // the same map: its bars are as they were
  latest = cut ?? null;
  const slider = $("#cut");
  slider.disabled = !cut;
  $("#cut-line").hidden = !cut;
  if (!cut) {
    fill($("#figures"), "");
    return drawHistogram();
  }
  const { at } = cut;
  $("#cut-line").style.left = `calc(${INSET}px + (100% - ${2 * INSET}px) * ${at / 200})`;
  slider.value = at;
  slider.setAttribute("aria-valuetext", `${(at / 200).toFixed(3)}, maps ${percent(cut.share[at])} of the scene`);
  const recall = cut.recall ? percent(cut.recall[at]) : "–";
  const why = cut.recall ? `of ${many(cut.left_out, "label")} left out` : "no label could be left out yet";
  fill(
    $("#figures"),
    `<div><dt>Mapped</dt><dd>${percent(cut.share[at])}<small>of the scene</small></dd></div>
     <div><dt>Area</dt><dd>${cut.hectares ? hectares(cut.hectares[at]) : count(Math.round(cut.share[at] * cut.pixels))}<small>${cut.hectares ? "mapped" : "pixels"}</small></dd></div>
     ${map.kind === "similar" ? "" : `<div><dt>Found</dt><dd>${recall}<small>${why}</small></dd></div>`}`,
  );
  $("#cut-value").textContent = `cut ${(at / 200).toFixed(3)}`;
  const own = Math.round(200 * cut.own_cut);
  const back = at === own ? "" : `<button class="button link" data-act="own">Back to ${(own / 200).toFixed(3)}</button>`;
  const ramp = state.overlay?.ramp ? `<span>0<i class="ramp"></i>1</span>` : "";
  fill($("#cut-legend"), `<span class="of-scene"><i></i>scene</span>${cut.labels ? `<span class="of-labels"><i></i>labels left out</span>` : ""}${ramp}`);
  const note = at === own && cut.reason ? `<details><summary>Why here</summary><p class="note">${plain(sentence(cut.reason))}</p></details>` : "";
  const caution = cut.caution && !map.verdict ? message("check", sentence(cut.caution)) : "";
  fill($("#cut-note"), `${back}${note}${caution}`);
  if (!moved) drawHistogram();
}

/** Bars of the scene and of the labels by probability, their square roots; the cut is a line over them. */
export function drawHistogram() {
  const canvas = $("#histogram");
  const { clientWidth: width, clientHeight: height } = canvas;
  if (!width) return;
  const ratio = devicePixelRatio;
  if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
  if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  if (!latest) return;
  const across = width - 2 * INSET;
  const bar = across / BARS;
  for (const [counts, ink, narrow] of [[latest.scene, colour("strong-line"), 0], [latest.labels, colour("positive"), 0.25]]) {
    if (!counts) continue;
    const sums = summed(counts);
    const most = Math.sqrt(Math.max(1, ...sums));
    context.fillStyle = ink;
    context.globalAlpha = narrow ? 0.9 : 0.45;
    sums.forEach((sum, i) => {
      const high = (Math.sqrt(sum) / most) * (height - 4);
      context.fillRect(INSET + i * bar + narrow * bar + 0.5, height - high, bar * (1 - 2 * narrow) - 1, high);
    });
  }
  context.globalAlpha = 1;
  context.fillStyle = colour("line");
  context.fillRect(INSET, height - 1, across, 1);
}

function summed(counts) {
  const sums = new Array(BARS).fill(0);
  counts.forEach((n, v) => (sums[Math.min(BARS - 1, Math.floor((v * BARS) / 200))] += n));
  return sums;
}
