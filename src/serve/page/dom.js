// dom.js: elements, and the few controls that the views are made of.

// el("p", {class: "hint", onclick: f}, "text", other) – properties that are not functions become attributes.
export function el(name, attributes = {}, ...inside) {
  const svg = ["svg", "rect", "line", "text", "g", "pattern", "defs", "path", "circle", "title"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (typeof value === "function") node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const one of inside.flat()) if (one !== undefined && one !== null) node.append(one);
  return node;
}

// A number for people: as many digits as tell something.
export function show(value, digits = 4) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (value === 0 || Number.isInteger(value) && Math.abs(value) < 1e6) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-3 ? value.toExponential(digits - 2) : String(Number(value.toPrecision(digits)));
}

// Says something to those who listen to the page.
export function say(text) {
  document.getElementById("said").textContent = text;
}

let labels = 0;
export function labelled(text, control, hint) {
  control.id ||= `c${++labels}`;
  return el("div", { class: "field" }, el("label", { for: control.id }, text), control, hint ? el("small", {}, hint) : null);
}

export function choice(text, values, value, change) {
  const box = el("select", { onchange: () => change(box.value) },
    values.map((v) => el("option", { value: v.value ?? v, selected: (v.value ?? v) === value }, v.text ?? v)));
  return labelled(text, box);
}

export function field(text, value, change, attributes = {}, hint) {
  const box = el("input", { value, onchange: () => change(box.value), ...attributes });
  return labelled(text, box, hint);
}

// A slider with its value as a number that can be typed. marks([{value, text, short}]) writes marks below it, for as many
// lines of which there is room from the beginning; reach(most) moves its upper end.
export function slider(text, { min, max, step, value, log = false, change, name, lines = 0 }) {
  const place = (v) => log ? Math.log(v) : v, at = (x) => log ? Math.exp(x) : x;
  const low = place(min);
  let high = place(max), now = value;
  const ticks = el("div", { class: `ticks ${["", "one", "two-lines"][lines]}`, id: `marks-${name}` });
  const range = el("input", { type: "range", min: low, max: high, step: log ? (high - low) / 400 : step, value: place(value), name, "aria-describedby": ticks.id, "aria-valuetext": show(value) });
  const number = el("input", { type: "number", class: "value", step: "any", min: log ? undefined : min, value: show(value, 6), "aria-label": `${text}, as a number` });
  const tell = (v) => {
    now = v;
    range.setAttribute("aria-valuetext", show(v));
    change(v);
  };
  range.addEventListener("input", () => {
    const v = Number(at(Number(range.value)).toPrecision(log ? 4 : 10));
    number.value = show(v, 6);
    tell(v);
  });
  number.addEventListener("change", () => {
    const v = Number(number.value);
    if (!Number.isFinite(v) || v < (log ? 1e-9 : min)) return number.setAttribute("aria-invalid", "true");
    number.removeAttribute("aria-invalid");
    range.value = place(v);
    tell(v);
  });
  const node = el("div", { class: "slider" }, labelled(text, range), number, ticks);
  node.marks = (list) => {
    ticks.replaceChildren();
    let last = -1;
    for (const mark of [...list].sort((a, b) => a.value - b.value)) {
      if (mark.value === null || mark.value === undefined) continue;
      const share = (place(mark.value) - low) / (high - low);
      if (!(share >= 0 && share <= 1)) continue;
      const tick = el("span", { class: share - last < 0.22 && last >= 0 ? "tick lower" : "tick", title: `${mark.text}: ${show(mark.value, 6)}` }, el("b", {}, `${mark.short} ${show(mark.value, 3)}`));
      tick.style.left = `calc(${share} * (100% - 1rem) + 0.5rem)`;
      ticks.append(tick);
      last = share;
    }
  };
  node.reach = (most) => {
    high = place(most);
    range.max = high;
    range.step = (high - low) / 150;
    range.value = place(now);
  };
  return node;
}

// A box to tick.
export function checkbox(text, value, change, attributes = {}) {
  const box = el("input", { type: "checkbox", checked: value, onchange: () => change(box.checked), ...attributes });
  return el("div", { class: "check" }, el("label", {}, box, " ", text));
}

export function button(text, press, attributes = {}) {
  return el("button", { type: "button", onclick: press, ...attributes }, text);
}

// Rows of [name, value, note].
export function table(rows, caption) {
  return el("table", { class: "facts" }, caption ? el("caption", {}, caption) : null,
    el("tbody", {}, rows.map(([name, value, note]) => el("tr", {}, el("th", { scope: "row" }, name),
      el("td", {}, typeof value === "number" || value === null ? show(value, 5) : value), el("td", {}, note ?? "")))));
}

// A place for what is asked for: empty, at work, an error, or the answer.
export function stage(words) {
  const node = el("div", { class: "stage" }, el("p", { class: "hint" }, words));
  const note = el("p", { class: "note", hidden: true });
  node.busy = (text = "Computing…") => {
    node.setAttribute("aria-busy", "true");
    note.textContent = text;
    note.hidden = false;
    if (!note.isConnected) node.prepend(note);
  };
  node.fail = (error, again) => {
    node.removeAttribute("aria-busy");
    node.replaceChildren(el("div", { class: "error", role: "alert" }, el("strong", {}, "No answer"), el("p", {}, error.message),
      error.hint ? el("p", { class: "hint" }, error.hint) : null, again ? button("Try again", again) : null));
  };
  node.show = (...inside) => {
    node.removeAttribute("aria-busy");
    note.hidden = true;
    node.replaceChildren(...inside.flat().filter(Boolean));
  };
  node.empty = (text) => node.show(el("p", { class: "hint" }, text));
  return node;
}
