// mixer.js: a vector as a sum of memories, "7*0.5+king*0.5", by number or by name: one line for each, with its weight as a
// slider, or the text itself.
import { namesOf } from "./bank.js";
import { button, el, labelled, show } from "./dom.js";
import { finder } from "./finder.js";

const quoted = (name) => /^[^\d+\-*;'\s][^+\-*;'\s]*$/.test(name) ? name : `'${name.replaceAll("'", "''")}'`;

// "7*0.5-king" as [{memory: "7", weight: 0.5}, {memory: "king", weight: -1}]; null: not understood.
export function parse(text) {
  const list = [], term = /\s*([+-]?)\s*(\d+(?=\s*(?:[*+-]|$))|'(?:[^']|'')+'|[^\d+\-*;'\s][^+\-*;']*?)\s*(?:\*\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*)?(?=[+-]|$)/y;
  for (let found; term.lastIndex < text.length;) {
    if (!(found = term.exec(text)) || (list.length > 0 && !found[1])) return null;
    list.push({ memory: found[2], weight: (found[1] === "-" ? -1 : 1) * Number(found[3] ?? 1) });
  }
  return list;
}

export function text(list) {
  return list.map(({ memory, weight }, k) => {
    const sign = weight < 0 ? "-" : k ? "+" : "", size = Math.abs(weight);
    return `${sign}${memory}${size === 1 ? "" : `*${Number(size.toPrecision(4))}`}`;
  }).join("");
}

// change(text): "" for none.
export function mixer({ name, legend, value, bank, change, hint }) {
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
      const number = /^\d/.test(one.memory), called = el("span", {}, number ? `memory ${one.memory}` : one.memory);
      if (number) namesOf(bank, [Number(one.memory)]).then((names) => {
        const word = names.get(Number(one.memory));
        if (word) called.textContent = `${word} (${one.memory})`;
      });
      const weight = el("input", { type: "range", min: -2, max: 2, step: 0.05, value: one.weight, "aria-label": `weight of memory ${one.memory} in the ${name}` });
      const told = el("output", {}, show(one.weight));
      weight.addEventListener("input", () => {
        one.weight = Number(weight.value);
        told.textContent = show(one.weight);
        tell();
      });
      return el("div", { class: "mixed" }, called, weight, told, button("×", () => {
        list.splice(k, 1);
        draw();
        tell();
      }, { "aria-label": `take memory ${one.memory} out of the ${name}`, class: "small" }));
    }));
  }
  box.addEventListener("change", () => {
    const next = parse(box.value.trim());
    if (!next || next.some((one) => /^\d/.test(one.memory) && Number(one.memory) >= bank.n || !Number.isFinite(one.weight))) return box.setAttribute("aria-invalid", "true");
    list = next;
    draw();
    tell();
  });
  draw();
  return el("fieldset", { class: "mixer" }, el("legend", {}, legend), labelled("sum of memories", box, hint), rows, finder({ bank, text: `add to the ${name}`, pick: (one) => {
    list.push({ memory: one.name === undefined ? String(one.row) : quoted(one.name), weight: 1 });
    draw();
    tell();
  } }));
}
