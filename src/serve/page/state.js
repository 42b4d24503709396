// state.js: what a view shows, in the address: #recall?bank=demo&lambda=0.8. A link brings it back.

export function read() {
  const [view, query = ""] = location.hash.slice(1).split("?");
  return { view, values: Object.fromEntries(new URLSearchParams(query)) };
}

// Values with the defaults of a view: numbers stay numbers.
export function withDefaults(values, defaults) {
  const out = { ...defaults };
  for (const [key, usual] of Object.entries(defaults)) {
    if (!(key in values)) continue;
    const number = Number(values[key]);
    out[key] = typeof usual === "number" ? (Number.isFinite(number) ? number : usual) :
      typeof usual === "boolean" ? values[key] === "true" : values[key];
  }
  return out;
}

export function address(view, values, defaults) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(values))
    if (value !== defaults[key]) query.set(key, value);
  const text = query.toString();
  return `#${view}${text ? `?${text}` : ""}`;
}

export function write(view, values, defaults) {
  history.replaceState(null, "", address(view, values, defaults));
}
