// The spectrum under the pointer, against those of the labels and of the scene.

import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

import { get } from "./api.js";
import { store, tell } from "./session.js";
import { colour } from "./theme.js";

const AXIS_FONT = '11.5px "Inter", system-ui, sans-serif';

/** The order in which bands are drawn: by wavelength where all have one, else by number. */
function axisOf(bands) {
  const known = bands.every((band) => band.wavelength !== null);
  const order = bands.map((_, i) => i);
  if (known) order.sort((a, b) => bands[a].wavelength - bands[b].wavelength);
  return { known, order, x: order.map((i) => (known ? bands[i].wavelength : bands[i].number)) };
}

/** A colour "#rrggbb" that lets through what is below; share in percent. */
function soft(ink, share) {
  return `${ink}${Math.round(2.55 * share).toString(16).padStart(2, "0")}`;
}

export class Spectra {
  constructor(target) {
    this.target = target;
    this.plot = null;
    this.wanted = null; // the pixel under the pointer
    this.asking = null;
    this.hovered = null;
    this.pinned = null;
    this.times = []; // milliseconds from wish to picture, the last 50
    new ResizeObserver(() => this.resize()).observe(target);
    store.watch(["scene"], ({ scene }) => scene && this.build());
    store.watch(["envelope"], () => this.draw());
  }

  /** Build the plot anew: for another scene, or other colours. */
  build() {
    const { scene } = store.state;
    if (!scene) return;
    this.plot?.destroy();
    this.axis = axisOf(scene.bands);
    const quiet = colour("quiet");
    const grid = { stroke: colour("line"), width: 1 };
    const ticks = { stroke: colour("line"), width: 1, size: 4 };
    const [ink, labels, others, scene_] = ["ink", "positive", "negative", "strong-line"].map(colour);
    const line = (stroke, width, dash) => ({ stroke, width, dash, points: { show: scene.bands.length < 40 && width > 1.4, size: 4, fill: stroke } });
    const edge = { stroke: "transparent", width: 0, points: { show: false } };
    this.plot = new uPlot(
      {
        width: Math.max(50, this.target.clientWidth),
        height: Math.max(50, this.target.clientHeight),
        padding: [6, 24, 0, 0],
        cursor: { drag: { x: false, y: false }, points: { show: false }, y: false },
        legend: { show: false },
        scales: { x: { time: false }, y: { range: (_, low, high) => padded(low, high) } },
        axes: [
          { stroke: quiet, font: AXIS_FONT, grid, ticks, size: 36, label: this.axis.known ? "wavelength (nm)" : "band", labelFont: AXIS_FONT, labelSize: 16, labelGap: -2 },
          { stroke: quiet, font: AXIS_FONT, grid, ticks, size: 52 },
        ],
        series: [
          {},
          edge, edge, line(scene_, 1.2, [4, 3]),
          edge, edge, line(labels, 1.4),
          line(others, 1.2, [2, 3]),
          line(soft(ink, 60), 1.5, [5, 3]),
          line(ink, 2),
        ],
        bands: [
          { series: [2, 1], fill: soft(scene_, 22) },
          { series: [5, 4], fill: soft(labels, 26) },
        ],
        hooks: { drawClear: [(plot) => this.shade(plot)] },
      },
      [[], [], [], [], [], [], [], [], [], []],
      this.target,
    );
    this.plot.root.setAttribute("aria-hidden", "true");
    this.draw();
  }

  /** A shade over bands that are left out: bad ones, and those the user took away. */
  shade(plot) {
    const { bands } = store.state.scene;
    const { x, order } = this.axis;
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.fillStyle = soft(colour("check"), 16);
    order.forEach((band, i) => {
      if (bands[band].used) return;
      const from = i ? (x[i - 1] + x[i]) / 2 : x[i];
      const to = i + 1 < x.length ? (x[i] + x[i + 1]) / 2 : x[i];
      const left = plot.valToPos(from, "x", true);
      const right = plot.valToPos(to, "x", true);
      ctx.fillRect(left, bbox.top, Math.max(2, right - left), bbox.height);
    });
    ctx.restore();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.target;
    if (this.plot && width > 50 && height > 50) this.plot.setSize({ width, height });
  }

  /** Values of the bands in the order of the axis; those of bands left out are not drawn. */
  series(values) {
    const { bands } = store.state.scene;
    if (!values) return this.axis.x.map(() => null);
    return this.axis.order.map((i) => (bands[i].used ? values[i] : null));
  }

  draw() {
    if (!this.plot) return;
    const { envelope } = store.state;
    const [all, positive, negative] = [envelope?.scene, envelope?.positive, envelope?.negative];
    this.plot.setData([
      this.axis.x,
      this.series(all?.p5), this.series(all?.p95), this.series(all?.p50),
      this.series(positive?.p5), this.series(positive?.p95), this.series(positive?.p50),
      this.series(negative?.p50),
      this.series(this.hovered ? this.pinned?.values : null),
      this.series((this.hovered ?? this.pinned)?.values),
    ]);
  }

  /** Show the pixel under the pointer; null goes back to the one that was kept. */
  hover(pixel) {
    this.wanted = pixel;
    if (!pixel) {
      this.hovered = null;
      this.draw();
      return;
    }
    if (!this.asking) this.ask();
  }

  // One request at a time; where the pointer went meanwhile is asked for next.
  async ask() {
    while (this.wanted && !same(this.wanted, this.hovered)) {
      const began = performance.now();
      try {
        this.asking = this.fetch(this.wanted);
        const found = await this.asking;
        if (!this.wanted) break;
        this.hovered = found;
        this.draw();
        this.times = [...this.times.slice(-49), performance.now() - began];
      } catch (error) {
        if (error.status !== 503) tell(error);
        break;
      }
    }
    this.asking = null;
  }

  fetch({ row, column }) {
    return get(`spectrum?row=${row}&column=${column}`);
  }

  /** Keep a pixel's spectrum. */
  async pin(pixel) {
    store.set({ pinned: pixel });
    if (!pixel) {
      this.pinned = null;
      return this.draw();
    }
    try {
      this.pinned = same(pixel, this.hovered) ? this.hovered : await this.fetch(pixel);
    } catch (error) {
      tell(error);
    }
    this.draw();
  }
}

function same(a, b) {
  return Boolean(a && b) && a.row === b.row && a.column === b.column;
}

function padded(low, high) {
  if (low === null || high === null) return [0, 1];
  const room = 0.06 * (high - low || Math.abs(high) || 1);
  return [low - room, high + room];
}
