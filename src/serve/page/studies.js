// studies.js: studies that the server runs into folders below its --root – start one, watch it, look at what it left.
import { file, folder, save, verbTable } from "./ask.js";
import { commandLine, copyBar, parsed } from "./copy.js";
import { csv } from "./csv.js";
import { button, checkbox, choice, el, labelled, show, stage } from "./dom.js";
import { followJob, showJob, startJob, stopJob } from "./job.js";
import { reading } from "./reading.js";

const OURS = new Set(["out", "files", "only-trial", "threads", "json", "bank", "normalize", "tables"]);
const FIRST = new Set(["trials", "seed", "lambda", "scale", "figures"]);
const bytes = (n) => n < 1e4 ? `${n} bytes` : n < 1e7 ? `${Math.round(n / 1e3)} kB` : `${Math.round(n / 1e6)} MB`;

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
  defaults: () => ({ study: "study coupled", given: "", folder: "", report: false }),

  open(place, state, world) {
    if (!world.root) {
      place.append(el("p", { class: "hint" }, "Studies write files, and this server has no folder for them. Start it with --root DIR; the Phase view runs one study without files."));
      return undefined;
    }
    const at = state.values;
    let verbs = [];
    const verb = () => verbs.find((one) => one.name === at.study) ?? verbs[0];
    const form = el("form", { class: "controls", onsubmit: (event) => event.preventDefault() });
    const work = stage("Nothing runs."), folders = el("div", {}), shown = stage("Choose a folder.");
    let over = false, urls = [];
    const values = {}; // what is in the form; "" for what is left as it usually is
    for (const [key, value] of Object.entries(parsed(`cgam ${at.study} ${at.given}`)[1])) values[key] = String(value);
    const keep = () => state.set({ given: commandLine("", Object.fromEntries(Object.entries(values).filter(([, value]) => value))).replace(/^cgam\s+/, "") });

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
      const take = (value) => {
        values[p.name] = value;
        keep();
      };
      if (p.kind === "flag") return checkbox(`${p.name}: ${p.help}`, values[p.name] === "true", (on) => take(on ? "true" : ""));
      const box = p.kind === "choice" ? el("select", {}, ["", ...p.words ?? p.value.split("|")].map((word) => el("option", { value: word, selected: word === (values[p.name] ?? "") }, word || `${p.default ?? ""} (usual)`))) :
        el("input", { name: p.name, spellcheck: "false", value: values[p.name] ?? "" });
      box.addEventListener("change", () => take(box.value));
      return labelled(p.name, box, p.default && p.kind !== "choice" ? `${p.help} (usual: ${p.default})` : p.help);
    }
    function draw() {
      const mine = verb().parameters.filter((p) => !OURS.has(p.name) && !p.writes);
      form.replaceChildren(
        choice("study", verbs.map((one) => ({ value: one.name, text: `${one.name.replace("study ", "")}: ${one.summary}` })), verb().name, (v) => {
          state.set({ study: v, given: "" });
          for (const key of Object.keys(values)) delete values[key];
          draw();
        }),
        input({ name: "out", kind: "text", default: verb().name.split(" ").at(-1), help: "folder below the server's root; an unfinished run resumes, another run is rejected without overwrite" }),
        ...mine.filter((p) => FIRST.has(p.name)).map(input),
        el("details", { class: "field" }, el("summary", {}, "More parameters"), el("div", { class: "pair" }, mine.filter((p) => !FIRST.has(p.name)).map(input))),
        el("div", { class: "buttons" }, go, halt));
    }
    const start = () => startJob(verb().name, options());
    const go = button("Start", start, { class: "main" }), halt = button("Stop", stopJob);

    async function list() {
      try {
        const { files } = await folder();
        const names = [...files.some((one) => one.name === "index.html") ? ["."] : [], ...files.filter((one) => one.folder).map((one) => one.name)];
        folders.replaceChildren(el("h3", {}, "Folders"), names.length === 0 ? el("p", { class: "hint" }, "None yet: start a study.") :
          el("ul", { class: "legend" }, names.map((name) => el("li", {}, button(name, () => look(name), { "aria-pressed": String(name === at.folder) })))));
      } catch (error) {
        folders.replaceChildren(el("p", { class: "hint" }, error.message));
      }
    }
    async function read(name) {
      state.set({ report: true });
      shown.busy("Reading…");
      try {
        const page = await reading(name === "." ? "" : name);
        if (!over) shown.show(el("div", { class: "buttons" }, button("Back to the files", () => look(name))), page);
      } catch (error) {
        if (!over) shown.fail(error, () => look(name));
      }
    }
    async function look(name) {
      state.set({ folder: name, report: false });
      shown.busy("Looking…");
      try {
        const { files } = await folder(name === "." ? "" : name);
        urls.forEach((url) => URL.revokeObjectURL(url));
        const pictures = await Promise.all(files.filter((one) => one.name.endsWith(".svg")).map(async (one) => {
          const url = URL.createObjectURL(await file(`${name}/${one.name}`));
          urls.push(url);
          return el("figure", {}, el("figcaption", {}, one.name.replace(".svg", "")), el("img", { src: url, alt: `figure ${one.name.replace(".svg", "")} of ${name}` }));
        }));
        const table = files.some((one) => one.name === "claims.csv") ? await claims(`${name}/claims.csv`) : null;
        if (over) return;
        shown.show(el("h3", {}, name), files.some((one) => one.name === "index.html") ? el("div", { class: "buttons" }, button("Read the report", () => read(name), { class: "main" })) : null, el("div", { class: "gallery" }, pictures), table,
          el("div", { class: "wide" }, el("table", {}, el("caption", {}, "Files"), el("tbody", {}, files.filter((one) => !one.folder).map((one) =>
            el("tr", {}, el("td", {}, one.name), el("td", {}, bytes(one.bytes)), el("td", {}, button("Download", () => save(`${name}/${one.name}`, one.name), { class: "small", "aria-label": `Download ${one.name}` }))))))));
      } catch (error) {
        if (!over) shown.fail(error, () => look(name));
      }
    }
    place.append(form, work, folders, shown, copyBar(() => verbs.length ? [verb().name, options()] : null));
    verbTable().then((all) => {
      verbs = all.filter((one) => /^study \w/.test(one.name) || one.name === "report");
      if (!over) draw();
    }).catch((error) => work.fail(error, () => state.restart(at)));
    list();
    const leave = followJob(go, halt, (job, now) => {
      showJob(work, start);
      if (now && job.doc) list().then(() => look(job.options.out));
    });
    if (at.folder) (at.report ? read : look)(at.folder);
    return () => {
      over = true;
      leave();
      urls.forEach((url) => URL.revokeObjectURL(url));
    };
  },
};
