// The line at the foot of the map: the scale, and the pixel under the pointer.

import { $ } from "./dom.js";
import { many, metres } from "./format.js";
import { store, WORDS } from "./session.js";

let under = null; // the pixel under the pointer

export function pixelUnder() {
  return under;
}

/** Tell the scale, and of a pixel its place and label. */
export function showReadout(sceneMap, pixel = under) {
  under = pixel;
  const { scene, pixels } = store.state;
  if (!scene) return;
  const parts = [];
  if (pixel) {
    parts.push(`row <b>${pixel.row}</b> column <b>${pixel.column}</b>`);
    if (scene.georeferenced) {
      const [a, b, c, d, e, f] = scene.transform;
      const [x, y] = [pixel.column + 0.5, pixel.row + 0.5];
      const digits = Math.abs(a) + Math.abs(b) < 0.01 ? 5 : 1;
      parts.push(`${(a * x + b * y + c).toFixed(digits)}, ${(d * x + e * y + f).toFixed(digits)}`);
    }
    const label = pixels.get(pixel.row * scene.columns + pixel.column);
    if (label) parts.push(`<b>${WORDS[label]}</b>`);
  }
  const scale = scaleBar(scene, sceneMap.resolution);
  $("#readout").innerHTML = [scale.markup, ...parts].join(" · ");
  const bar = $("#readout .scale");
  if (bar) bar.style.width = `${scale.width}px`;
}

function scaleBar({ pixel }, resolution) {
  const size = pixel ? pixel[0] : 1;
  const most = 90 * resolution * size;
  const power = 10 ** Math.floor(Math.log10(most));
  const length = [5, 2, 1].map((digit) => digit * power).find((value) => value <= most);
  const words = pixel ? metres(length) : many(length, "pixel");
  return { width: length / (resolution * size), markup: `<span class="scale"></span>${words}` };
}
