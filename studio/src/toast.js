// Short words at the foot of the map that go away by themselves.

import { $, $$ } from "./dom.js";
import { plain, sentence } from "./format.js";
import { icon } from "./icons.js";

const SHOWN = { "": 4000, poor: 10_000 }; // milliseconds
const MOST = 3;

export function toast(words, level = "") {
  const element = document.createElement("div");
  element.className = `toast ${level}`;
  element.innerHTML = `${icon(level ? "warning" : "check")}<span>${plain(level ? sentence(words) : words)}</span>`;
  $("#toasts").append(element);
  while ($$("#toasts .toast").length > MOST) $("#toasts .toast").remove();
  setTimeout(() => element.remove(), SHOWN[level]);
}
