// Export: the files, and the command that makes them again.

import { address, send } from "./api.js";
import { $, fill, message, onAct } from "./dom.js";
import { bytes, plain, sentence } from "./format.js";
import { icon } from "./icons.js";
import { running } from "./jobs.js";
import { attempt, mapOf, store } from "./session.js";

export function startExportPanel(onCopied) {
  onAct($("#panel-export"), {
    export: exportMap,
    copy: async () => {
      try {
        await navigator.clipboard.writeText(store.state.export.command);
        onCopied("Copied");
      } catch {
        getSelection().selectAllChildren($("#command"));
        onCopied("Selected: copy it with Ctrl C");
      }
    },
  });
  store.watch(["export", "maps", "jobs", "cuts", "gone", "settings", "scene"], render);
}

export async function exportMap() {
  store.set({ tab: "export" });
  const job = await attempt(send("POST", "export", {}));
  if (job) store.set({ jobs: { ...store.state.jobs, export: job } });
}

function render(state) {
  const { export: made, gone, jobs } = state;
  const map = mapOf("run", state);
  const job = running("export", state);
  const rasters = state.scene?.georeferenced ? "GeoTIFFs that open in colour in QGIS, polygons" : "The map and its probability";
  const parts = [
    `<section><h2>Take it with you</h2><p class="note">${rasters}, your labels and a report that says how far to trust
     the map.</p></section>`,
  ];
  if (!map) {
    parts.push(`<section>${message("", "Needs a learnt map: label ten pixels of the class, and it is made.", "help")}</section>`);
    return fill($("#panel-export"), parts.join(""));
  }
  const at = state.cuts[map.id]?.at ?? Math.round(200 * map.cut);
  const lines = [`<p>${plain(map.name)}, at the cut ${(at / 200).toFixed(3)}.</p>`];
  if (jobs.export?.state === "failed") lines.push(message("poor", sentence(jobs.export.error ?? "The export failed")));
  if (made.ready && made.stale && !job) lines.push(message("check", "The map or its cut has changed since: export it again."));
  const words = job ? "Exporting" : made.ready ? "Export again" : "Export";
  const first = !made.ready || made.stale ? " primary" : "";
  lines.push(`<button class="button wide${first}" data-act="export"${gone || job ? " disabled" : ""}>${icon("download")}${words} <kbd>X</kbd></button>`);
  parts.push(`<section>${lines.join("")}</section>`);
  if (made.ready) parts.push(filesMarkup(made));
  fill($("#panel-export"), parts.join(""));
}

function filesMarkup(made) {
  const files = made.files.map(({ name, bytes: size, what }) => {
    const shown = name.endsWith(".html") ? ' target="_blank" rel="noopener"' : ` download="${plain(name)}"`;
    return `<li><span><a href="${plain(address(`export/${encodeURIComponent(name)}`))}"${shown}>${plain(name)}</a><br><small>${plain(what)}</small></span><small>${bytes(size)}</small></li>`;
  });
  return `<section><h2>Files</h2><ul class="files">${files.join("")}</ul><p class="note">In ${plain(made.folder)}</p></section>
    <section><h2>The same by command</h2>
    <div class="command"><pre id="command" tabindex="0">${plain(made.command ?? "")}</pre><button class="tool small" data-act="copy" aria-label="Copy the command" title="Copy">${icon("copy")}</button></div></section>`;
}
