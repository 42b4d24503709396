// job.js: a study or a sweep that runs, one at a time. It goes on while other views are shown, until it is done or stopped, or
// the page is left.
import { watch } from "./ask.js";
import { el, say, show } from "./dom.js";

let job = null; // the last one: {verb, options, stop, at, doc, error}; at: how far it is
const listeners = new Set();
const runs = () => job !== null && job.doc === null && job.error === null;
const tell = (now) => listeners.forEach((hear) => hear(now));
const left = (seconds) => seconds === null || seconds === undefined ? "" : seconds < 90 ? `${Math.round(seconds)} s left` : `${Math.round(seconds / 60)} min left`;

export async function startJob(verb, options) {
  if (runs()) return;
  job = { verb, options, stop: new AbortController(), at: null, doc: null, error: null };
  tell(true);
  try {
    job.doc = await watch(verb, options, (at) => {
      job.at = at;
      tell(true);
    }, job.stop.signal);
    say(`${verb} is done`);
  } catch (error) {
    job.error = error;
  }
  tell(true);
}

export const stopJob = () => job?.stop.abort();

// listen(job, now): at once, where there is one, and then (now is true) whenever there is news; the buttons that start and stop
// one are reported too. Returns a function that ends it.
export function followJob(go, halt, listen) {
  const hear = (now) => {
    go.disabled = runs();
    halt.disabled = !runs();
    if (job) listen(job, now);
  };
  listeners.add(hear);
  hear(false);
  return () => listeners.delete(hear);
}

// How it stands, into a stage.
export function showJob(work, again) {
  const { verb, options, at, doc, error } = job;
  if (doc) work.show(el("p", { id: "done" }, `${verb} is done${doc.seconds ? ` after ${show(doc.seconds, 3)} s` : ""}: ${options.out}.`));
  else if (error?.name === "AbortError") work.empty(`${verb} was stopped.${/^(study|report)/.test(verb) ? " Start it again with the same parameters to continue." : ""}`);
  else if (error) work.fail(error, again);
  else
    work.show(el("h3", {}, `${verb} into ${options.out}`), el("progress", { max: 1, value: at?.share, "aria-label": "progress" }),
      el("p", { class: "hint" }, at ? `${at.phase} ${at.share === null ? "" : `${Math.round(100 * at.share)} %, `}${left(at.seconds_left)}` : "Starting…"));
}

addEventListener("beforeunload", (event) => runs() && event.preventDefault());
