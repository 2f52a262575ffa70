// What lies over the page before there is a scene, or where there can be none.

import { $ } from "./dom.js";
import { plain } from "./format.js";

function setInert(inert) {
  for (const part of ["#rail", "#map", "#map-top", "#zoom", "#below", "#side"]) $(part).inert = inert;
}

export function curtain(title, body) {
  $("#curtain").hidden = false;
  setInert(true);
  $("#curtain").innerHTML = `<div class="card" role="${title.startsWith("Opening") ? "status" : "alert"}"><h1>${title}</h1>${body}</div>`;
}

export function curtainFor(error) {
  if (error.status === 401) {
    return curtain(
      "This address has no valid key",
      `<p>The page is opened with a key in its address, which only this machine knows. Open the address that
       <code>thonecls studio</code> printed, or start it again:</p><pre>thonecls studio scene.tif</pre>`,
    );
  }
  if (error.status) return curtain("The scene cannot be shown", `<p>${plain(error.message)}</p>`);
  return curtain(
    "The server does not answer",
    `<p>It may have been stopped. Start it again, and this page goes on where it was: every label is on disk.</p>
     <pre>thonecls studio scene.tif</pre>`,
  );
}

/** Take the curtain away. */
export function lift() {
  $("#curtain").hidden = true;
  setInert(false);
}
