// finder.js: a memory is looked for by the beginning of its name, or by its number. Arrow keys go through what is found,
// Enter takes it, Escape leaves.
import { call, latest } from "./ask.js";
import { el, labelled, say } from "./dom.js";

let count = 0;

// bank: {id, n, names}; pick({row, name}): what was chosen, name undefined where the bank has none.
export function finder({ bank, text, pick }) {
  const id = `found-${++count}`, list = el("ul", { id, role: "listbox", class: "found", "aria-label": text, hidden: true });
  const box = el("input", { role: "combobox", "aria-autocomplete": "list", "aria-expanded": "false", "aria-controls": id, autocomplete: "off", spellcheck: "false" });
  let found = [], at = 0;

  function draw() {
    list.replaceChildren(...found.map((one, k) => el("li", { id: `${id}-${k}`, role: "option", "aria-selected": String(k === at), onmousedown: (event) => {
      event.preventDefault();
      take(k);
    } }, one.name === undefined ? `memory ${one.row}` : `${one.name} (${one.row})`)));
    list.hidden = found.length === 0;
    box.setAttribute("aria-expanded", String(!list.hidden));
    if (list.hidden) box.removeAttribute("aria-activedescendant");
    else box.setAttribute("aria-activedescendant", `${id}-${at}`);
  }
  function close() {
    found = [];
    draw();
  }
  function take(k) {
    const one = found[k];
    box.value = "";
    close();
    pick(one);
  }
  const look = latest(async () => {
    const word = box.value.trim(), number = /^\d+$/.test(word) && Number(word) < bank.n ? Number(word) : null;
    let next = number === null ? [] : [{ row: number }];
    if (bank.names && word)
      try {
        const ask = async (how) => (await call("bank names", { bank: bank.id, ...how })).names;
        next = [...number === null ? [] : await ask({ rows: [number] }), ...(await ask({ prefix: word, top: 8 })).filter((one) => one.row !== number)];
      } catch { /* the view reports what is wrong with the bank */ }
    if (box.value.trim() !== word) return;
    found = next;
    at = 0;
    draw();
    box.toggleAttribute("aria-invalid", Boolean(word) && found.length === 0);
    if (word) say(found.length ? `${found.length} found; ${list.firstChild.textContent}` : "no such memory");
  });
  box.addEventListener("input", look);
  box.addEventListener("blur", close);
  box.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") close();
    else if (found.length === 0) return;
    else if (step) {
      at = (at + step + found.length) % found.length;
      draw();
    } else if (event.key === "Enter") take(at);
    else return;
    event.preventDefault();
  });
  const node = labelled(text, box, bank.names ? "its name, or its number" : "its number");
  node.classList.add("finder");
  node.append(list);
  return node;
}
