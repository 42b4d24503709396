// landscape.js: the energy over a plane of queries, without the context and with it; a query put down on either map
// flows to where it rests, and the context can be switched on its way.
import { call, latest } from "./ask.js";
import { chart } from "./chart.js";
import { copyBar } from "./copy.js";
import { button, choice, el, field, say, show, slider, stage } from "./dom.js";
import { heat, levels } from "./heat.js";
import { mixer } from "./mixer.js";
import { still } from "./theme.js";

const SPEED = 6; // units of the flow's time in a second

export const landscape = {
  name: "landscape",
  title: "Landscape",
  words: "What is remembered lies in valleys of the energy over queries, and the context tilts them. Click on a map, or press Enter on it, to put a query down and watch it flow.",
  defaults: (world) => ({ bank: world.banks[0]?.id ?? "", through: "7,23,41", context: "41", alpha: 0.2, beta: 9, lambda: 0.35, gates: "context", starts: "", switched: "" }),

  open(place, state, world) {
    const at = state.values, out = stage("Waiting for the first map…");
    if (world.banks.length === 0) return void place.append(el("p", { class: "hint" }, "The server has no bank; start it with --bank FILE."));
    const bank = () => world.banks.find((one) => one.id === at.bank) ?? world.banks[0];
    const options = (extra) => ({ bank: at.bank, through: at.through || undefined, alpha: at.alpha, beta: at.beta, lambda: at.lambda, gates: at.gates, ...extra });
    const context = () => at.context ? `rows:${at.context}` : undefined;
    let docs = [null, null], flows = [], clock = 0, frame = 0, over = false, last = null;
    // flows: {side, x, y, doc, begun, switchTime}

    const read = (side) => (i, j) => {
      const doc = docs[side];
      return `E = ${show(doc.energy[j][i], 6)} at (${show(doc.x[i], 3)}, ${show(doc.y[j], 3)})`;
    };
    const maps = ["Without context", "With the context"].map((label, side) =>
      heat({ label, read: read(side), pick: (i, j) => put(side, docs[side].x[i], docs[side].y[j]), height: 0.8 }));
    const energies = chart({ label: "Energy along the flows", xLabel: "time", yLabel: "energy", height: 240 });
    const list = el("div", { class: "wide" });

    function mark(pen, x, y, words) {
      pen.font = "600 14px system-ui, sans-serif";
      pen.textAlign = "center";
      pen.lineJoin = "round";
      pen.lineWidth = 4;
      pen.strokeStyle = "#000";
      pen.strokeText(words, x, y - 13);
      pen.fillStyle = "#fff";
      pen.fillText(words, x, y - 13);
    }
    const over_map = (side) => ({ pen, px, py }) => {
      const doc = docs[side];
      for (const m of doc.memories) { // those of the plane by number, the others as faint dots
        const own = m.off < 1e-9;
        pen.beginPath();
        pen.arc(px(m.x), py(m.y), own ? 4 : 2, 0, 7);
        pen.fillStyle = own ? "#fff" : "rgba(255,255,255,.45)";
        pen.fill();
        if (own) {
          pen.lineWidth = 1.5;
          pen.strokeStyle = "#000";
          pen.stroke();
          mark(pen, px(m.x), py(m.y), String(m.index));
        }
      }
      for (const a of doc.attractors) { // crosses
        const x = px(a.x), y = py(a.y);
        for (const [wide, colour] of [[5, "#000"], [2.5, "#fff"]]) {
          pen.lineWidth = wide;
          pen.strokeStyle = colour;
          pen.beginPath();
          pen.moveTo(x - 6, y - 6);
          pen.lineTo(x + 6, y + 6);
          pen.moveTo(x - 6, y + 6);
          pen.lineTo(x + 6, y - 6);
          pen.stroke();
        }
      }
      for (const flow of flows.filter((one) => one.side === side && one.doc)) {
        const until = flow.now ?? Infinity, f = flow.doc;
        let k = 0;
        pen.beginPath();
        for (; k < f.time.length && f.time[k] <= until; k++) pen.lineTo(px(f.x[k]), py(f.y[k]));
        for (const [wide, colour] of [[5, "#000"], [2.5, "#ff9f1c"]]) {
          pen.lineWidth = wide;
          pen.strokeStyle = colour;
          pen.stroke();
        }
        if (k > 0) {
          pen.beginPath();
          pen.arc(px(f.x[k - 1]), py(f.y[k - 1]), 5, 0, 7);
          pen.fillStyle = "#ff9f1c";
          pen.fill();
          pen.lineWidth = 1.5;
          pen.strokeStyle = "#000";
          pen.stroke();
        }
      }
    };

    function paint() {
      if (!docs[0] || !docs[1]) return;
      // Colours count from each map's lowest point, and as far on both: up to what four fifths of the points stay below.
      const far = Math.max(...docs.map((doc) => doc.energy.flat().sort((a, b) => a - b)[Math.floor(0.8 * doc.energy.length ** 2)] - doc.energy_range[0]));
      maps.forEach((map, side) => {
        const low = docs[side].energy_range[0], high = low + far;
        map.draw({ values: docs[side].energy, low, high, contours: levels(low, high), x: docs[side].x, y: docs[side].y,
          xLabel: "along the plane", yLabel: "across", scaleLabel: "energy", over: over_map(side) });
      });
    }

    function told() {
      const done = flows.filter((one) => one.doc);
      const rows = docs.flatMap((doc, side) => doc.attractors.map((a) => [side ? "with" : "without", a.winner, a.p, a.energy, a.starts, a.off]));
      list.replaceChildren(el("table", {}, el("caption", {}, "Rest points of the query (crosses)"),
        el("thead", {}, el("tr", {}, ["context", "winner", "p", "energy", "of 28 starts", "distance from the plane"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map((v) => el("td", {}, show(v, 5))))))));
      energies.hidden = done.length === 0;
      if (done.length === 0) return;
      const times = [...new Set(done.flatMap((one) => one.doc.time))].sort((a, b) => a - b);
      energies.draw({ x: times, series: done.slice(-4).map((one) => {
        const known = new Map(one.doc.time.map((t, k) => [t, one.doc.energy[k]]));
        return { label: `${one.side ? "with" : "without"}, to memory ${one.doc.winner.at(-1)}`, values: times.map((t) => known.get(t)) };
      }).map((one) => ({ ...one, values: one.values.map((v) => v ?? undefined) })), marks: done.filter((one) => one.switchTime).slice(-1).map((one) => ({ at: one.switchTime, text: "switch" })) });
    }

    const redraw = latest(async () => {
      if (over) return;
      if (!docs[0]) out.busy();
      try {
        const next = [await call("map", options()), await call("map", options({ context: context() }))];
        if (over) return;
        docs = next;
        flows = [];
        if (!maps[0].isConnected) out.show(el("div", { class: "two" }, maps), energies, list);
        paint();
        told();
        out.dataset.shown = JSON.stringify(options({ context: context() }));
        for (const start of at.starts.split(";").filter(Boolean)) {
          const [side, x, y] = start.split(",").map(Number);
          put(side, x, y, true);
        }
      } catch (error) {
        if (!over) out.fail(error, () => move());
      }
    });
    function move(changes = {}) {
      if (Object.keys(changes).length) state.set({ ...changes, starts: "" });
      redraw();
    }

    function tick(time) {
      let moving = false;
      for (const flow of flows.filter((one) => one.doc)) {
        flow.begun ??= time;
        const end = flow.doc.time.at(-1);
        flow.now = still.matches ? end : flow.from + (time - flow.begun) / 1000 * SPEED;
        if (flow.now < end) moving = true;
        else flow.now = end;
      }
      clock = Math.max(0, ...flows.map((one) => one.now ?? 0));
      paint();
      swap.disabled = !moving;
      frame = moving && !over ? requestAnimationFrame(tick) : 0;
    }
    const run = () => { frame ||= requestAnimationFrame(tick); };

    const flowOptions = (flow) => options({ grid: 2, context: flow.side ? context() : undefined, at: [flow.x, flow.y],
      switch: flow.switchTime, "context-then": flow.switchTime ? (flow.side ? (at.switched ? `rows:${at.switched}` : undefined) : context()) : undefined });
    async function put(side, x, y, quiet) {
      const flow = { side, x: Number(x.toPrecision(6)), y: Number(y.toPrecision(6)), from: 0 };
      flows.push(flow);
      if (!quiet) state.set({ starts: flows.map((one) => `${one.side},${one.x},${one.y}`).join(";") });
      try {
        last = flow;
        flow.doc = (await call("map", flowOptions(flow))).flows[0];
        say(`The query rests at memory ${flow.doc.winner.at(-1)} after time ${show(flow.doc.time.at(-1), 3)}`);
        told();
        run();
      } catch (error) {
        if (!over) out.fail(error, () => move());
      }
    }
    const swap = button("Switch the context now", async () => {
      for (const flow of flows.filter((one) => one.doc && one.now < one.doc.time.at(-1))) {
        const now = Math.max(flow.now, 0.01);
        flow.switchTime = Number(now.toPrecision(4));
        last = flow;
        flow.doc = (await call("map", flowOptions(flow))).flows[0];
        flow.from = now;
        flow.begun = undefined;
      }
      told();
      run();
    }, { disabled: true });
    const switched = (time) => button(`Flow again, switching at t = ${time}`, async () => {
      if (!last) return say("Put a query down first");
      const flow = { ...last, switchTime: time, doc: null, from: 0, begun: undefined };
      flows.push(flow);
      last = flow;
      flow.doc = (await call("map", flowOptions(flow))).flows[0];
      told();
      run();
    });

    const n = () => bank().n;
    place.append(
      el("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
        el("div", { class: "pair" },
          choice("bank", world.banks.map((one) => ({ value: one.id, text: `${one.id} (${one.n} × ${one.d})` })), at.bank, (v) => {
            state.set({ bank: v });
            state.reload();
          }),
          field("plane through memories", at.through, (v) => move({ through: v.replaceAll(" ", "") }), { spellcheck: "false" }, "three, or two and zero; empty: principal components")),
        el("div", { class: "pair" },
          mixer({ name: "context", legend: "Context", value: at.context, n, change: (v) => move({ context: v }), hint: "empty: no context" }),
          choice("gates", [{ value: "context", text: "as the context sets them" }, { value: "settled", text: "settled at each point" }], at.gates, (v) => move({ gates: v }))),
        el("div", { class: "pair" },
          slider("coupling λ", { name: "lambda", min: 0, max: 2, step: 0.01, value: at.lambda, change: (v) => move({ lambda: v }) }),
          slider("penalty α", { name: "alpha", min: 0, max: 0.95, step: 0.01, value: at.alpha, change: (v) => move({ alpha: v }) }),
          slider("inverse temperature β", { name: "beta", min: 1, max: 60, log: true, value: at.beta, change: (v) => move({ beta: v }) }))),
      el("div", { class: "buttons" }, swap, switched(1), switched(4),
        button("Clear the flows", () => {
          flows = [];
          last = null;
          state.set({ starts: "" });
          paint();
          told();
        }),
        el("span", { class: "hint" }, "Switching goes to the other map's context.")),
      out, copyBar(() => ["map", last ? flowOptions(last) : options({ context: context() })]));
    redraw();
    return () => {
      over = true;
      cancelAnimationFrame(frame);
    };
  },
};
