// phase.js: how feedback moves the transition of the gates – the paper's figure 3 d, live on few trials.
import { call, latest } from "./ask.js";
import { chart } from "./chart.js";
import { copyBar } from "./copy.js";
import { el, field, slider, stage, table } from "./dom.js";

export const phase = {
  name: "phase",
  title: "Phase",
  words: "Clusters of similar memories, a context that tells none of them apart, and a penalty α that makes them compete: from some α on one memory takes all. Feedback λ brings that point nearer.",
  defaults: () => ({ lambda: 1.5, trials: 40, beta: 5, seed: 1 }),

  open(place, state) {
    const at = state.values, out = stage("Waiting for the first study…");
    const options = () => ({ lambda: at.lambda === 0 ? [0] : [0, at.lambda], trials: at.trials, "fold-trials": Math.min(at.trials, 40), beta: at.beta, seed: at.seed, files: "no", figures: "no" });
    const peaks = chart({ label: "Mean peak probability against the penalty", xLabel: "α", yLabel: "mean peak", height: 420 });
    const facts = el("div", {});
    let over = false;
    const answer = latest(async () => {
      if (over) return;
      out.busy("Running trials…");
      const asked = options();
      try {
        const doc = await call("study coupled", asked);
        if (over) return;
        if (!peaks.isConnected) out.show(el("div", { class: "two" }, peaks, facts));
        else out.show(out.lastChild);
        const all = [...new Set(doc.curves.flatMap((one) => one.alpha))].sort((a, b) => a - b);
        const on = (one) => {
          const known = new Map(one.alpha.map((a, k) => [a, one.peak_mean[k]]));
          return all.map((a) => known.get(a)); // undefined: not measured there, the line goes on
        };
        const now = doc.curves.at(-1);
        peaks.draw({ x: all, y: [0, 1], series: [now, ...(doc.curves.length > 1 ? [doc.curves[0]] : [])].map((one) => ({ label: `λ = ${one.lambda}`, values: on(one) })),
          marks: [{ at: now.alpha_theory, text: "theorem" }, { at: now.fold_median, text: "fold, median" }, { at: now.alpha_half, text: "mean peak ½" }, { at: doc.alpha_crit, text: "α_crit" }] });
        facts.replaceChildren(table([
          ["theorem's threshold", now.alpha_theory, "for balanced banks and fast gates"],
          ["fold, median", now.fold_median, now.fold_share === null || now.fold_share === undefined ? "" : `seen in ${Math.round(100 * now.fold_share)} % of trials`],
          ["fold, quartiles", now.fold_q25 === null ? null : `${now.fold_q25.toPrecision(4)} to ${now.fold_q75.toPrecision(4)}`, ""],
          ["mean peak reaches ½", now.alpha_half, now.alpha_half_se ? `± ${now.alpha_half_se.toPrecision(2)}` : ""],
          ["α_crit", doc.alpha_crit, "from here on gates run away by themselves"],
          ["trials", doc.trials, `${doc.seconds.toPrecision(2)} s`],
        ], `λ = ${now.lambda}, β = ${at.beta}`));
        out.dataset.shown = JSON.stringify(asked);
      } catch (error) {
        if (!over) out.fail(error, () => move());
      }
    });
    function move(changes = {}) {
      state.set(changes);
      answer();
    }
    const whole = (low, high, key) => (v) => move({ [key]: Math.min(Math.max(Math.round(Number(v)) || low, low), high) });
    place.append(
      el("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
        slider("feedback λ", { name: "lambda", min: 0, max: 3, step: 0.05, value: at.lambda, change: (v) => move({ lambda: v }) }),
        slider("inverse temperature β", { name: "beta", min: 0.5, max: 20, log: true, value: at.beta, change: (v) => move({ beta: v }) }),
        el("div", { class: "pair across" }, field("trials", at.trials, whole(1, 500, "trials"), { type: "number", min: 1, max: 500 }),
        field("seed", at.seed, whole(0, 1e9, "seed"), { type: "number", min: 0 }))),
      out, copyBar(() => ["study coupled", options()]));
    answer();
    return () => { over = true; };
  },
};
