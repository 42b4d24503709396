// recall.js: a query and a context meet a bank; every move of a slider is a recall.
import { call, latest } from "./ask.js";
import { anyBank, bankChoice, bankOf, beginning, small } from "./bank.js";
import { copyBar } from "./copy.js";
import { button, checkbox, choice, el, show, slider, stage, table } from "./dom.js";
import { mixer } from "./mixer.js";

const MODES = [{ value: "first", text: "first order" }, { value: "coupled", text: "coupled, self-consistent" },
  { value: "anneal", text: "annealed, on the branch from small β" }, { value: "flow", text: "flow in time" }];
const PARTS = [["evidence", "query evidence"], ["bias", "context bias"], ["feedback", "feedback"]];

// Signed bars, a line for each memory: what the query, the context and the feedback add to its score.
function bars(query, room) {
  const rows = query.top.map(([row, p], k) => ({ row, p, name: query.top_names?.[k], parts: PARTS.map(([name]) => query.parts[name][k]) }));
  const reach = (sign) => Math.max(...rows.map((row) => row.parts.reduce((sum, v) => sum + Math.max(sign * v, 0), 0)));
  const left = reach(-1), right = reach(1), wide = left + right || 1, W = Math.min(Math.max(room, 280), 700), H = 24, X0 = query.top_names ? 104 : 58, X1 = W - 76;
  const short = (name) => name.length > 12 ? `${name.slice(0, 11)}…` : name;
  const px = (v) => X0 + (v + left) / wide * (X1 - X0);
  const body = rows.flatMap(({ row, p, name, parts }, i) => {
    let up = 0, down = 0;
    const y = i * H + 24, shown = [el("text", { x: X0 - 8, y: y + 13, "text-anchor": "end", class: "row" }, name ? short(name) : String(row), el("title", {}, name ? `${name}, memory ${row}` : `memory ${row}`)),
      el("text", { x: X1 + 8, y: y + 13, class: "row" }, `p ${show(p, 3)}`)];
    parts.forEach((v, k) => {
      const from = v >= 0 ? up : down + v, to = v >= 0 ? up + v : down;
      if (v >= 0) up += v;
      else down += v;
      shown.push(el("rect", { x: px(from), y, width: Math.max(px(to) - px(from), 0), height: H - 6, class: `part ${PARTS[k][0]}` },
        el("title", {}, `memory ${row}, ${PARTS[k][1]}: ${show(v, 6)}`)));
    });
    const score = parts.reduce((sum, v) => sum + v, 0);
    shown.push(el("line", { x1: px(score), x2: px(score), y1: y - 2, y2: y + H - 4, class: "score" }));
    return shown;
  });
  const stripes = (id, d) => el("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
    el("rect", { width: 6, height: 6, class: `fill-${id}` }), el("path", { d, class: "stripe" }));
  return el("figure", { class: "bars" },
    el("figcaption", {}, "Scores of the most probable memories, in parts"),
    el("svg", { viewBox: `0 0 ${W} ${rows.length * H + 28}`, width: W, role: "img", "aria-label": "Scores in parts; the same numbers are in the table" },
      el("defs", {}, stripes("bias", "M0 6L6 0"), stripes("feedback", "M0 1.5H6M0 4.5H6")),
      el("text", { x: X0 - 8, y: 14, "text-anchor": "end", class: "row" }, "memory"),
      el("line", { x1: px(0), x2: px(0), y1: 18, y2: rows.length * H + 24, class: "zero" }), body),
    el("ul", { class: "legend" }, PARTS.map(([name, words]) => el("li", {}, el("span", { class: `swatch ${name}` }), words)), el("li", {}, el("span", { class: "swatch total" }), "their sum, the score")),
    el("details", { class: "numbers" }, el("summary", {}, "The numbers"), el("div", { class: "wide" }, el("table", {},
      el("thead", {}, el("tr", {}, ["memory", ...query.top_names ? ["name"] : [], "p", ...PARTS.map(([, words]) => words), "score"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map(({ row, p, name, parts }) => el("tr", {}, [row, ...query.top_names ? [name] : [], p, ...parts, parts.reduce((sum, v) => sum + v, 0)].map((v) => el("td", {}, show(v, 6))))))))));
}

// p of the winner beside what is proved of it.
function headline(query) {
  const how = query.certificates.p_lower_bound === "proved" ? "proved" : "estimated";
  const bar = el("div", { class: "certain", role: "img", "aria-label": `p ${show(query.p)}, at least ${show(query.p_lower_bound)} is ${how}` }, el("span", { class: "is" }), el("span", { class: "proved" }));
  bar.children[0].style.width = `${100 * query.p}%`;
  bar.children[1].style.width = `${100 * query.p_lower_bound}%`;
  return el("div", { class: "headline" },
    el("p", {}, "memory ", el("strong", { id: "winner" }, String(query.winner)), query.top_names ? [", ", el("strong", { id: "winner-name" }, query.top_names[0])] : [], " with p = ", el("strong", { id: "p" }, show(query.p, 5))),
    bar, el("p", { class: "hint" }, `at least ${show(query.p_lower_bound, 4)} is ${how} from the gap alone (darker)`));
}

function facts(doc, query) {
  const proof = (name) => query.certificates[name] ? el("span", { class: `badge ${query.certificates[name]}` }, query.certificates[name]) : "";
  const unique = query.unique === null ? "not decided" : query.unique ? "yes" : "no, two were found";
  return table([
    ["N_eff, exp(entropy)", query.neff_entropy, "memories in play"],
    ["N_eff, 1/Σp²", query.neff_ipr, ""],
    ["gap", query.gap, `by the query ${show(query.gap_raw)}, by the gates ${show(query.gap_gate)}`],
    ["p at least", query.p_lower_bound, proof("p_lower_bound")],
    ["energy", query.energy_end, query.energy_start === null ? "not defined in mode first" : `from ${show(query.energy_start)}; largest rise ${show(query.energy_rise, 2)}`],
    ["ended", query.end, `${query.iterations} iterations${query.time === null ? "" : `, time ${show(query.time)}`}`],
    ["regime of the gates", doc.regime, `α_crit ${show(doc.alpha_crit)}`],
    ["contraction", query.contraction, proof("contraction")],
    ["one fixed point", unique, proof("unique")],
    [query.fold_margin_exact ? "fold margin" : "fold margin at least", query.fold_margin, proof("fold_margin")],
    ["error of p at most", query.p_error, proof("p_error")],
  ], "Results, and which of them are proved");
}

export const recall = {
  name: "recall",
  title: "Recall",
  words: "A query is compared with every memory; the context opens and closes the gates. Move any control, and the answer follows.",
  defaults: (world, values) => {
    const bank = bankOf(world, values.bank), { query, rows, alpha } = beginning(bank);
    return { bank: world.banks[0]?.id ?? "", query, context: String(rows[0]), alpha, beta: 4, lambda: 0.8, mode: small(bank) ? "coupled" : "first", normalize: bank.id !== "demo", top: 8 };
  },

  open(place, state, world) {
    const at = state.values, out = stage("Waiting for the first recall…");
    if (!anyBank(world, place)) return undefined;
    const bank = bankOf(world, at.bank);
    const options = () => ({ bank: at.bank, query: `rows:${at.query || "0*0"}`, context: at.context ? `rows:${at.context}` : undefined,
      alpha: at.alpha, beta: at.beta, lambda: at.lambda, mode: at.mode, normalize: at.normalize || undefined, top: Math.min(at.top, bank.n), names: bank.names || undefined, explain: true });
    const room = () => out.clientWidth > 900 ? out.clientWidth / 2 - 20 : out.clientWidth;
    let doc = null, timer = 0, over = false;

    const answer = latest(async () => {
      if (over) return;
      const asked = options();
      try {
        doc = await call("recall", asked);
        if (over) return;
        const query = doc.queries[0];
        out.show(el("div", { class: "two" }, el("div", {}, headline(query), bars(query, room())), facts(doc, query)));
        out.dataset.shown = JSON.stringify(asked);
      } catch (error) {
        if (!over) out.fail(error, move);
      }
    });
    const marks = latest(async () => {
      if (over) return;
      try {
        const { marks: m } = await call("recall", { ...options(), explain: undefined, names: undefined, marks: true, mode: "first" });
        if (over) return;
        if (m.alpha_crit) alpha.reach(Math.max(1.5 * m.alpha_crit, at.alpha));
        alpha.marks([{ value: m.alpha_crit, text: "α_crit: beyond it the gates run away", short: "α_crit" }, { value: m.alpha_fold, text: "the branch of fixed points ends", short: "fold" }]);
        lambda.marks([{ value: m.lambda_unique_max, text: "up to here one answer, proved", short: "unique" }]);
        beta.marks([{ value: m.beta_unique_max, text: "up to here one answer, proved", short: "unique" }]);
        place.dataset.marks = JSON.stringify(m);
      } catch { /* the recall reports the error */ }
    });
    function move(changes = {}) {
      state.set(changes);
      answer();
      clearTimeout(timer);
      if (small(bank)) timer = setTimeout(marks, 200);
    }
    const alpha = slider("penalty α between similar memories", { name: "alpha", lines: 2, min: 0, max: 1.5, step: 0.01, value: at.alpha, change: (v) => move({ alpha: v }) });
    const beta = slider("inverse temperature β", { name: "beta", lines: 1, min: 0.1, max: 100, log: true, value: at.beta, change: (v) => move({ beta: v }) });
    const lambda = slider("coupling λ of gates and retrieval", { name: "lambda", lines: 1, min: 0, max: 4, step: 0.01, value: at.lambda, change: (v) => move({ lambda: v }) });
    place.append(
      el("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
        el("div", { class: "pair" }, bankChoice(world, state, ["beta", "lambda"]),
          choice("mode", MODES, at.mode, (v) => move({ mode: v })),
          checkbox("divide memories by their norms", at.normalize, (v) => move({ normalize: v }))),
        mixer({ name: "query", legend: "Query", value: at.query, bank, change: (v) => move({ query: v }), hint: "as 7*0.5+23*0.5, by number or name" }),
        mixer({ name: "context", legend: "Context", value: at.context, bank, change: (v) => move({ context: v }), hint: "empty: no context" }),
        lambda, alpha, beta, small(bank) ? null : button("Compute the marks of the sliders", marks)),
      out, copyBar(() => ["recall", options()]));
    move();
    return () => {
      over = true;
      clearTimeout(timer);
    };
  },
};
