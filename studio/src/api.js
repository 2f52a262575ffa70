// Requests to the server (API.md). Its errors are words for people; `Gone` is no answer at all.

export class ServerError extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

export class Gone extends Error {}

export const token = new URLSearchParams(location.search).get("token") ?? "";
export const client = Math.random().toString(36).slice(2, 10);

const headers = { "X-Thonecls-Token": token, "X-Thonecls-Client": client };

async function ask(path, options = {}) {
  let answer;
  try {
    answer = await fetch(path, { ...options, headers: { ...headers, ...options.headers } });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Gone("The server does not answer.");
  }
  if (answer.ok) return answer;
  let words = `${answer.status} ${answer.statusText}`;
  try {
    words = (await answer.json()).error ?? words;
  } catch {
    // not ours: the status must do
  }
  throw new ServerError(answer.status, words);
}

export async function get(path, options) {
  return (await ask(`/api/${path}`, options)).json();
}

let open = 0;
let onBusy = () => {};
const SHORT = 250; // milliseconds: what takes less needs no sign

/** Be told when requests take their time, and when they are answered. */
export function watchBusy(call) {
  onBusy = call;
}

export async function send(method, path, body = {}) {
  const options = { method, body: JSON.stringify(body), headers: { "Content-Type": "application/json" } };
  open += 1;
  const late = setTimeout(() => onBusy(true), SHORT);
  try {
    return await (await ask(`/api/${path}`, options)).json();
  } finally {
    clearTimeout(late);
    open -= 1;
    if (!open) onBusy(false);
  }
}

export async function octets(path, signal) {
  return new Uint8Array(await (await ask(`/api/${path}`, { signal })).arrayBuffer());
}

export async function picture(path, signal) {
  const blob = await (await ask(`/api/${path}`, { signal })).blob();
  return createImageBitmap(blob, { premultiplyAlpha: "none", colorSpaceConversion: "none" });
}

/** An address that the browser opens by itself, where no header can be set. */
export function address(path) {
  return `/api/${path}?token=${encodeURIComponent(token)}`;
}

const EVENTS = ["hello", "labels", "maps", "job", "settings", "suggestions", "verification", "export", "overview", "trouble"];
const AGAIN = 1000; // milliseconds

/** Listen to the server's events for ever: `on(name, data)`; `lost()` when it is gone. */
export function listen(on, lost) {
  const source = new EventSource(address("events"));
  for (const name of EVENTS) {
    source.addEventListener(name, (event) => on(name, JSON.parse(event.data)));
  }
  source.onerror = () => {
    source.close();
    lost();
    setTimeout(() => listen(on, lost), AGAIN);
  };
}
