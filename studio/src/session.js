// The page's copy of what the server holds, kept fresh by its events; and what the page alone knows.

import { client, get, Gone, listen, send, ServerError } from "./api.js";
import { createStore } from "./store.js";

export const KINDS = ["positive", "negative", "unknown"];
export const WORDS = { positive: "the class", negative: "not this", unknown: "don't know" };

export const store = createStore({
  // of the server
  scene: null, overview: { ready: true, done: 1 }, labels: null, settings: null, methods: [], maps: [], jobs: {},
  suggestions: { map: null, points: [] }, verification: { state: "none", points: [] }, export: { ready: false, files: [] },
  envelope: null, project: "",
  // of the page
  pixels: new Map(), // flat index of a label: its kind
  tool: "look", kind: "positive", brush: 5, tab: "map", layer: "none", swipe: null,
  cuts: {}, // of a map's id: the answer of GET cut, and where the slider is
  current: null, // the suggested or random point that is asked about
  pending: 0, busy: false, gone: false, cursor: null, pinned: null,
  trouble: null, failed: null, // what went wrong, and at which revision of the labels
});

const troubles = [];

/** Be told, in words, whenever something fails: `call(words)`. */
export function onTrouble(call) {
  troubles.push(call);
}

export function tell(error) {
  if (error.name === "AbortError") return;
  if (error instanceof Gone) return lose();
  troubles.forEach((call) => call(error.message));
}

/** Run a request; what it fails with is told to the user, and null is returned. */
export async function attempt(promise) {
  try {
    return await promise;
  } catch (error) {
    tell(error);
    return null;
  }
}

function lose() {
  store.set({ gone: true });
}

/** Ask for everything; throws what the server says. Asks again where a stroke came between. */
export async function load(again = true) {
  const [state, labels] = await Promise.all([get("state"), get("labels")]);
  const known = store.state.labels?.revision ?? 0;
  if (again && (state.labels.revision !== labels.revision || labels.revision < known)) return load(false);
  const last = state.jobs.toSorted((a, b) => (a.state === "running") - (b.state === "running"));
  const jobs = Object.fromEntries(last.map((job) => [job.kind, job]));
  const { scene, overview, settings, methods, maps, suggestions, verification, project } = state;
  const pixels = new Map();
  for (const kind of KINDS) for (const flat of labels[kind]) pixels.set(flat, kind);
  const first = store.state.scene === null;
  const layer = chosenLayer(maps, state.shown, first);
  if (first && !pixels.size) store.set({ tool: "point" }); // who has no labels came to make some
  store.set({
    scene: sameScene(scene), overview, labels: state.labels, settings, methods, maps, jobs, suggestions,
    verification, project, export: state.export, pixels, layer, gone: false,
  });
  return refreshEnvelope();
}

/** The same object where nothing changed, so that the map is not built anew. */
function sameScene(scene) {
  const known = store.state.scene;
  return known && JSON.stringify(known) === JSON.stringify(scene) ? known : scene;
}

function chosenLayer(maps, shown, first) {
  const { layer } = store.state;
  if (!first && (layer === "none" || maps.some((map) => map.kind === layer))) return layer;
  return maps.find((map) => map.id === shown)?.kind ?? "none";
}

export function start() {
  listen(hear, lose);
}

function hear(name, data) {
  if (name === "hello") return greet();
  if (name === "trouble") return store.set({ trouble: data.error, failed: store.state.labels?.revision });
  if (name === "labels") return data.by === client ? null : takeLabels(data);
  if (name === "maps") return takeMaps(data);
  if (name === "job") return store.set({ jobs: { ...store.state.jobs, [data.kind]: data } });
  return store.set({ [name]: data });
}

/** The line to the server is there, for the first time or again: what it told before was missed. */
async function greet() {
  try {
    await load();
  } catch (error) {
    tell(error);
    return;
  }
  drain();
}

function takeMaps({ maps, shown, by }) {
  const { layer, maps: before } = store.state;
  if (by !== client) followCuts(maps);
  const newest = maps.find((map) => map.id === shown);
  const arrived = newest && !before.some((map) => map.id === newest.id);
  const first = arrived && !before.some((map) => map.kind === newest.kind);
  const there = maps.some((map) => map.kind === layer);
  const swap = (layer === "none" && first) || (layer === "quick" && arrived) || (layer !== "none" && !there);
  store.set({ maps, layer: swap ? (newest?.kind ?? "none") : layer });
}

/** Take over the cuts that another page moved. */
function followCuts(maps) {
  const cuts = { ...store.state.cuts };
  for (const map of maps) {
    if (cuts[map.id]) cuts[map.id] = { ...cuts[map.id], at: Math.round(200 * map.cut) };
  }
  store.set({ cuts });
}

/** Apply the answer to a stroke, or the event of another page's. */
async function takeLabels(answer) {
  const { revision, counts, undo, redo, undo_words, redo_words, changes } = answer;
  const before = store.state.labels;
  if (changes && before && revision === before.revision + (answer.changed ? 1 : 0)) {
    const pixels = new Map(store.state.pixels);
    for (const kind of KINDS) for (const flat of changes[kind] ?? []) pixels.set(flat, kind);
    for (const flat of changes.erased ?? []) pixels.delete(flat);
    store.set({ pixels });
  } else if (!before || revision !== before.revision) {
    const labels = await attempt(get("labels"));
    if (!labels) return;
    const pixels = new Map();
    for (const kind of KINDS) for (const flat of labels[kind]) pixels.set(flat, kind);
    store.set({ pixels });
  }
  store.set({ labels: { revision, counts, undo, redo, undo_words, redo_words } });
  refreshAnswers();
  refreshEnvelope();
}

function refreshAnswers() {
  const { suggestions, pixels, scene } = store.state;
  if (!suggestions.points.length) return;
  const points = suggestions.points.map((point) => ({
    ...point,
    answer: pixels.get(point.row * scene.columns + point.column) ?? null,
  }));
  store.set({ suggestions: { ...suggestions, points } });
}

let envelopeWanted = null;

function refreshEnvelope() {
  clearTimeout(envelopeWanted);
  envelopeWanted = setTimeout(async () => {
    try {
      store.set({ envelope: await get("envelope") });
    } catch (error) {
      if (error.status !== 503) tell(error);
    }
  }, 150);
}

// Strokes go to the server one after the other, and wait where it is gone: nothing is lost.
const queue = [];
let draining = false;

/** Send a change of the labels; its answer, or null where the server refused it. */
export function change(path, body) {
  return new Promise((resolve) => {
    queue.push({ path, body, resolve });
    store.set({ pending: queue.length });
    drain();
  });
}

async function drain() {
  if (draining) return;
  draining = true;
  while (queue.length) {
    const { path, body, resolve } = queue[0];
    let answer = null;
    try {
      answer = await send("POST", path, body);
    } catch (error) {
      tell(error);
      if (!(error instanceof ServerError)) break; // it stays in the queue until the server is back
    }
    queue.shift();
    if (answer) await takeLabels(answer);
    store.set({ pending: queue.length });
    resolve(answer);
  }
  draining = false;
}

export const undo = () => change("undo");
export const redo = () => change("redo");

// Maps and cuts.

/** The newest map of a kind, or null. */
export function mapOf(kind, state = store.state) {
  return state.maps.findLast((map) => map.kind === kind) ?? null;
}

/** The map that is looked at, or null. */
export function shownMap(state = store.state) {
  return mapOf(state.layer, state);
}

const asked = new Set();

/** Ask for what a cut through a map does, once for every map. */
export async function loadCut(map) {
  if (!map || store.state.cuts[map.id] || asked.has(map.id)) return;
  asked.add(map.id);
  const cut = await attempt(get(`cut/${map.id}`));
  asked.delete(map.id);
  if (!cut) return;
  const there = new Set(store.state.maps.map((known) => known.id));
  const kept = Object.entries(store.state.cuts).filter(([id]) => there.has(id));
  const at = Math.round(200 * (store.state.maps.find((known) => known.id === map.id)?.cut ?? cut.cut));
  store.set({ cuts: { ...Object.fromEntries(kept), [map.id]: { ...cut, at } } });
}

let cutWanted = null;

/** Move the cut: at once here, on the server when it has rested. `at`: 0 to 200, null its own. */
export function moveCut(map, at) {
  const cut = store.state.cuts[map.id];
  if (!cut) return;
  const place = at === null ? Math.round(200 * cut.own_cut) : Math.max(0, Math.min(200, at));
  store.set({ cuts: { ...store.state.cuts, [map.id]: { ...cut, at: place } } });
  clearTimeout(cutWanted);
  if (map.kind === "similar") return;
  cutWanted = setTimeout(
    () => attempt(send("PUT", `cut/${map.id}`, { cut: at === null ? null : place / 200 })),
    250,
  );
}
