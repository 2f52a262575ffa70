// The map: the scene, one map over it or two side by side, and a canvas of marks on top. It is
// drawn in the scene's own pixels, x = column, y = -row, so that any scene will do. The scene has
// an OpenLayers map of its own below, with the same view: moving the cut does not draw it again.

import OlMap from "ol/Map.js";
import View from "ol/View.js";
import { defaults as defaultInteractions } from "ol/interaction/defaults.js";
import Layer from "ol/layer/Layer.js";
import WebGLTileLayer from "ol/layer/WebGLTile.js";
import Projection from "ol/proj/Projection.js";
import DataTile from "ol/source/DataTile.js";
import TileGrid from "ol/tilegrid/TileGrid.js";

import { octets, picture } from "./api.js";
import { Motion } from "./motion.js";

const CLOSEST = 1 / 48; // pixels of the scene per pixel of the screen
const MISSING = 255; // octet of a map's tile without data
const STILL = matchMedia("(prefers-reduced-motion: reduce)").matches;
const FLY = STILL ? 0 : 450; // milliseconds

export const COLOURS = { yellow: [255, 214, 10], cyan: [0, 229, 255], magenta: [255, 64, 200] };

// A map's tile holds 200 × probability; above the cut it is the class. The cut is a variable of
// the shader: moving it loads nothing and computes nothing but the picture. One look at the texture
// and one comparison for each pixel of the screen: that runs without a graphics card, too.
const VARIABLES = { cut: 100.5 / 255, red: 255, green: 214, blue: 10, strength: 0.6 };
const CLEAR = ["color", 0, 0, 0, 0];
const CUT_STYLE = {
  variables: VARIABLES,
  color: [
    "case",
    [">", ["band", 1], ["var", "cut"]],
    ["color", ["var", "red"], ["var", "green"], ["var", "blue"], ["var", "strength"]],
    CLEAR,
  ],
};
const VIRIDIS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];
const RAMP_STYLE = {
  variables: VARIABLES,
  color: [
    "case",
    ["==", ["band", 1], 0],
    CLEAR,
    ["interpolate", ["linear"], ["band", 1], ...VIRIDIS.flatMap((colour, i) => [(50 * i) / 255, colour])],
  ],
};

/** The octets of a tile, no data as 0: that is never mapped. */
async function loadMapTile(path, signal) {
  const found = await octets(path, signal);
  for (let i = 0; i < found.length; i++) if (found[i] === MISSING) found[i] = 0;
  return found;
}

// OpenLayers asks for antialiasing and a buffer that is kept. Upright tiles need neither, and
// without a graphics card the two take most of the time of a frame.
const getContext = HTMLCanvasElement.prototype.getContext;
HTMLCanvasElement.prototype.getContext = function lean(type, attributes) {
  const wanted = type.startsWith("webgl") ? { ...attributes, antialias: false, preserveDrawingBuffer: false } : attributes;
  return getContext.call(this, type, wanted);
};

/** The layer of a map, which may be drawn with fewer pixels than the screen has. */
class MapLayer extends WebGLTileLayer {
  constructor(motion) {
    super({ style: CUT_STYLE, visible: false, cacheSize: 256 });
    this.motion = motion;
  }

  render(frame, target) {
    const { pixelRatio } = frame;
    frame.pixelRatio = pixelRatio * this.motion.sharpness;
    try {
      return super.render(frame, target);
    } finally {
      frame.pixelRatio = pixelRatio;
    }
  }
}

export class SceneMap {
  constructor(below, target, drawMarks) {
    this.drawMarks = drawMarks;
    this.sceneLayer = new WebGLTileLayer({ cacheSize: 256 });
    this.motion = new Motion(() => this.map.render());
    this.left = new MapLayer(this.motion);
    this.right = new MapLayer(this.motion);
    this.marks = new Layer({ source: null, render: (frame) => this.renderMarks(frame), zIndex: 5 });
    this.canvas = document.createElement("canvas");
    this.canvas.className = "marks";
    this.drawn = null;
    this.dirty = true;
    this.swipeAt = null;
    for (const layer of [this.left, this.right]) {
      layer.on("prerender", (event) => this.clip(event, layer));
      layer.on("postrender", (event) => event.context.disable(event.context.SCISSOR_TEST));
    }
    this.base = new OlMap({ target: below, controls: [], interactions: [], layers: [this.sceneLayer] });
    this.map = new OlMap({
      target,
      controls: [],
      interactions: defaultInteractions({ keyboard: false, altShiftDragRotate: false, pinchRotate: false, doubleClickZoom: false }),
      layers: [this.left, this.right, this.marks],
    });
    this.map.on("postrender", () => this.motion.drawn());
  }

  /** Show another scene; the view goes to the whole of it. */
  open(scene) {
    this.scene = scene;
    const extent = [0, -scene.rows, scene.columns, 0];
    this.projection = new Projection({ code: "scene-pixels", units: "pixels", extent });
    const resolutions = Array.from({ length: scene.zooms }, (_, z) => 2 ** (scene.zooms - 1 - z));
    this.grid = new TileGrid({ extent, origin: [0, 0], resolutions, tileSize: 256 });
    const around = 0.5 * Math.max(scene.rows, scene.columns);
    const view = new View({
      projection: this.projection,
      extent: [-around, -scene.rows - around, scene.columns + around, around],
      constrainOnlyCenter: true,
      enableRotation: false,
      center: [scene.columns / 2, -scene.rows / 2],
      resolution: 1,
      minResolution: CLOSEST,
      maxResolution: (2 * Math.max(scene.rows, scene.columns)) / 256,
      smoothResolutionConstraint: false,
      constrainResolution: false,
    });
    this.base.setView(view);
    this.map.setView(view);
    this.fit(0);
  }

  source(loader, bandCount) {
    return new DataTile({
      loader, bandCount, projection: this.projection, tileGrid: this.grid, tileSize: 256, interpolate: false, transition: 0, wrapX: false,
    });
  }

  /** Show the scene's bands: `query` is that of its tiles. */
  showScene(query) {
    const source = this.source((z, x, y, { signal } = {}) => picture(`tiles/scene/${z}/${x}/${y}?${query}`, signal), 4);
    this.sceneLayer.setSource(source);
  }

  /** Load again what could not be had yet. */
  reload() {
    this.sceneLayer.getSource()?.refresh();
  }

  /** Show a map, or none, in one of the two layers. */
  showMap(layer, map) {
    if (layer.get("mapId") !== (map?.id ?? null)) {
      layer.set("mapId", map?.id ?? null);
      layer.setSource(
        map
          ? this.source((z, x, y, { signal } = {}) => loadMapTile(`tiles/map/${map.id}/${z}/${x}/${y}`, signal), 1)
          : null,
      );
    }
    layer.setVisible(Boolean(map));
  }

  /** Colour and strength of both maps; `ramp`: their probability in colours. */
  paint({ colour, strength, ramp }) {
    const [red, green, blue] = COLOURS[colour];
    for (const layer of [this.left, this.right]) {
      if (layer.get("ramp") !== ramp) {
        const { cut } = layer.get("cut") ?? VARIABLES;
        layer.setStyle({ ...(ramp ? RAMP_STYLE : CUT_STYLE), variables: { ...VARIABLES, cut } });
        layer.set("ramp", ramp);
      }
      layer.updateStyleVariables({ red, green, blue, strength });
    }
  }

  /** Map what is above a cut from 0 to 200. */
  cut(layer, at) {
    const variables = { cut: (at + 0.5) / 255 };
    if (layer.get("cut")?.cut === variables.cut) return;
    this.motion.step();
    layer.set("cut", variables, true);
    layer.updateStyleVariables(variables);
  }

  /** Where left and right map meet, as a share of the map's width, or null for the right one alone. */
  swipe(at) {
    this.swipeAt = at;
    this.map.render();
  }

  clip({ context: gl }, layer) {
    if (this.swipeAt !== null) {
      const { width, height } = gl.canvas;
      const x = Math.round(width * this.swipeAt);
      gl.enable(gl.SCISSOR_TEST);
      if (layer === this.left) gl.scissor(0, 0, x, height);
      else gl.scissor(x, 0, width - x, height);
    }
    // A buffer that is not kept is empty after it was shown, not after it was drawn.
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.clearColor(0, 0, 0, 0);
    gl.clear(gl.COLOR_BUFFER_BIT);
  }

  /** Draw the marks anew at the next frame. */
  touch() {
    this.dirty = true;
    this.marks.changed();
  }

  renderMarks(frame) {
    const [width, height] = frame.size;
    const ratio = frame.pixelRatio;
    const { center, resolution } = frame.viewState;
    const seen = `${center} ${resolution} ${width} ${height} ${ratio}`;
    if (!this.dirty && seen === this.drawn) return this.canvas;
    const { canvas } = this;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      Object.assign(canvas.style, { position: "absolute", width: `${width}px`, height: `${height}px`, pointerEvents: "none" });
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const scale = 1 / resolution;
    const place = (x, y) => [(x - center[0]) * scale + width / 2, (y + center[1]) * scale + height / 2];
    const corner = [center[0] - (width / 2) * resolution, -center[1] - (height / 2) * resolution];
    const view = { left: corner[0], top: corner[1], right: corner[0] + width * resolution, bottom: corner[1] + height * resolution };
    this.drawMarks(context, { place, scale, view, width, height });
    this.drawn = seen;
    this.dirty = false;
    return canvas;
  }

  /** The place, [x, y] in columns and rows, under a point of the screen. */
  placeAt(event) {
    const [x, y] = this.map.getEventCoordinate(event);
    return [x, -y];
  }

  /** The pixel of a place, or null outside of the scene. */
  pixelAt([x, y]) {
    const [column, row] = [Math.floor(x), Math.floor(y)];
    const inside = this.scene && row >= 0 && column >= 0 && row < this.scene.rows && column < this.scene.columns;
    return inside ? { row, column } : null;
  }

  get resolution() {
    return this.map.getView().getResolution();
  }

  fit(duration = FLY) {
    const { rows, columns } = this.scene;
    this.resize();
    this.map.getView().fit([0, -rows, columns, 0], { padding: [52, 16, 44, 16], duration });
  }

  /** Take up the place that there is now. */
  resize() {
    this.base.updateSize();
    this.map.updateSize();
  }

  zoom(factor) {
    const view = this.map.getView();
    view.animate({ resolution: view.getConstrainedResolution(this.resolution / factor), duration: STILL ? 0 : 180 });
  }

  /** Fly to a pixel, near enough to see what it is. */
  fly({ row, column }, nearest = 1 / 6) {
    const view = this.map.getView();
    view.cancelAnimations();
    view.animate({ center: [column + 0.5, -row - 0.5], resolution: Math.min(this.resolution, nearest), duration: FLY });
  }

  /** Move the view where a pixel is not in it. */
  reveal({ row, column }) {
    const view = this.map.getView();
    const [west, south, east, north] = view.calculateExtent(this.map.getSize());
    const edge = 0.08 * (east - west);
    const [x, y] = [column + 0.5, -row - 0.5];
    if (x < west + edge || x > east - edge || y < south + edge || y > north - edge) {
      view.animate({ center: [x, y], duration: STILL ? 0 : 120 });
    }
  }
}
