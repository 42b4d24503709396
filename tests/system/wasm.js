/* Recalls of build/cgam.html under Node against the oracle's banks: node wasm.js BUILD SOURCE. Bound: 1e-9 for p and relative gaps.
 * A proved bound of p may not exceed the oracle's p. */
"use strict";
const fs = require("fs"), path = require("path");
const [build, source] = process.argv.slice(2);
const page = fs.readFileSync(path.join(build, "cgam.html"), "utf8");
const script = page.match(/<script>\n([^]*?)\n<\/script>/)[1];
const recall = eval(`(${page.match(/\nfunction recall\([^]*?\n}\n/)[0]})`);
const cgam_module = new Function("require", "__dirname", "process", `${script}; return cgam_module;`)(require, __dirname, process);

function npy(file) {
  const bytes = fs.readFileSync(file), length = bytes.readUInt16LE(8), header = bytes.subarray(10, 10 + length).toString();
  const type = header.match(/'descr': '([^']*)'/)[1], shape = header.match(/\(([^)]*)\)/)[1].split(",").filter((x) => x.trim()).map(Number);
  const data = bytes.buffer.slice(bytes.byteOffset + 10 + length, bytes.byteOffset + bytes.length);
  const values = type === "<f8" ? new Float64Array(data) : type === "<f4" ? new Float32Array(data) : null;
  if (!values) return null;
  const d = shape[shape.length - 1], rows = [];
  for (let i = 0; i < values.length; i += d) rows.push(Array.from(values.subarray(i, i + d)));
  return { rows, shared: shape.length === 1 };
}

process.on("unhandledRejection", (e) => {
  console.error(`wasm: ${String(e && e.stack).slice(0, 500)}`);
  process.exit(1);
});
cgam_module().then((module) => {
  let recalls = 0, proved = 0, worst = [0, 0], failures = 0;
  const fail = (text) => { failures++; console.error(`wasm: ${text}`); };
  const data = path.join(source, "tests/oracle/data");
  for (const name of fs.readdirSync(data)) {
    const at = (file) => path.join(data, name, file);
    if (!fs.existsSync(at("expect.json")) || fs.existsSync(at("P.npy")) || fs.existsSync(at("W.npy"))) continue;
    const want = JSON.parse(fs.readFileSync(at("expect.json"), "utf8"));
    if (!want.bank || want.bank.normalize || !fs.existsSync(at("C.npy"))) continue;
    const Z = npy(at("Z.npy")), Q = npy(at("Q.npy")), C = npy(at("C.npy"));
    if (!Z || !Q || !C) continue; /* half floats */
    for (const [mode, cases] of [[0, want.first || []], [1, want.coupled || []]])
      for (const k of cases)
        k.queries.forEach((expected, i) => {
          const r = recall(module, Z.rows, Q.rows[i], C.rows[C.shared ? 0 : i], { mode, alpha: k.alpha, beta: k.beta, lambda: k.lambda });
          const where = `${name}, mode ${mode}, alpha ${k.alpha}, query ${i}`;
          if (r.status !== 0) return fail(`${where}: ${r.message}`);
          const truth = expected.at_winner;
          if (!expected.tied.includes(r.winner)) return fail(`${where}: winner ${r.winner}, wanted ${expected.tied}`);
          const off = Math.max(Math.abs(r.p - truth.p), truth.gap === null ? 0 : Math.abs(r.gap - truth.gap) / Math.max(1, Math.abs(truth.gap)));
          worst[mode] = Math.max(worst[mode], off);
          if (!(off <= 1e-9)) fail(`${where}: p ${r.p}, wanted ${truth.p}; gap ${r.gap}, wanted ${truth.gap}; off by ${off}`);
          const sum = r.p_all.reduce((a, b) => a + b, 0);
          if (!(Math.abs(sum - 1) < 1e-12) || !(Math.abs(r.p_all[r.winner] - r.p) < 1e-12)) fail(`${where}: p adds up to ${sum}`);
          if (r.p_lower_bound_proved && !(r.p_lower_bound <= truth.p * (1 + 1e-12))) fail(`${where}: bound ${r.p_lower_bound} of ${truth.p}`);
          proved += r.p_lower_bound_proved;
          recalls++;
        });
  }
  const none = recall(module, [[1, 0], [0, 1]], [1, 0], [0, 0], { mode: 0, alpha: 0, beta: -1, lambda: 1 });
  if (none.status === 0 || !/beta/.test(none.message)) fail(`beta -1 is accepted: ${JSON.stringify(none)}`);
  const flow = recall(module, [[1, 0], [0, 1]], [1, 0], [0, 0], { mode: 2, alpha: 0, beta: 1, lambda: 1 });
  if (flow.status === 0 || !/mode/.test(flow.message)) fail("mode flow is accepted");
  if (recalls < 100 || proved < 50) fail(`only ${recalls} recalls, ${proved} proved`);
  console.log(`wasm: ${recalls} recalls, ${proved} proved bounds; off by at most ${worst[0].toExponential(1)} (first), ${worst[1].toExponential(1)} (coupled)`);
  process.exit(failures ? 1 : 0);
});
