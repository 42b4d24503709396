// lens.js: what every token of a text says after every layer.
import { watch } from "./ask.js";
import { copyBar } from "./copy.js";
import { button, checkbox, choice, el, labelled, show, stage } from "./dom.js";
import { heat } from "./heat.js";

const SHOWN = {
  neff: { text: "N_eff, words in play", key: "neff", log: true, low: 1 },
  kl: { text: "KL(final ‖ layer), nats", key: "kl_final", low: 0 },
  rank: { text: "rank of the model's own answer", key: "rank_final", log: true, low: 1, shift: 1 },
};
const visible = (piece) => piece.replaceAll(" ", "␣").replaceAll("\n", "↵");

export const lens = {
  name: "lens",
  title: "Lens",
  words: "The state of every token after every layer, read through the unembedding: how many words are still in play, how far they are from the model's own answer, and which they are.",
  defaults: (world) => ({ model: world.models[0]?.id ?? "", prompt: "Once upon a time, there was a little", compare: "", demos: "One day, a dog named Max saw a cat. ", shots: false, shown: "neff", lens: "norm" }),

  open(place, state, world) {
    const at = state.values, out = stage("Type a text and press Read.");
    const options = () => ({ model: at.model || undefined, prompt: (at.shots ? at.demos : "") + at.prompt, compare: at.compare || undefined, lens: at.lens === "norm" ? undefined : at.lens, top: 5 });
    let doc = null, over = false, stop = null;
    const maps = [0, 1].map((k) => heat({ label: k ? "The second text" : "The text", height: 0.75, read: (i, j) => {
      const d = k ? doc.compare : doc, token = d.tokens[i], layer = d.layers[j];
      const words = d.top[j][i].map(([, piece, p]) => `${visible(piece)} ${show(p, 2)}`).join("  ");
      return `“${visible(token.piece)}” after layer ${layer}: ${words}. N_eff ${show(d.neff[j][i])}, KL ${show(d.kl_final[j][i], 3)}, rank of the final answer ${show(d.rank_final[j][i])}`;
    } }));

    function draw() {
      const how = SHOWN[at.shown], docs = [doc, doc.compare].filter(Boolean);
      const value = (v) => v === null ? null : how.log ? Math.log10(Math.max(v + (how.shift ?? 0), 1e-9)) : v;
      const all = docs.flatMap((d) => d[how.key].flat()).filter((v) => v !== null);
      const high = Math.max(...all), top = value(high), low = value(how.low - (how.shift ?? 0));
      docs.forEach((d, k) => maps[k].draw({ values: d[how.key].map((row) => row.map(value)), low, high: Math.max(top, low + 1e-9), shownLow: how.low - (how.shift ?? 0), shownHigh: high, cells: true, words: (i, j) => visible(d.top[j][i][0]?.[1] ?? ""),
        xNames: d.tokens.map((t) => visible(t.piece)), yNames: d.layers.map(String), xLabel: "token", yLabel: "layer", scaleLabel: how.text + (how.log ? ", logarithmic" : "") }));
      maps[1].hidden = docs.length < 2;
    }
    async function go() {
      stop?.abort();
      const mine = stop = new AbortController();
      out.busy("Reading; the model is loaded first if necessary…");
      try {
        const next = await watch("lm lens", options(), (p) => mine === stop && out.busy(`${p.phase}: ${Math.round(100 * (p.share ?? 0))} %`), mine.signal);
        if (over) return;
        doc = next;
        out.show(el("div", { class: "two" }, maps));
        draw();
        out.dataset.shown = JSON.stringify(options());
      } catch (error) {
        if (!over && error.name !== "AbortError") out.fail(error, go);
      }
    }
    const box = (key, rows, hint) => {
      const area = el("textarea", { rows, name: key, onchange: () => state.set({ [key]: area.value }), onkeydown: (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          state.set({ [key]: area.value });
          go();
        }
      } }, at[key]);
      return area;
    };
    place.append(
      el("form", { class: "controls", onsubmit: (event) => event.preventDefault() },
        labelled("text", box("prompt", 3), "Ctrl+Enter reads it"), labelled("second text, to compare", box("compare", 3), "empty: none"),
        el("div", { class: "field" }, labelled("demonstrations before the text", box("demos", 2)), checkbox("put them before it", at.shots, (shots) => {
          state.set({ shots });
          if (doc) go();
        }, { id: "shots" })),
        el("div", { class: "pair" },
          world.models.length > 1 ? choice("model", world.models.map((one) => one.id), at.model, (v) => state.set({ model: v })) : null,
          choice("shown", Object.entries(SHOWN).map(([value, { text }]) => ({ value, text })), at.shown, (v) => {
            state.set({ shown: v });
            if (doc) draw();
          }),
          choice("lens", [{ value: "norm", text: "through the final norm" }, { value: "raw", text: "as the states are" }], at.lens, (v) => {
            state.set({ lens: v });
            if (doc) go();
          }),
          el("div", { class: "buttons" }, button("Read", go, { class: "main" })))),
      out, copyBar(() => ["lm lens", options()]));
    if (world.models.length === 0) out.empty("The server was started without --model; the default model (cgam lm get) is asked, if it is there. Press Read.");
    else go();
    return () => {
      over = true;
      stop?.abort();
    };
  },
};
