// sweep.js: accuracy of retrieval by query plus context for every pair of layers, from what `lm sweep` or `lm study`
// left in a folder below the server's root, or from a sweep that is run here over a store.
import { file, folder } from "./ask.js";
import { chart } from "./chart.js";
import { copyBar, parsed } from "./copy.js";
import { csv } from "./csv.js";
import { button, choice, el, field, show, slider, stage } from "./dom.js";
import { heat } from "./heat.js";
import { followJob, showJob, startJob, stopJob } from "./job.js";

const CONTEXTS = ["true labels", "flipped labels", "another task", "mean of the labels' rows"];
const percent = (v) => v === null || v === undefined ? "–" : `${show(100 * v, 3)}\u00a0%`;

export const sweep = {
  name: "sweep",
  title: "Sweep",
  words: "Queries without demonstrations plus λ times what demonstrations add, layer by layer: how often is the answer right? The score is linear in λ, so accuracy is an exact step function of it.",
  defaults: (world) => ({ folder: "", over: "restricted", shots: 0, lambda: 1, dataset: "sentiment", store: world.stores[0]?.id ?? "", queries: 50 }),

  open(place, state, world) {
    if (!world.root) {
      place.append(el("p", { class: "hint" }, "Sweeps are read from folders, and this server has none. Start it with --root DIR, where DIR holds the results of cgam lm sweep --out DIR/name."));
      return undefined;
    }
    const at = state.values, out = stage("Choose a folder, or run a sweep over a store."), work = stage("");
    let data = null, over = false;
    const controls = el("form", { class: "controls", onsubmit: (event) => event.preventDefault() });
    const cell = (j, i) => data.cells.get(`${i},${j}`) ?? null;
    const map = heat({ label: "Accuracy of every pair of layers", height: 0.85, read: (i, j) => {
      const found = cell(j, i);
      return `context of layer ${i}, query of layer ${j}: ${percent(found)} at λ = ${data.lambda}; at best ${percent(data.best.get(`${i},${j}`)?.[at.over])}`;
    }, pick: () => {} });
    const steps = chart({ label: "Accuracy of the best pairs against λ, exactly", xLabel: "λ", yLabel: "accuracy", height: 340 });
    const beside = el("div", {});

    function draw() {
      const shots = data.shots.includes(at.shots) ? at.shots : data.shots.at(-1);
      const rows = data.grid.filter((row) => row.shots === shots);
      const key = at.over, doc = data.doc?.shots?.find((one) => one.k === shots);
      if (data.intervals) { // each query is right on one interval: the accuracy of a pair is how many hold λ
        data.lambda = at.lambda;
        data.cells = new Map(data.table.map((row) => [`${row.context_layer},${row.query_layer}`, 0]));
        for (const row of data.intervals)
          if (row.shots === shots && row.over_vocabulary === (key === "full" ? 1 : 0) && row.lambda_from <= at.lambda && at.lambda < row.lambda_to) {
            const pair = `${row.context_layer},${row.query_layer}`;
            data.cells.set(pair, data.cells.get(pair) + 1 / doc.queries);
          }
      } else {
        data.lambda = data.lambdas.reduce((best, v) => Math.abs(v - at.lambda) < Math.abs(best - at.lambda) ? v : best);
        data.cells = new Map(rows.filter((row) => row.lambda === data.lambda).map((row) => [`${row.context_layer},${row.query_layer}`, row[key]]));
      }
      data.best = new Map(data.table.filter((row) => row.shots === shots).map((row) => [`${row.context_layer},${row.query_layer}`, row]));
      const layers = [...new Set(rows.map((row) => row.query_layer))].sort((a, b) => a - b);
      map.draw({ values: layers.map((j) => layers.map((i) => cell(j, i))), low: 0, high: 1, cells: true, words: (i, j) => String(Math.round(100 * cell(layers[j], layers[i]))), xNames: layers.map(String), yNames: layers.map(String),
        xLabel: "layer of the context", yLabel: "layer of the query", scaleLabel: `accuracy, ${at.over === "full" ? "whole vocabulary" : "among the labels"}, λ = ${show(data.lambda)}` });
      const kinds = CONTEXTS.map((label, k) => ({ label, rows: data.steps.filter((row) => row.shots === shots && row.context === k && row.over_vocabulary === (at.over === "full" ? 1 : 0)) })).filter((one) => one.rows.length > 0);
      const ends = [...new Set(kinds.flatMap((one) => one.rows.map((row) => row.lambda_from)))].sort((a, b) => a - b), last = Math.max(...ends, 1) * 1.1;
      const x = [...ends, last];
      steps.draw({ x, y: [0, 1], series: kinds.map((one) => ({ label: one.label, stepped: true, values: x.map((v) => one.rows.find((row) => row.lambda_from <= v && v < row.lambda_to)?.accuracy ?? one.rows.at(-1).accuracy) })),
        marks: [{ at: data.lambda, text: `λ = ${show(data.lambda)}` }] });
      const c = doc?.controls ?? {};
      beside.replaceChildren(el("table", { class: "facts" }, el("caption", {}, `Beside it: ${shots} demonstrations, ${doc?.queries ?? "?"} queries`), el("tbody", {}, [
        ["zero-shot", doc?.zero_shot?.[key], ""], ["with demonstrations", doc?.icl?.[key], ""],
        ["best pair, held out", doc?.best?.[key]?.held_out, doc?.best?.[key] ? `${doc.best[key].context_layer} → ${doc.best[key].query_layer}, in sample ${percent(doc.best[key].accuracy)}` : ""],
        ["zero-shot, centred", c.centred?.accuracy, "control"], ["best threshold", c.threshold?.accuracy ?? c.threshold?.bound, "control, two classes"],
        ["mean of the labels' rows", c.label_mean?.[key]?.held_out, "control"], ["flipped labels", c.flipped?.[key]?.held_out, "control"], ["another task", c.other_task?.[key]?.held_out, "control"],
      ].map(([name, v, note]) => el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, percent(v)), el("td", {}, note))))));
      out.dataset.shown = JSON.stringify({ lambda: data.lambda, shots });
    }
    const lambda = () => {
      const node = slider("λ", { name: "lambda", min: 0.01, max: 200, log: true, value: at.lambda, change: (v) => {
        state.set({ lambda: v });
        draw();
      } });
      node.append(el("small", {}, data.intervals ? "the exact step function of every pair" : "read at the nearest λ of the study's grid; lm sweep --intervals leaves the exact steps of every pair"));
      return node;
    };
    async function open(name) {
      state.set({ folder: name });
      out.busy("Reading…");
      try {
        const text = async (what) => (await file(`${name}/${what}`)).text();
        const { files } = await folder(name), there = new Set(files.map((one) => one.name));
        if (!there.has("sweep_grid.csv")) throw new Error(`${name} holds no sweep: sweep.csv, sweep_grid.csv and sweep_steps.csv are looked for.`);
        const grid = csv(await text("sweep_grid.csv")).rows, table = csv(await text("sweep.csv")).rows, stepRows = csv(await text("sweep_steps.csv")).rows;
        const doc = JSON.parse(await text(there.has("sweep.json") ? "sweep.json" : "study.json"));
        const intervals = there.has("sweep_intervals.csv") ? csv(await text("sweep_intervals.csv")).rows : null;
        if (over) return;
        data = { intervals, grid, table, steps: stepRows, doc: { command: doc.command, ...doc.sweep ?? doc }, shots: [...new Set(grid.map((row) => row.shots))], lambdas: [...new Set(grid.map((row) => row.lambda))].sort((a, b) => a - b) };
        if (!data.shots.includes(at.shots)) state.set({ shots: data.shots.at(-1) });
        list.replaceChildren(lambda(), choice("over", [{ value: "restricted", text: "the labels" }, { value: "full", text: "the whole vocabulary" }], at.over, (v) => {
          state.set({ over: v });
          draw();
        }), choice("demonstrations", data.shots.map(String), String(at.shots), (v) => {
          state.set({ shots: Number(v) });
          draw();
        }));
        out.show(el("div", { class: "two" }, map, el("div", {}, steps, beside)));
        draw();
      } catch (error) {
        if (!over) out.fail(error);
      }
    }
    const options = () => ({ store: at.store || undefined, dataset: at.dataset, queries: at.queries, out: `sweep-${at.dataset}`, intervals: true, figures: "no" });
    const run = () => startJob("lm sweep", options());
    const go = button("Run", run, { class: "main" }), halt = button("Stop", stopJob);
    const list = el("div", { class: "pair" }), folders = el("div", {});
    // Folders that hold a sweep: below the root, in a report there, or in one of its studies.
    async function sweeps(path, deep) {
      const { files } = await folder(path), own = files.some((one) => one.name === "sweep_grid.csv") ? [path] : [];
      if (deep === 0) return own;
      const below = files.filter((one) => one.folder).slice(0, 100).map((one) => sweeps(path ? `${path}/${one.name}` : one.name, deep - 1));
      return [...own, ...(await Promise.all(below)).flat()];
    }
    async function choose() {
      const names = await sweeps("", 3);
      folders.replaceChildren(choice("folder", [{ value: "", text: names.length ? "choose one" : "there is none yet" }, ...names.map((name) => ({ value: name, text: name }))], at.folder, (v) => v && open(v)));
    }
    controls.append(el("div", { class: "pair" }, folders),
      list,
      el("details", { class: "field" }, el("summary", {}, "Run a sweep"), el("div", { class: "pair" },
        field("dataset", at.dataset, (v) => state.set({ dataset: v })),
        field("queries", at.queries, (v) => state.set({ queries: Number(v) || 50 }), { type: "number", min: 2 }),
        world.stores.length ? choice("store", world.stores.map((one) => one.id), at.store, (v) => state.set({ store: v })) : null,
        el("div", { class: "buttons" }, go, halt))));
    place.append(controls, work, out, copyBar(() => data?.doc.command ? parsed(data.doc.command) : ["lm sweep", options()]));
    choose().then(() => at.folder && open(at.folder)).catch((error) => out.fail(error));
    const leave = followJob(go, halt, (job, now) => {
      if (job.verb !== "lm sweep") return;
      showJob(work, run);
      if (now && job.doc) choose().then(() => open(job.options.out));
    });
    return () => {
      over = true;
      leave();
    };
  },
};
