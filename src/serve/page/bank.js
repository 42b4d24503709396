// bank.js: the banks that the server has, and what to begin with on any of them, be it of one memory or of a million.
import { call } from "./ask.js";
import { choice, el } from "./dom.js";

const MUCH = 200000; // numbers in a bank up to which what costs more than a recall may follow a slider

export const bankOf = (world, id) => world.banks.find((one) => one.id === id) ?? world.banks[0] ?? { id: "", n: 0, d: 0 };
export const small = (bank) => bank.n * bank.d <= MUCH;

// Three memories that lie apart; fewer where there are fewer. A penalty that is subcritical for every bank is 0.
export function beginning(bank) {
  const rows = bank.n > 41 ? [7, 23, 41] : [...new Set([0, Math.floor(bank.n / 3), Math.floor(2 * bank.n / 3)])];
  return { rows, query: rows.slice(0, 2).map((row) => rows.length > 1 ? `${row}*0.5` : String(row)).join("+"), alpha: bank.id === "demo" ? 0.2 : 0 };
}

// What memories are called: a Map from row to name, empty where they have none. Each is asked for once, and all that are
// wished for at a time in one request.
const called = new Map(), wished = new Map();
export async function namesOf(bank, rows) {
  if (!called.has(bank.id)) called.set(bank.id, new Map());
  const known = called.get(bank.id), unknown = bank.names ? rows.filter((row) => row < bank.n && !known.has(row)) : [];
  if (unknown.length === 0) return known;
  if (!wished.has(bank.id)) {
    const asked = new Set();
    wished.set(bank.id, { asked, answer: Promise.resolve().then(() => {
      wished.delete(bank.id);
      return call("bank names", { bank: bank.id, rows: [...asked], top: asked.size });
    }).then((doc) => doc.names.forEach(({ row, name }) => known.set(row, name)), () => { /* numbers stay */ }) });
  }
  const { asked, answer } = wished.get(bank.id);
  unknown.forEach((row) => asked.add(row));
  await answer;
  return known;
}

// Another bank has other memories: of what was shown only `kept` stays.
export function bankChoice(world, state, kept) {
  return choice("bank", world.banks.map((one) => ({ value: one.id, text: `${one.id} (${one.n} × ${one.d})` })), state.values.bank,
    (bank) => state.restart({ bank, ...Object.fromEntries(kept.map((key) => [key, state.values[key]])) }));
}

// Is there one? Says how to get one where there is none.
export function anyBank(world, place) {
  if (world.banks.length === 0) place.append(el("p", { class: "hint" }, "The server has no bank; start it with --bank FILE."));
  return world.banks.length > 0;
}
