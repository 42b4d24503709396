// mixer.js: a vector as a sum of memories, "7*0.5+23*0.5": one line for each, with its weight as a slider, or the
// text itself.
import { button, el, labelled, show } from "./dom.js";

export function parse(text) {
  const list = [], term = /([+-]?)\s*(\d+)(?:\s*\*\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))?\s*/y;
  for (let found; term.lastIndex < text.length;) {
    if (!(found = term.exec(text)) || (list.length > 0 && !found[1])) return null;
    list.push({ row: Number(found[2]), weight: (found[1] === "-" ? -1 : 1) * Number(found[3] ?? 1) });
  }
  return list;
}

export function text(list) {
  return list.map(({ row, weight }, k) => {
    const sign = weight < 0 ? "-" : k ? "+" : "", size = Math.abs(weight);
    return `${sign}${row}${size === 1 ? "" : `*${Number(size.toPrecision(4))}`}`;
  }).join("");
}

// n(): how many memories there are. change(text): "" for none.
export function mixer({ name, legend, value, n, change, hint }) {
  let list = parse(value) ?? [];
  const rows = el("div", { class: "rows" });
  const box = el("input", { value, spellcheck: "false", autocomplete: "off", name });
  const tell = () => {
    box.value = text(list);
    box.removeAttribute("aria-invalid");
    change(box.value);
  };
  function draw() {
    rows.replaceChildren(...list.map((one, k) => {
      const weight = el("input", { type: "range", min: -2, max: 2, step: 0.05, value: one.weight, "aria-label": `weight of memory ${one.row} in the ${name}` });
      const told = el("output", {}, show(one.weight));
      weight.addEventListener("input", () => {
        one.weight = Number(weight.value);
        told.textContent = show(one.weight);
        tell();
      });
      return el("div", { class: "mixed" }, el("span", {}, `memory ${one.row}`), weight, told,
        button("×", () => {
          list.splice(k, 1);
          draw();
          tell();
        }, { "aria-label": `take memory ${one.row} out of the ${name}`, class: "small" }));
    }));
  }
  box.addEventListener("change", () => {
    const next = parse(box.value.trim());
    if (!next || next.some((one) => one.row >= n() || !Number.isFinite(one.weight))) return box.setAttribute("aria-invalid", "true");
    list = next;
    draw();
    tell();
  });
  draw();
  return el("fieldset", { class: "mixer" }, el("legend", {}, legend), labelled("sum of memories", box, hint), rows);
}
