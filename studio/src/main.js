// The page begins here: what is on the screen, joined to the session and to the keys.

import { token, watchBusy } from "./api.js";
import { curtain, curtainFor, lift } from "./curtain.js";
import { nextDisplay, startDisplay, toggleDisplay } from "./display.js";
import { $, $$, drawIcons, fill } from "./dom.js";
import { hectares, many, percent, plain } from "./format.js";
import { icon } from "./icons.js";
import { running, startJobs } from "./jobs.js";
import { keyTable, startKeys } from "./keys.js";
import { LAYERS, otherMap, startLayers, toggleMap, toggleSwipe } from "./layers.js";
import { SceneMap } from "./map.js";
import { drawMarks } from "./marks.js";
import { answer, currentPoint, startAskedPanels, step, suggest } from "./panel-asked.js";
import { exportMap, startExportPanel } from "./panel-export.js";
import { drawHistogram, startMapPanel, train } from "./panel-map.js";
import { redoOnce, setKind, setTool, similar, startRail, undoOnce } from "./rail.js";
import { pixelUnder, showReadout } from "./readout.js";
import { load, mapOf, moveCut, onTrouble, shownMap, start, store } from "./session.js";
import { Spectra } from "./spectra.js";
import { startTabs } from "./tabs.js";
import { startTheme } from "./theme.js";
import { toast } from "./toast.js";
import { locked, Tools } from "./tools.js";

let tools = null;

function draw(context, frame) {
  const { state } = store;
  drawMarks(context, frame, { state, stroke: tools?.stroke, hover: tools?.hover, blind: locked(state) });
}

function hasWebGL() {
  return Boolean(document.createElement("canvas").getContext("webgl2"));
}

function startFrame(sceneMap) {
  store.watch(["scene"], ({ scene }) => {
    if (!scene) return;
    document.title = `${scene.name} – thonecls studio`;
    const used = scene.bands.filter((band) => band.used).length;
    const left = used === scene.bands.length ? "" : `, ${scene.bands.length - used} left out`;
    fill($("#scene-name"), `<b>${plain(scene.name)}</b> · ${scene.columns} × ${scene.rows} pixels · ${many(scene.bands.length, "band")}${left}${scene.crs ? ` · ${plain(scene.crs)}` : ""}`);
    $("#scene-name").title = [scene.crs_name, ...scene.notes].filter(Boolean).join("\n");
    sceneMap.open(scene);
  });
  store.watch(["pending", "gone", "labels", "project"], ({ pending, gone, project }) => {
    const saved = $("#saved");
    saved.className = gone ? "bad" : pending ? "busy" : "";
    const waiting = pending ? `${many(pending, "stroke waits", "strokes wait")} for the server` : "server gone";
    fill(saved, gone ? `${icon("gone")}${waiting}` : pending ? `${icon("download")}Saving` : `${icon("check")}Saved`);
    saved.title = gone ? "" : `Every label is on disk, in ${project}`;
  });
  store.watch(["gone"], ({ gone }) => {
    $("#gone").hidden = !gone;
    fill($("#gone"), `${icon("gone")}<span><b>The server is gone.</b> Start <code>thonecls studio</code> again: this page goes on by itself, and nothing is lost.</span>`);
  });
  watchBusy((busy) => store.set({ busy }));
  store.watch(["busy", "gone"], ({ busy, gone }) => ($("#busy").hidden = !busy || gone));
  store.watch(["labels", "maps", "failed", "gone"], (state) => {
    const { labels, failed, gone } = state;
    const wanted = Boolean(labels?.counts.positive) && (mapOf("quick", state)?.revision ?? -1) < labels.revision;
    const drawing = wanted && failed !== labels.revision && !gone;
    $("#layer-switch").setAttribute("aria-busy", String(drawing));
    $("#drawing").hidden = !drawing;
  });
  store.watch(["overview"], ({ overview }) => {
    if (overview.ready) sceneMap.reload();
  });
  store.watch(["overview", "tab", "verification"], (state) => {
    const note = $("#mode-note");
    const blind = locked(state);
    note.hidden = state.overview.ready && !blind;
    if (blind) fill(note, `${icon("hidden")}<span>The map is hidden until all points are answered</span>`);
    else fill(note, `<span>Reading the scene for its overview</span><progress max="1" value="${state.overview.done}" aria-label="Overview"></progress>`);
  });
  store.watch(["trouble"], ({ trouble }) => {
    if (trouble) toast(trouble, "poor");
    store.set({ trouble: null });
  });
  store.watch(["cuts", "layer", "maps", "tab", "verification"], (state) => {
    const map = shownMap(state);
    const cut = map && state.cuts[map.id];
    const element = $("#share");
    element.hidden = !cut || locked(state);
    if (!cut) return;
    const area = cut.hectares ? ` · ${hectares(cut.hectares[cut.at])}` : "";
    element.innerHTML = `<b>${percent(cut.share[cut.at])}</b> mapped${area} · ${LAYERS[map.kind].toLowerCase()}`;
  });
  store.watch(["pixels", "suggestions", "verification", "current", "tab", "cursor", "pinned", "tool", "kind", "brush"], () => sceneMap.touch());
  sceneMap.map.on("moveend", () => showReadout(sceneMap));
}

function keyActions(sceneMap, spectra, pixelInHand, toggleTheme) {
  const arrows = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  return {
    tool: (name) => () => setTool(name),
    kind: (kind) => () => (currentPoint() ? answer(kind) : setKind(kind)),
    brush: (event) => store.set({ brush: Math.max(1, Math.min(41, store.state.brush + (event.key === "]" ? 2 : -2))) }),
    undo: undoOnce,
    redo: redoOnce,
    arrow: (event) => {
      const [dx, dy] = arrows[event.key];
      const by = event.shiftKey ? 10 : 1;
      tools.moveCursor(dx * by, dy * by);
    },
    apply: (event) => {
      if (!event.repeat) tools.panning = true; // decided when the key is let go
    },
    enter: () => tools.close(),
    zoom: (event) => sceneMap.zoom(event.key === "-" ? 1 / 1.6 : 1.6),
    fit: () => sceneMap.fit(),
    escape: () => escape(spectra),
    nextDisplay,
    display: () => toggleDisplay(),
    hide: () => locked() || toggleMap(),
    otherMap: () => locked() || otherMap(),
    ramp: () => store.set({ overlay: { ...store.state.overlay, ramp: !store.state.overlay.ramp } }),
    swipe: () => locked() || toggleSwipe(),
    similar: () => similar(pixelInHand()),
    cut: (event) => {
      const map = shownMap();
      const at = map && store.state.cuts[map.id]?.at;
      if (at === undefined || at === null || locked()) return;
      moveCut(map, at + ([".", ">"].includes(event.key) ? 1 : -1) * (event.shiftKey ? 10 : 1));
    },
    train: () => running("train") || train(),
    next: lookNext,
    back: () => step(-1),
    tab: (name) => () => store.set({ tab: name }),
    export: () => (store.state.tab === "export" && mapOf("run") && !running("export") ? exportMap() : store.set({ tab: "export" })),
    bare: () => toggleBare(sceneMap),
    theme: toggleTheme,
    help: showHelp,
  };
}

function lookNext() {
  const { tab, suggestions } = store.state;
  if (tab === "verify") return step(1);
  const open = suggestions.points.some((point) => !point.answer);
  store.set({ tab: "next" });
  if (open) return queueMicrotask(() => step(1)); // after the tab has changed
  return mapOf("run") ? suggest() : null;
}

function escape(spectra) {
  if (tools.stroke) return tools.abandon();
  if (!$("#display-panel").hidden) return toggleDisplay(false);
  if (document.activeElement?.matches("input, select")) return document.activeElement.blur();
  if (store.state.swipe) return store.set({ swipe: null });
  if (store.state.layer === "similar") return similar(null);
  if (store.state.cursor) return store.set({ cursor: null });
  if (store.state.pinned) return spectra.pin(null);
  return store.set({ tool: "look" });
}

function toggleBare(sceneMap) {
  const bare = $("#app").classList.toggle("bare");
  $("#bare").setAttribute("aria-pressed", String(bare));
  sceneMap.resize();
}

function showHelp() {
  const sheet = $("#keys");
  if (!sheet.open) sheet.showModal();
}

// The space bar uses the tool at the cursor; held down, it lets the pointer move the map.
function startSpace() {
  let moved = false;
  $("#map").addEventListener("pointerdown", () => (moved = true), true);
  document.addEventListener("keyup", (event) => {
    if (event.key !== " " || !tools.panning) return;
    tools.panning = false;
    const { cursor, tool } = store.state;
    if (!moved && cursor) tool === "lasso" && !locked() ? tools.corner(cursor) : tools.apply(cursor);
    moved = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === " " && !event.repeat) moved = false;
  }, true);
}

const LEGEND = `<span class="of-pixel"><i></i>this pixel</span><span class="of-labels"><i></i>labels, 9 in 10</span>
  <span class="of-scene"><i></i>scene, 9 in 10</span>`;

function startSpectra() {
  const spectra = new Spectra($("#spectra"));
  store.watch(["scene"], ({ scene }) => {
    const out = scene?.bands.some((band) => !band.used) ? `<span class="of-bad"><i></i>left out</span>` : "";
    fill($("#spectra-legend"), LEGEND + out);
  });
  $("#fold").addEventListener("click", () => {
    const closed = $("#below").classList.toggle("closed");
    $("#fold").setAttribute("aria-expanded", String(!closed));
    $("#spectra").hidden = closed;
  });
  return spectra;
}

async function begin() {
  drawIcons();
  let repaint = () => {};
  const toggleTheme = startTheme((theme) => {
    const button = $("#theme");
    button.innerHTML = icon(theme === "dark" ? "sun" : "moon");
    button.setAttribute("aria-label", theme === "dark" ? "Light colours" : "Dark colours");
    repaint();
  });
  $("#theme").addEventListener("click", toggleTheme);
  if (!token) return curtainFor({ status: 401 });
  if (!hasWebGL()) {
    return curtain("This browser draws no WebGL", "<p>The studio needs WebGL 2: switch it on in the browser's settings, or take a recent Firefox, Chrome, Edge or Safari.</p>");
  }
  curtain("Opening the scene", `<progress aria-label="Opening the scene"></progress>`);
  const sceneMap = new SceneMap($("#map-scene"), $("#map"), draw);
  const spectra = startSpectra();
  const onPin = (pixel) => spectra.pin(pixel);
  const onHover = (pixel) => {
    spectra.hover(pixel);
    showReadout(sceneMap, pixel);
  };
  tools = new Tools(sceneMap, { onHover, onPin });
  const pixelInHand = () => pixelUnder() ?? store.state.cursor ?? store.state.pinned;
  onTrouble((words) => toast(words, "poor"));
  startFrame(sceneMap);
  startRail(() => store.state.pinned ?? store.state.cursor);
  startDisplay(sceneMap);
  startLayers(sceneMap);
  startMapPanel();
  startAskedPanels((point) => {
    onHover(null); // the pointer rests elsewhere: what counts is the point
    sceneMap.fly(point);
    onPin({ row: point.row, column: point.column });
  });
  startExportPanel(toast);
  startJobs();
  startTabs();
  repaint = () => {
    spectra.build();
    drawHistogram();
  };
  startKeys(keyTable(keyActions(sceneMap, spectra, pixelInHand, toggleTheme)));
  startSpace();
  $("#bare").addEventListener("click", () => toggleBare(sceneMap));
  $("#help").addEventListener("click", showHelp);
  for (const button of $$("[data-zoom]")) {
    const { zoom } = button.dataset;
    button.addEventListener("click", () => (zoom === "fit" ? sceneMap.fit() : sceneMap.zoom(zoom === "in" ? 1.6 : 1 / 1.6)));
  }
  await open();
  globalThis.studio = { store, sceneMap, spectra }; // for the tests, and for the curious
}

const AGAIN = 1500; // milliseconds

async function open() {
  try {
    await load();
    lift();
    start();
  } catch (error) {
    curtainFor(error);
    if (error.status !== 401) setTimeout(open, AGAIN);
  }
}

begin();
