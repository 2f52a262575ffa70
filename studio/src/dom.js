// A little help with the document.

import { icon } from "./icons.js";
import { plain } from "./format.js";

export const $ = (selector, root = document) => root.querySelector(selector);
export const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

const filled = new WeakMap(); // of an element: its content

/** Replace an element's content where it differs, so that focus stays where nothing changed. */
export function fill(element, markup) {
  if (filled.get(element) === markup) return;
  const focused = element.contains(document.activeElement) ? document.activeElement.dataset.act : null;
  element.innerHTML = markup;
  filled.set(element, markup);
  if (focused) element.querySelector(`[data-act="${focused}"]`)?.focus();
}

/** Put the icons into all elements that name one. */
export function drawIcons(root = document) {
  for (const element of $$("[data-icon]", root)) element.insertAdjacentHTML("afterbegin", icon(element.dataset.icon));
}

export function message(level, text, name = "warning") {
  return `<div class="message ${level}">${icon(name)}<p>${plain(text)}</p></div>`;
}

/** Call the function that a button's data-act names. */
export function onAct(root, actions) {
  root.addEventListener("click", (event) => {
    const button = event.target.closest("[data-act]");
    if (!button || button.disabled || !root.contains(button)) return;
    actions[button.dataset.act]?.(button);
  });
}
