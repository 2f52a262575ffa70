// All keys in one table: what they do, and the sheet that explains them.

import { $ } from "./dom.js";
import { icon } from "./icons.js";

/** Groups of [keys as shown, what they do, keys as pressed, action]; a key with "+" needs modifiers. */
export function keyTable(act) {
  return [
    ["Tools", [
      ["V", "Look around", ["v"], act.tool("look")],
      ["P", "Point", ["p"], act.tool("point")],
      ["B", "Brush", ["b"], act.tool("brush")],
      ["L", "Lasso", ["l"], act.tool("lasso")],
      ["E", "Erase", ["e"], act.tool("erase")],
      ["[ ]", "Narrower or wider brush", ["[", "]"], act.brush],
      ["Space + drag", "Move the map with any tool", [], null],
    ]],
    ["Labels", [
      ["1", "The class", ["1"], act.kind("positive")],
      ["2", "Not this", ["2"], act.kind("negative")],
      ["3", "Don't know", ["3"], act.kind("unknown")],
      ["Z", "Undo", ["z", "ctrl+z"], act.undo],
      ["Y", "Redo", ["y", "ctrl+y", "ctrl+shift+z", "shift+z"], act.redo],
    ]],
    ["Map without a mouse", [
      ["← ↑ ↓ →", "Move the cursor a pixel", ["ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight"], act.arrow],
      ["Shift ←", "Move it ten pixels", ["shift+ArrowLeft", "shift+ArrowUp", "shift+ArrowDown", "shift+ArrowRight"], act.arrow],
      ["Space", "Use the tool here; a corner of the lasso", [" "], act.apply],
      ["Enter", "Close the lasso", ["Enter"], act.enter],
      ["+ −", "Zoom", ["+", "=", "-", "shift++"], act.zoom],
      ["F", "Whole scene", ["f"], act.fit],
      ["Esc", "Leave, cancel, put away", ["Escape"], act.escape],
    ]],
    ["Looking", [
      ["G", "Next choice of bands", ["g"], act.nextDisplay],
      ["C", "Bands and contrast", ["c"], act.display],
      ["H", "Hide or show the map", ["h"], act.hide],
      ["M", "First map, learnt map", ["m"], act.otherMap],
      ["O", "Probability in colours", ["o"], act.ramp],
      ["W", "Compare by a swipe", ["w"], act.swipe],
      ["S", "Pixels similar to this one", ["s"], act.similar],
      [", .", "Lower or raise the cut", [",", "."], act.cut],
      ["Shift , .", "by more", ["shift+<", "shift+>", "shift+,", "shift+."], act.cut],
    ]],
    ["Learning", [
      ["T", "Learn now", ["t"], act.train],
      ["N", "Look next: fly to the next place", ["n"], act.next],
      ["Shift N", "The place before", ["shift+n"], act.back],
      ["1 2 3", "Answer: yes, no, don't know", [], null],
      ["Q", "Results", ["q"], act.tab("map")],
      ["R", "Verify by random points", ["r"], act.tab("verify")],
      ["X", "Export", ["x"], act.export],
    ]],
    ["Page", [
      ["K", "Only the map, panels away", ["k"], act.bare],
      ["D", "Light or dark", ["d"], act.theme],
      ["?", "This sheet", ["?", "shift+?"], act.help],
    ]],
  ];
}

const ON_MAP = new Set(["ArrowLeft", "ArrowUp", "ArrowDown", "ArrowRight", " ", "Enter"]);

function name(event) {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  return `${event.ctrlKey || event.metaKey ? "ctrl+" : ""}${event.shiftKey ? "shift+" : ""}${key}`;
}

/** Whether the element that has the focus wants the key for itself. */
function taken(event) {
  const { target } = event;
  if (target.closest?.("dialog")) return true;
  if (target.matches?.("input[type=text], input[type=number], textarea, select")) return event.key !== "Escape";
  if (!ON_MAP.has(event.key)) return false;
  return target !== document.body && target.id !== "map";
}

export function startKeys(table) {
  const actions = new Map();
  for (const [, rows] of table) for (const [, , keys, act] of rows) for (const key of keys) actions.set(key, act);
  document.addEventListener("keydown", (event) => {
    if (event.altKey || taken(event)) return;
    const act = actions.get(name(event));
    if (!act) return;
    event.preventDefault();
    act(event);
  });
  const rows = table.map(
    ([title, entries]) =>
      `<section><h3>${title}</h3><dl>${entries.map(([keys, words]) => `<div><dt>${words}</dt><dd>${keys.split(" ").map((key) => (key === "+" && keys.includes("drag") ? "+" : `<kbd>${key}</kbd>`)).join(" ")}</dd></div>`).join("")}</dl></section>`,
  );
  const sheet = $("#keys");
  sheet.innerHTML = `<header><h2 id="keys-title">Keys</h2><button class="tool small" aria-label="Close" autofocus>${icon("close")}</button></header><div class="keys">${rows.join("")}</div>`;
  $("button", sheet).addEventListener("click", () => sheet.close());
  sheet.addEventListener("click", (event) => event.target === sheet && sheet.close());
}
