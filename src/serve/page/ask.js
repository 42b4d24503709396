// ask.js: the server's verbs as functions. The token comes in the address (#token=…), is taken out of it at once
// and kept for this tab.

const KEY = "cgam-token";
let token = "";

export function takeToken() {
  const found = /(?:^#|&)token=([^&]+)/.exec(location.hash);
  if (found) {
    sessionStorage.setItem(KEY, decodeURIComponent(found[1]));
    const rest = location.hash.slice(1).split("&").filter((part) => !part.startsWith("token=")).join("&");
    history.replaceState(null, "", rest ? `#${rest}` : location.pathname);
  }
  token = sessionStorage.getItem(KEY) ?? "";
}

export class ApiError extends Error {
  constructor(message, code) {
    super(message);
    this.code = code;
    this.hint = code === 401 ? "Open the address that cgam serve printed, with its token." :
      code === 429 || code === 503 ? "The server is busy; try again in a moment." :
      code === 0 ? "Is cgam serve still running?" : "";
  }
}

async function ask(path, options, signal, accept) {
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  if (accept) headers.Accept = accept;
  if (options) headers["Content-Type"] = "application/json";
  let answer;
  try {
    answer = await fetch(path, { method: options ? "POST" : "GET", headers, signal, body: options ? JSON.stringify(options) : undefined });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError("The server does not answer.", 0);
  }
  if (!answer.ok) {
    const text = await answer.text();
    let line = text;
    try { line = JSON.parse(text).error; } catch { /* not of our server's making */ }
    throw new ApiError(line || `status ${answer.status}`, answer.status);
  }
  return answer;
}

const route = (verb) => `api/${verb.split(" ").join("/")}`;

// The document of a verb.
export async function call(verb, options = {}, signal) {
  return (await ask(route(verb), options, signal)).json();
}

// The same with progress told on the way: {phase, done, total, share, seconds_left}.
export async function watch(verb, options, progress, signal) {
  const answer = await ask(route(verb), options, signal, "text/event-stream");
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) throw new ApiError("The server ended before it answered.", 0);
    text += value;
    for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) {
      const lines = text.slice(0, end).split("\n");
      const get = (name) => lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      const data = JSON.parse(get("data") ?? "{}");
      if (get("event") === "progress") progress(data);
      else if (get("event") === "error") throw new ApiError(data.error, 400);
      else if (get("event") === "document") return data;
    }
  }
}

export const here = async () => (await ask("api/here")).json();
export const verbTable = async () => (await ask("api")).json().then((table) => table.verbs);
export const folder = async (path = "") => (await ask(`api/out${path ? `/${path}` : ""}`)).json();
export const file = async (path) => (await ask(`api/out/${path}`)).blob();

// A file as a download of this name.
export async function save(path, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(await file(path)), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// Keeps one request under way: while it runs, only the latest wish is remembered.
export function latest(run) {
  let running = false, wish = null;
  return async function request(...args) {
    if (running) {
      wish = args;
      return;
    }
    running = true;
    try {
      await run(...args);
    } finally {
      running = false;
      if (wish) {
        const next = wish;
        wish = null;
        request(...next);
      }
    }
  };
}
