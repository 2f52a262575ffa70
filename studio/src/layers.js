// Which map lies over the scene, and two of them side by side.

import { $, fill } from "./dom.js";
import { plain } from "./format.js";
import { attempt, loadCut, mapOf, shownMap, store } from "./session.js";
import { send } from "./api.js";
import { locked } from "./tools.js";

export const LAYERS = { none: "Scene", quick: "First map", run: "Learnt map", similar: "Similar" };

export function startLayers(sceneMap) {
  const switcher = $("#layers");
  switcher.addEventListener("click", (event) => {
    const kind = event.target.closest("button")?.dataset.layer;
    if (kind) store.set({ layer: kind });
  });
  store.watch(["maps", "layer", "labels", "tab", "verification"], (state) => {
    const blind = locked(state);
    const kinds = Object.keys(LAYERS).filter((kind) => kind === "none" || mapOf(kind, state));
    fill(
      switcher,
      kinds.map((kind) => `<button data-layer="${kind}" aria-pressed="${state.layer === kind}"${blind ? " disabled" : ""} title="${plain(mapOf(kind, state)?.name ?? "The scene alone")}">${LAYERS[kind]}</button>`).join(""),
    );
  });
  store.watch(["maps", "layer", "swipe", "tab", "verification"], (state) => {
    const blind = locked(state);
    const { swipe } = state;
    sceneMap.showMap(sceneMap.right, blind ? null : shownMap(state));
    sceneMap.showMap(sceneMap.left, blind || !swipe ? null : mapOf(swipe.left, state));
    sceneMap.swipe(swipe && !blind ? swipe.at : null);
    showHandle(blind ? { ...state, swipe: null } : state);
  });
  store.watch(["cuts", "layer", "maps", "swipe"], (state) => {
    const cut = (map) => (map && state.cuts[map.id] ? state.cuts[map.id].at : Math.round(200 * (map?.cut ?? 0.5)));
    sceneMap.cut(sceneMap.right, cut(shownMap(state)));
    if (state.swipe) sceneMap.cut(sceneMap.left, cut(mapOf(state.swipe.left, state)));
  });
  $("#swipe").addEventListener("click", toggleSwipe);
  startHandle();
}

/** Compare: the learnt map with the first one where there are both, else with the bare scene. */
export function toggleSwipe() {
  const { swipe, layer } = store.state;
  if (swipe) return store.set({ swipe: null });
  const right = layer === "none" ? ["run", "quick", "similar"].find((kind) => mapOf(kind)) : layer;
  if (!right) return null;
  const left = right === "run" && mapOf("quick") ? "quick" : "none";
  loadCut(mapOf(left));
  return store.set({ layer: right, swipe: { at: 0.5, left } });
}

function showHandle({ swipe, layer }) {
  const handle = $("#swipe-handle");
  $("#swipe").setAttribute("aria-pressed", String(Boolean(swipe)));
  handle.hidden = !swipe;
  if (!swipe) return;
  handle.style.left = `${100 * swipe.at}%`;
  handle.setAttribute("aria-valuenow", String(Math.round(100 * swipe.at)));
  $(".tag.left", handle).textContent = LAYERS[swipe.left];
  $(".tag.right", handle).textContent = LAYERS[layer];
}

function startHandle() {
  const handle = $("#swipe-handle");
  const move = (at) => store.set({ swipe: { ...store.state.swipe, at: Math.max(0.02, Math.min(0.98, at)) } });
  handle.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
  });
  handle.addEventListener("pointermove", (event) => {
    if (!handle.hasPointerCapture(event.pointerId)) return;
    const { left, width } = $("#map").getBoundingClientRect();
    move((event.clientX - left) / width);
  });
  handle.addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -0.02, ArrowRight: 0.02 }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    move(store.state.swipe.at + by);
  });
}

/** Hide the map, or show it again. */
let before = "none";
export function toggleMap() {
  const { layer, maps } = store.state;
  if (layer !== "none") {
    before = layer;
    return store.set({ layer: "none", swipe: null });
  }
  const back = mapOf(before) ? before : ["run", "quick", "similar"].find((kind) => mapOf(kind));
  return maps.length && back ? store.set({ layer: back }) : null;
}

/** Go from the first map to the learnt one and back. */
export function otherMap() {
  const kinds = ["quick", "run", "similar"].filter((kind) => mapOf(kind));
  if (kinds.length) store.set({ layer: kinds[(kinds.indexOf(store.state.layer) + 1) % kinds.length] });
}

/** Pixels with a spectrum like that of one pixel; again: away with them. */
export async function toggleSimilar(pixel) {
  if (store.state.layer === "similar" && mapOf("similar")) {
    store.set({ layer: mapOf("run") ? "run" : mapOf("quick") ? "quick" : "none", swipe: null });
    await attempt(send("DELETE", "similar"));
    store.set({ maps: store.state.maps.filter((map) => map.kind !== "similar") });
    return;
  }
  if (!pixel) return;
  const found = await attempt(send("POST", "similar", pixel));
  if (!found) return;
  const others = store.state.maps.filter((map) => map.kind !== "similar");
  store.set({ maps: [...others, found.map], layer: "similar" });
}
