// studies.js: studies that the server runs into folders below its --root – start one, watch it, look at what it left.
import { file, folder, watch } from "./ask.js";
import { copyBar } from "./copy.js";
import { csv } from "./csv.js";
import { button, choice, el, labelled, say, show, stage } from "./dom.js";

const OURS = new Set(["out", "files", "only-trial", "threads", "json", "bank", "normalize"]);
const FIRST = new Set(["trials", "seed", "lambda", "scale", "figures"]);
const time = (seconds) => seconds === null || seconds === undefined ? "" : seconds < 90 ? `${Math.round(seconds)} s left` : `${Math.round(seconds / 60)} min left`;
const bytes = (n) => n < 1e4 ? `${n} bytes` : n < 1e7 ? `${Math.round(n / 1e3)} kB` : `${Math.round(n / 1e6)} MB`;

async function save(path, name) {
  const link = el("a", { href: URL.createObjectURL(await file(path)), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

async function claims(path) {
  const { names, rows } = csv(await (await file(path)).text());
  return el("div", { class: "wide" }, el("table", { class: "claims" }, el("caption", {}, "Claims"),
    el("thead", {}, el("tr", {}, names.map((name) => el("th", { scope: "col" }, name)))),
    el("tbody", {}, rows.map((row) => el("tr", {}, names.map((name) => el("td", {}, show(row[name]))))))));
}

export const studies = {
  name: "studies",
  title: "Studies",
  words: "The paper's simulations, and ours, at the size you want. What they write stays below the server's --root.",
  defaults: () => ({ study: "study coupled", folder: "" }),

  open(place, state, world) {
    if (!world.root) {
      place.append(el("p", { class: "hint" }, "Studies write files, and this server has no folder for them. Start it with --root DIR; the Phase view runs one study without files."));
      return undefined;
    }
    const at = state.values, kinds = world.verbs.verbs ?? world.verbs;
    const verbs = kinds.filter((one) => /^study \w/.test(one.name) || one.name === "report");
    const verb = () => verbs.find((one) => one.name === at.study) ?? verbs[0];
    const form = el("form", { class: "controls", onsubmit: (event) => event.preventDefault() });
    const work = stage("Nothing runs."), folders = el("div", {}), shown = stage("Choose a folder.");
    let over = false, stop = null, urls = [];
    const values = {};

    const options = () => {
      const out = {};
      for (const p of verb().parameters) {
        const text = (values[p.name] ?? "").trim();
        if (!text) continue;
        out[p.name] = p.kind === "flag" ? true : p.kind === "int" || p.kind === "real" ? Number(text) : text;
      }
      return { ...out, out: (values.out || verb().name.split(" ").at(-1)).replace(/[^A-Za-z0-9._-]/g, "-") };
    };

    function input(p) {
      const take = (box) => () => { values[p.name] = box.value; };
      const box = p.kind === "choice" ? el("select", {}, el("option", { value: "" }, `${p.default ?? ""} (usual)`), p.value.split("|").map((word) => el("option", { value: word }, word))) :
        el("input", { name: p.name, spellcheck: "false", value: values[p.name] ?? "" });
      box.addEventListener("change", take(box));
      return labelled(p.name, box, p.default && p.kind !== "choice" ? `${p.help} (usual: ${p.default})` : p.help);
    }
    function draw() {
      const mine = verb().parameters.filter((p) => !OURS.has(p.name) && !p.writes);
      form.replaceChildren(
        choice("study", verbs.map((one) => ({ value: one.name, text: `${one.name.replace("study ", "")}: ${one.summary}` })), verb().name, (v) => {
          state.set({ study: v });
          for (const key of Object.keys(values)) delete values[key];
          draw();
        }),
        input({ name: "out", kind: "text", default: verb().name.split(" ").at(-1), help: "folder below the server's root; one that is there goes on, or is replaced" }),
        ...mine.filter((p) => FIRST.has(p.name)).map(input),
        el("details", { class: "field" }, el("summary", {}, "More parameters"), el("div", { class: "pair" }, mine.filter((p) => !FIRST.has(p.name)).map(input))),
        el("div", { class: "buttons" }, button("Start", start, { class: "main" }), button("Stop", () => stop?.abort(), { disabled: !stop })));
    }

    async function start() {
      stop?.abort();
      const mine = stop = new AbortController(), asked = options();
      draw();
      const bar = el("progress", { max: 1, "aria-label": "progress" }), note = el("p", { class: "hint" }, "Starting…");
      work.show(el("h3", {}, `${verb().name} into ${asked.out}`), bar, note);
      try {
        const doc = await watch(verb().name, asked, (p) => {
          if (p.share !== null) bar.value = p.share;
          note.textContent = `${p.phase} ${p.share === null ? "" : `${Math.round(100 * p.share)} %, `}${time(p.seconds_left)}`;
        }, mine.signal);
        if (over) return;
        work.show(el("p", { id: "done" }, `${verb().name} is done${doc.seconds ? ` after ${show(doc.seconds, 3)} s` : ""}: ${asked.out}.`));
        say("The study is done");
        await list();
        look(asked.out);
      } catch (error) {
        if (over) return;
        if (error.name === "AbortError") work.show(el("p", { class: "hint" }, "Stopped. Started again with the same parameters it goes on from there."));
        else work.fail(error, start);
      } finally {
        if (mine === stop) stop = null;
        if (!over) draw();
      }
    }

    async function list() {
      try {
        const { files } = await folder();
        const names = files.filter((one) => one.folder).map((one) => one.name);
        folders.replaceChildren(el("h3", {}, "Folders"), names.length === 0 ? el("p", { class: "hint" }, "None yet: start a study.") :
          el("ul", { class: "legend" }, names.map((name) => el("li", {}, button(name, () => look(name), { "aria-pressed": String(name === at.folder) })))));
      } catch (error) {
        folders.replaceChildren(el("p", { class: "hint" }, error.message));
      }
    }
    async function look(name) {
      state.set({ folder: name });
      shown.busy("Looking…");
      try {
        const { files } = await folder(name);
        urls.forEach((url) => URL.revokeObjectURL(url));
        const pictures = await Promise.all(files.filter((one) => one.name.endsWith(".svg")).map(async (one) => {
          const url = URL.createObjectURL(await file(`${name}/${one.name}`));
          urls.push(url);
          return el("figure", {}, el("figcaption", {}, one.name.replace(".svg", "")), el("img", { src: url, alt: `figure ${one.name.replace(".svg", "")} of ${name}` }));
        }));
        const table = files.some((one) => one.name === "claims.csv") ? await claims(`${name}/claims.csv`) : null;
        if (over) return;
        shown.show(el("h3", {}, name), el("div", { class: "gallery" }, pictures), table,
          el("div", { class: "wide" }, el("table", {}, el("caption", {}, "Files"), el("tbody", {}, files.filter((one) => !one.folder).map((one) =>
            el("tr", {}, el("td", {}, one.name), el("td", {}, bytes(one.bytes)), el("td", {}, button("Download", () => save(`${name}/${one.name}`, one.name), { class: "small", "aria-label": `Download ${one.name}` }))))))));
      } catch (error) {
        if (!over) shown.fail(error, () => look(name));
      }
    }
    draw();
    place.append(form, work, folders, shown, copyBar(() => [verb().name, options()]));
    list();
    if (at.folder) look(at.folder);
    return () => {
      over = true;
      stop?.abort();
      urls.forEach((url) => URL.revokeObjectURL(url));
    };
  },
};
