// landscape.js: the energy over a plane of queries, without the context and with it; a query put down on either map
// flows to where it rests, and the context can be switched on its way.
import { call, latest } from "./ask.js";
import { anyBank, bankChoice, bankOf, beginning, namesOf } from "./bank.js";
import { chart } from "./chart.js";
import { copyBar } from "./copy.js";
import { button, checkbox, choice, el, field, say, show, slider, stage } from "./dom.js";
import { heat, levels } from "./heat.js";
import { mixer } from "./mixer.js";
import { letters, still } from "./theme.js";

const SPEED = 6; // units of the flow's time in a second
const OWN = 1e-9; // how far from the plane a memory may be that lies on it, rounding allowed for

export const landscape = {
  name: "landscape",
  title: "Landscape",
  words: "What is remembered lies in valleys of the energy over queries, and the context tilts them. Click on a map, or press Enter on it, to put a query down and watch it flow.",
  defaults: (world, values) => {
    const bank = bankOf(world, values.bank), { rows, alpha } = beginning(bank);
    return { bank: world.banks[0]?.id ?? "", through: rows.length > 1 ? rows.join(",") : "", context: String(rows.at(-1)), alpha, beta: 9, lambda: 0.35, gates: "context", normalize: bank.id !== "demo", starts: "", switched: "" };
  },

  open(place, state, world) {
    const at = state.values, out = stage("Waiting for the first map…");
    if (!anyBank(world, place)) return undefined;
    const bank = bankOf(world, at.bank);
    if (bank.d < 2) {
      place.append(el("div", { class: "controls" }, bankChoice(world, state, ["beta", "lambda"])), el("p", { class: "hint" }, "A plane of queries needs memories of at least two numbers."));
      return undefined;
    }
    const options = (extra) => ({ bank: at.bank, through: at.through || undefined, alpha: at.alpha, beta: at.beta, lambda: at.lambda, gates: at.gates, normalize: at.normalize || undefined, ...extra });
    const context = () => at.context ? `rows:${at.context}` : undefined;
    let docs = [null, null], names = new Map(), flows = [], clock = 0, frame = 0, over = false, last = null;
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
      pen.font = `600 ${letters(0.85)}`;
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
        const own = m.off < OWN;
        pen.beginPath();
        pen.arc(px(m.x), py(m.y), own ? 4 : 2, 0, 7);
        pen.fillStyle = own ? "#fff" : "rgba(255,255,255,.45)";
        pen.fill();
        if (own) {
          pen.lineWidth = 1.5;
          pen.strokeStyle = "#000";
          pen.stroke();
          mark(pen, px(m.x), py(m.y), names.get(m.index) ?? String(m.index));
        }
      }
      for (const a of doc.attractors) { // crosses; those of memories off the plane with a name, as nothing else tells it
        const x = px(a.x), y = py(a.y);
        if (doc.memories.some((m) => m.index === a.winner && m.off >= OWN)) mark(pen, x, y, `(${names.get(a.winner) ?? a.winner})`);
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
      for (const [k, flow] of flows.entries()) {
        if (flow.side !== side || !flow.doc) continue;
        const until = flow.now ?? Infinity, f = flow.doc;
        let done = 0;
        pen.beginPath();
        for (; done < f.time.length && f.time[done] <= until; done++) pen.lineTo(px(f.x[done]), py(f.y[done]));
        for (const [wide, colour] of [[5, "#000"], [2.5, "#ff9f1c"]]) {
          pen.lineWidth = wide;
          pen.strokeStyle = colour;
          pen.stroke();
        }
        if (flows.length > 1) mark(pen, px(f.x[0]) - 8, py(f.y[0]) + 8, `${k + 1}`);
        if (done > 0) {
          pen.beginPath();
          pen.arc(px(f.x[done - 1]), py(f.y[done - 1]), 5, 0, 7);
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
      const rows = docs.flatMap((doc, side) => doc.attractors.map((a) => [side ? "with" : "without", a.winner, names.get(a.winner), a.p, a.energy, a.starts, a.off]));
      list.replaceChildren(el("table", {}, el("caption", {}, "Rest points of the query (crosses)"),
        el("thead", {}, el("tr", {}, ["context", "winner", "name", "p", "energy", "of 28 starts", "distance from the plane"].map((name) => el("th", { scope: "col" }, name)))),
        el("tbody", {}, rows.map((row) => el("tr", {}, row.map((v) => el("td", {}, show(v, 5))))))));
      energies.hidden = done.length === 0;
      if (done.length === 0) return;
      const times = [...new Set(done.flatMap((one) => one.doc.time))].sort((a, b) => a - b);
      energies.draw({ x: times, series: done.slice(-4).map((one) => {
        const known = new Map(one.doc.time.map((t, k) => [t, one.doc.energy[k]]));
        return { label: `${flows.length > 1 ? `${flows.indexOf(one) + 1}: ` : ""}${one.side ? "with" : "without"}, to memory ${one.doc.winner.at(-1)}`, values: times.map((t) => known.get(t)) };
      }).map((one) => ({ ...one, values: one.values.map((v) => v ?? undefined) })), marks: done.filter((one) => one.switchTime).slice(-1).map((one) => ({ at: one.switchTime, text: "switch" })) });
    }

    const redraw = latest(async () => {
      if (over) return;
      if (!docs[0]) out.busy();
      try {
        const next = [await call("map", options()), await call("map", options({ context: context() }))];
        if (over) return;
        names = await namesOf(bank, next.flatMap((doc) => [...doc.memories.filter((m) => m.off < OWN).map((m) => m.index), ...doc.attractors.map((a) => a.winner)]));
        docs = next;
        flows = [];
        if (!maps[0].isConnected) out.show(el("div", { class: "two" }, maps), energies, list);
        paint();
        told();
        out.dataset.shown = JSON.stringify(options({ context: context() }));
        at.starts.split(";").filter(Boolean).forEach((start) => put(...start.split(",").map(Number)));
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
    // Computes a flow, or computes it again once it switches; the link has them all.
    async function follow(flow) {
      last = flow;
      state.set({ starts: flows.map((one) => [one.side, one.x, one.y, ...one.switchTime ? [one.switchTime] : []].join()).join(";") });
      try {
        flow.doc = (await call("map", flowOptions(flow))).flows[0];
        say(`The query rests at memory ${flow.doc.winner.at(-1)} after time ${show(flow.doc.time.at(-1), 3)}`);
        told();
        run();
      } catch (error) {
        if (!over) out.fail(error, () => move());
      }
    }
    function put(side, x, y, switchTime) {
      const flow = { side, x: Number(x.toPrecision(6)), y: Number(y.toPrecision(6)), switchTime, from: 0 };
      flows.push(flow);
      return follow(flow);
    }
    const swap = button("Switch the context now", () => {
      for (const flow of flows.filter((one) => one.doc && one.now < one.doc.time.at(-1))) {
        const now = Math.max(flow.now, 0.01);
        flow.switchTime = Number(now.toPrecision(4));
        follow(flow).then(() => Object.assign(flow, { from: now, begun: undefined }));
      }
    }, { disabled: true });
    const switched = (time) => button(`Flow again, switching at t = ${time}`, () => last ? put(last.side, last.x, last.y, time) : say("Put a query down first"));

    place.append(
      el("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
        el("div", { class: "pair" },
          bankChoice(world, state, ["beta", "lambda"]),
          field("plane through memories", at.through, (v) => move({ through: v.replaceAll(" ", "") }), { spellcheck: "false" }, "three, or two and zero; empty: principal components"),
          checkbox("divide memories by their norms", at.normalize, (v) => move({ normalize: v })),
          choice("gates", [{ value: "context", text: "as the context sets them" }, { value: "settled", text: "settled at each point" }], at.gates, (v) => move({ gates: v }))),
        el("div", { class: "pair" },
          mixer({ name: "context", legend: "Context", value: at.context, bank, change: (v) => move({ context: v }), hint: "empty: no context" }),
          mixer({ name: "next context", legend: "Context after a switch", value: at.switched, bank, change: (v) => state.set({ switched: v }), hint: "of flows that began with the context; empty: none" })),
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
        el("span", { class: "hint" }, "A flow without the context switches to it; one with it to the context after a switch, or to none.")),
      out, copyBar(() => ["map", last ? flowOptions(last) : options({ context: context() })]));
    redraw();
    return () => {
      over = true;
      cancelAnimationFrame(frame);
    };
  },
};
