// Numbers as people read them.

const grouped = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

export const NARROW = "\u202f";

export function count(n) {
  return grouped.format(n);
}

/** A share as percent, with as many digits as say something. */
export function percent(share) {
  if (share === null || share === undefined || Number.isNaN(share)) return "–";
  const value = 100 * share;
  if (value > 0 && value < 0.01) return `<${NARROW}0.01${NARROW}%`;
  const digits = value >= 99.95 || value === 0 ? 0 : value >= 10 ? 1 : 2;
  return `${value.toFixed(digits)}${NARROW}%`;
}

export function hectares(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const digits = value >= 100 || value === 0 ? 0 : value >= 10 ? 1 : 2;
  return value >= 1000 ? `${grouped.format(value)}${NARROW}ha` : `${value.toFixed(digits)}${NARROW}ha`;
}

export function seconds(value) {
  if (value < 1) return `${Math.max(0.01, value).toFixed(2)}${NARROW}s`;
  if (value < 60) return `${value.toFixed(value < 10 ? 1 : 0)}${NARROW}s`;
  return `${Math.floor(value / 60)}${NARROW}min ${Math.round(value % 60)}${NARROW}s`;
}

export function bytes(value) {
  if (value < 1000) return `${value}${NARROW}B`;
  if (value < 1e6) return `${(value / 1e3).toFixed(0)}${NARROW}kB`;
  return `${(value / 1e6).toFixed(value < 1e7 ? 1 : 0)}${NARROW}MB`;
}

export function metres(value) {
  return value >= 1000 ? `${+(value / 1000).toPrecision(3)}${NARROW}km` : `${+value.toPrecision(3)}${NARROW}m`;
}

/** A word with its number, in the singular where there is one. */
export function many(n, word, words = `${word}s`) {
  return `${count(n)} ${n === 1 ? word : words}`;
}

/** Words of the library as a sentence. */
export function sentence(words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.!?]$/.test(words) ? "" : "."}`;
}

/** Text that came from a file or a server, safe as markup. */
export function plain(text) {
  return String(text).replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`);
}
