// csv.js: tables as the studies write them – a line of names, then numbers and words, quoted where they must be.
export function csv(text) {
  const rows = [[]];
  let cell = "", quoted = false;
  for (let i = 0; i < text.length; i++) {
    const c = text[i];
    if (quoted) {
      if (c !== '"') cell += c;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === "," || c === "\n") {
      rows.at(-1).push(cell);
      cell = "";
      if (c === "\n") rows.push([]);
    } else if (c !== "\r") cell += c;
  }
  if (cell || rows.at(-1).length) rows.at(-1).push(cell);
  const [names, ...lines] = rows.filter((row) => row.length > 0);
  return { names, rows: lines.map((line) => Object.fromEntries(names.map((name, k) => [name, value(line[k] ?? "")]))) };
}

function value(text) {
  if (text === "") return null;
  if (text === "inf") return Infinity;
  const number = Number(text);
  return Number.isNaN(number) ? text : number;
}
