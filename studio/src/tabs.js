// The tabs of the results.

import { $ } from "./dom.js";
import { drawHistogram } from "./panel-map.js";
import { store } from "./session.js";

const TABS = ["map", "next", "verify", "export"];

export function startTabs() {
  $("#tabs").addEventListener("click", (event) => {
    const button = event.target.closest("[role=tab]");
    if (button) store.set({ tab: button.id.slice(4) });
  });
  $("#tabs").addEventListener("keydown", (event) => {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!by) return;
    event.preventDefault();
    const next = TABS[(TABS.indexOf(store.state.tab) + by + TABS.length) % TABS.length];
    store.set({ tab: next });
    $(`#tab-${next}`).focus();
  });
  let before = null;
  store.watch(["tab"], ({ tab }) => {
    for (const name of TABS) {
      $(`#tab-${name}`).setAttribute("aria-selected", String(name === tab));
      $(`#tab-${name}`).tabIndex = name === tab ? 0 : -1;
      $(`#panel-${name}`).hidden = name !== tab;
    }
    if (tab !== before) store.set({ current: null });
    if (tab === "map") drawHistogram();
    before = tab;
  });
}
