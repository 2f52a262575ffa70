// How the scene is shown (bands and contrast), and how maps lie over it.

import { $, $$, fill } from "./dom.js";
import { plain } from "./format.js";
import { icon } from "./icons.js";
import { COLOURS } from "./map.js";
import { store } from "./session.js";

const PRESETS = { "true-colour": "True colour", "false-colour": "False colour", pca: "Principal components" };
const GREY = "One band";
const THREE = "Three bands";

store.set({
  display: null, // {preset} or {bands: [red, green, blue]} or {bands: [grey]}; and clip
  overlay: { colour: "yellow", strength: 0.65, ramp: false },
});

function bandName({ number, name, wavelength, used }) {
  const words = wavelength === null ? (name ?? `band ${number}`) : `${Math.round(wavelength)} nm`;
  return `${number}: ${words}${used ? "" : " (left out)"}`;
}

function firstDisplay({ presets }) {
  if (presets["three-bands"]) return { bands: presets["three-bands"], clip: 2 };
  return { preset: Object.keys(PRESETS).find((name) => name in presets) ?? "pca", clip: 2 };
}

function words(display) {
  if (display.preset) return PRESETS[display.preset];
  return display.bands.length === 1 ? `Band ${display.bands[0]}` : `Bands ${display.bands.join(", ")}`;
}

/** Bands to begin with when the user chooses three of their own. */
function startBands(scene, display) {
  if (display.bands?.length === 3) return display.bands;
  const names = [display.preset, "three-bands", "false-colour", "true-colour"];
  const known = names.map((name) => scene.presets[name]).find(Boolean);
  if (known) return known;
  const used = scene.bands.filter((band) => band.used).map((band) => band.number);
  return [0.75, 0.5, 0.25].map((share) => used[Math.floor(share * (used.length - 1))]);
}

export function startDisplay(sceneMap) {
  const button = $("#display-button");
  const panel = $("#display-panel");
  store.watch(["scene"], ({ scene, display }) => scene && !display && store.set({ display: firstDisplay(scene) }));
  store.watch(["scene", "display"], ({ scene, display }) => {
    if (!scene || !display) return;
    const query = display.preset ? `preset=${display.preset}` : `bands=${display.bands.join(",")}`;
    sceneMap.showScene(`${query}&clip=${display.clip}`);
  });
  store.watch(["scene", "display", "overlay"], (state) => {
    if (!state.scene || !state.display) return;
    fill(button, `${icon("palette")}<span>${words(state.display)}</span>${icon("chevron")}`);
    render(panel, state);
  });
  store.watch(["overlay"], ({ overlay }) => sceneMap.paint(overlay));
  button.addEventListener("click", () => toggleDisplay());
  panel.addEventListener("click", (event) => {
    const { preset, mode, colour } = event.target.closest("button")?.dataset ?? {};
    const { display, overlay, scene } = store.state;
    if (preset) store.set({ display: { preset, clip: display.clip } });
    if (mode === "three") store.set({ display: { bands: startBands(scene, display), clip: display.clip } });
    if (mode === "grey") store.set({ display: { bands: [startBands(scene, display)[0]], clip: display.clip } });
    if (colour) store.set({ overlay: { ...overlay, colour, ramp: false } });
    if (mode === "ramp") store.set({ overlay: { ...overlay, ramp: !overlay.ramp } });
  });
  panel.addEventListener("input", ({ target }) => {
    const { display, overlay } = store.state;
    if (target.id === "strength") store.set({ overlay: { ...overlay, strength: Number(target.value) } });
    if (target.id === "clip") $("#clip-value").textContent = `${target.value} %`;
    if (target.dataset.channel) {
      const bands = [...display.bands];
      bands[Number(target.dataset.channel)] = Number(target.value);
      store.set({ display: { ...display, bands } });
    }
  });
  panel.addEventListener("change", ({ target }) => {
    if (target.id === "clip") store.set({ display: { ...store.state.display, clip: Number(target.value) } });
  });
}

export function toggleDisplay(open = $("#display-panel").hidden) {
  $("#display-panel").hidden = !open;
  $("#display-button").setAttribute("aria-expanded", String(open));
  if (open) $("#display-panel button")?.focus();
  else if ($("#display-panel").contains(document.activeElement)) $("#display-button").focus();
}

/** Go on to the next choice of bands, then to the first again. */
export function nextDisplay() {
  const { scene, display } = store.state;
  const three = scene.presets["three-bands"];
  const choices = Object.keys(PRESETS).filter((name) => name in scene.presets).map((preset) => ({ preset }));
  if (three) choices.unshift({ bands: three });
  const at = choices.findIndex(({ preset, bands }) => preset === display.preset && String(bands) === String(display.bands));
  store.set({ display: { ...choices[(at + 1) % choices.length], clip: display.clip } });
}

function render(panel, { scene, display, overlay }) {
  if (!panel.firstChild) {
    panel.innerHTML = `<h2>Bands</h2><div class="presets"></div><div class="three"></div>
      <label><span class="what row apart">Contrast: cut off at either end <output id="clip-value"></output></span><input type="range" id="clip" min="0" max="10" step="0.5"></label>
      <h2>Map</h2><div class="row apart" id="overlay-colours"></div>
      <label><span class="what">Strength</span><input type="range" id="strength" min="0.1" max="1" step="0.05"></label>`;
  }
  const press = (on) => `aria-pressed="${Boolean(on)}"`;
  const three = !display.preset && display.bands.length === 3;
  const grey = !display.preset && display.bands.length === 1;
  const presets = Object.keys(PRESETS).filter((name) => name in scene.presets);
  fill(
    $(".presets", panel),
    presets.map((name) => `<button class="button" data-preset="${name}" ${press(display.preset === name)}>${name === "pca" ? "PCA" : PRESETS[name]}</button>`).join("") +
      `<button class="button" data-mode="three" ${press(three)}>${THREE}</button><button class="button" data-mode="grey" ${press(grey)}>${GREY}</button>`,
  );
  const names = three ? ["Red", "Green", "Blue"] : grey ? ["Grey"] : [];
  const holder = $(".three", panel);
  const options = scene.bands.map((band) => `<option value="${band.number}">${plain(bandName(band))}</option>`).join("");
  fill(holder, names.map((name, i) => `<label><span class="what">${name}</span><select data-channel="${i}">${options}</select></label>`).join(""));
  holder.hidden = !names.length;
  $$("select", holder).forEach((select, i) => (select.value = display.bands[i]));
  const clip = $("#clip", panel);
  if (document.activeElement !== clip) clip.value = display.clip;
  $("#clip-value").textContent = `${clip.value} %`;
  $("#strength", panel).value = overlay.strength;
  fill(
    $("#overlay-colours"),
    `<span class="row">${Object.keys(COLOURS).map((name) => `<button class="swatch ${name}" data-colour="${name}" aria-label="Map in ${name}" ${press(overlay.colour === name && !overlay.ramp)}></button>`).join("")}</span>
     <button class="button" data-mode="ramp" ${press(overlay.ramp)}>Probability <kbd>O</kbd></button>`,
  );
}
