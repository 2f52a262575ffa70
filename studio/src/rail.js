// The rail of tools: what is in the hand, what a label says, undo and redo.

import { $, $$ } from "./dom.js";
import { toggleSimilar } from "./layers.js";
import { redo, store, undo } from "./session.js";
import { toast } from "./toast.js";
import { locked } from "./tools.js";

export function startRail(pixelInHand) {
  for (const button of $$("[data-tool]")) button.addEventListener("click", () => setTool(button.dataset.tool));
  for (const button of $$("[data-kind]")) button.addEventListener("click", () => setKind(button.dataset.kind));
  $("#undo").addEventListener("click", undoOnce);
  $("#redo").addEventListener("click", redoOnce);
  $("#similar").addEventListener("click", () => similar(pixelInHand()));
  store.watch(["tool", "kind", "labels", "layer", "gone", "tab", "verification"], (state) => {
    const { tool, kind, labels, layer, gone } = state;
    const blind = locked(state);
    for (const button of $$("[data-tool]")) {
      button.setAttribute("aria-pressed", String(button.dataset.tool === (blind ? "look" : tool)));
      button.disabled = blind && button.dataset.tool !== "look";
    }
    for (const button of $$("[data-kind]")) {
      button.setAttribute("aria-pressed", String(button.dataset.kind === kind));
      button.disabled = blind;
    }
    $("#undo").disabled = !labels?.undo || gone || blind;
    $("#redo").disabled = !labels?.redo || gone || blind;
    $("#undo").title = labels?.undo_words ? `Undo: ${labels.undo_words} (Z)` : "Undo (Z)";
    $("#redo").title = labels?.redo_words ? `Redo: ${labels.redo_words} (Y)` : "Redo (Y)";
    $("#similar").setAttribute("aria-pressed", String(layer === "similar"));
    $("#similar").disabled = blind;
    $("#map").dataset.hand = tool;
  });
  const width = $("#brush-width");
  width.addEventListener("input", () => store.set({ brush: Number(width.value) }));
  store.watch(["tool", "brush"], ({ tool, brush }) => {
    $("#brush-size").hidden = !["brush", "erase"].includes(tool);
    width.value = brush;
    $("#brush-size output").textContent = `${brush} px`;
  });
}

export function setTool(tool) {
  if (!locked()) store.set({ tool });
}

export function setKind(kind) {
  if (locked()) return;
  store.set({ kind, tool: ["look", "erase"].includes(store.state.tool) ? "point" : store.state.tool });
}

export async function undoOnce() {
  const words = store.state.labels?.undo_words;
  if (!store.state.labels?.undo || locked()) return;
  if (await undo()) toast(`Undone: ${words ?? "the last stroke"}`);
}

export async function redoOnce() {
  const words = store.state.labels?.redo_words;
  if (!store.state.labels?.redo || locked()) return;
  if (await redo()) toast(`Done again: ${words ?? "the stroke"}`);
}

export function similar(pixel) {
  if (locked()) return;
  if (!pixel && store.state.layer !== "similar") toast("Point at a pixel first, or click one.");
  toggleSimilar(pixel);
}
