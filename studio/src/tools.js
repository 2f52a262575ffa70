// What the pointer and the keyboard do on the map, by the tool in hand.

import PointerInteraction from "ol/interaction/Pointer.js";

import { change, store } from "./session.js";

const STEP = 2; // screen pixels between the corners of a lasso

export class Tools {
  constructor(sceneMap, { onHover, onPin }) {
    this.sceneMap = sceneMap;
    this.onHover = onHover;
    this.onPin = onPin;
    this.stroke = null; // the stroke under way, or waiting for its answer
    this.hover = null;
    this.panning = false; // while the space bar is held
    const drawing = new PointerInteraction({
      handleDownEvent: (event) => this.down(event),
      handleDragEvent: (event) => this.drag(event),
      handleUpEvent: (event) => this.up(event),
    });
    sceneMap.map.addInteraction(drawing);
    sceneMap.map.on("click", (event) => this.click(event));
    sceneMap.map.on("pointermove", (event) => event.dragging || this.move(event));
    sceneMap.map.getViewport().addEventListener("pointerleave", () => this.leave());
  }

  get draws() {
    return ["brush", "lasso", "erase"].includes(store.state.tool) && !locked();
  }

  place(event) {
    return [event.coordinate[0], -event.coordinate[1]];
  }

  down(event) {
    const { originalEvent } = event;
    if (!this.draws || this.panning || originalEvent.button !== 0 || event.activePointers?.length > 1) return false;
    this.stroke = { path: [this.place(event)], waiting: false };
    this.sceneMap.touch();
    return true;
  }

  drag(event) {
    if (!this.stroke) return;
    if (event.activePointers?.length > 1) return this.abandon(); // two fingers move the map
    const { path } = this.stroke;
    const place = this.place(event);
    const [x, y] = path.at(-1);
    if (Math.hypot(place[0] - x, place[1] - y) < STEP * this.sceneMap.resolution) return;
    path.push(place);
    this.hover = place;
    this.sceneMap.touch();
  }

  up() {
    const { stroke } = this;
    if (!stroke) return false;
    this.send(stroke);
    return false;
  }

  async send(stroke) {
    stroke.waiting = true;
    const { tool, kind, brush } = store.state;
    const what = tool === "erase" ? "erase" : kind;
    const shape = tool === "lasso" && stroke.path.length > 2 ? { polygon: stroke.path } : { path: stroke.path, radius: brush / 2 };
    const pinned = this.sceneMap.pixelAt(stroke.path.at(-1));
    await change("strokes", { kind: what, origin: "stroke", ...shape });
    if (this.stroke === stroke) this.stroke = null;
    this.sceneMap.touch();
    if (pinned && tool !== "erase") this.onPin(pinned);
  }

  abandon() {
    this.stroke = null;
    this.sceneMap.touch();
  }

  click(event) {
    const pixel = this.sceneMap.pixelAt(this.place(event));
    if (pixel && !this.draws) this.apply(pixel);
  }

  move(event) {
    this.hover = this.place(event);
    if (["brush", "erase"].includes(store.state.tool)) this.sceneMap.touch();
    this.onHover(this.sceneMap.pixelAt(this.hover));
  }

  leave() {
    this.hover = null;
    this.onHover(null);
    this.sceneMap.touch();
  }

  /** Use the tool on one pixel: by a click, or by the keyboard's cursor. */
  async apply(pixel) {
    const { tool, kind, brush } = store.state;
    if (tool === "look" || locked()) return this.onPin(pixel);
    const what = tool === "erase" ? "erase" : kind;
    const middle = [pixel.column + 0.5, pixel.row + 0.5];
    const shape =
      tool === "brush" || tool === "erase"
        ? { path: [middle], radius: brush / 2 }
        : { pixels: [[pixel.row, pixel.column]] };
    await change("strokes", { kind: what, origin: "stroke", ...shape });
    if (tool !== "erase") this.onPin(pixel);
  }

  // The lasso by keyboard: Space adds a corner, Enter closes.
  corner(pixel) {
    const place = [pixel.column + 0.5, pixel.row + 0.5];
    if (this.stroke && !this.stroke.waiting) this.stroke.path.push(place);
    else this.stroke = { path: [place], waiting: false };
    this.sceneMap.touch();
  }

  close() {
    if (this.stroke && !this.stroke.waiting) this.send(this.stroke);
  }

  moveCursor(dx, dy) {
    const { scene, cursor } = store.state;
    if (!scene) return;
    const [cx, cy] = this.sceneMap.map.getView().getCenter();
    const from = cursor ?? { row: Math.floor(-cy), column: Math.floor(cx) };
    const within = (value, size) => Math.max(0, Math.min(size - 1, value));
    const next = cursor
      ? { row: within(from.row + dy, scene.rows), column: within(from.column + dx, scene.columns) }
      : { row: within(from.row, scene.rows), column: within(from.column, scene.columns) };
    store.set({ cursor: next });
    this.sceneMap.reveal(next);
    this.onHover(next);
  }
}

/** Whether the map is hidden for verification: then nothing is labelled, only answered. */
export function locked(state = store.state) {
  const { tab, verification } = state;
  return tab === "verify" && verification.state === "asking" && verification.points.some((point) => !point.answer);
}
