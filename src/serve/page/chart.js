// chart.js: curves by uPlot, with marks for special places on the x axis, and the same numbers as a table below. uPlot is
// fetched when the first curve is drawn.
import { el, show } from "./dom.js";
import { colours, dark, dashes, letters } from "./theme.js";

const KINDS = ["", " (dashed)", " (dotted)", " (dash-dot)"]; // in the legend: curves can be told apart without colours

let library = null;
const fetched = () => library ??= Promise.all([el("link", { rel: "stylesheet", href: "uplot.css" }), el("script", { src: "uplot.js" })].map((node) =>
  new Promise((resolve) => {
    node.addEventListener("load", resolve);
    node.addEventListener("error", resolve);
    document.head.prepend(node); // so that style.css has the last word
  })));

// series: [{label, values, points}] over x; marks: [{at, text, curve}] vertical lines; y: [low, high] or undefined.
export function chart({ label, xLabel, yLabel, height = 300 }) {
  const place = el("div", { class: "plot" });
  const numbers = el("details", { class: "numbers" }, el("summary", {}, "The numbers"));
  const node = el("figure", { class: "chart", role: "group", "aria-label": label }, el("figcaption", {}, label), place, numbers);
  let data = null, plot = null, wide = 0;

  function marks(u) {
    const pen = u.ctx, ratio = devicePixelRatio || 1, ink = colours();
    pen.save();
    pen.font = letters(0.75, ratio);
    pen.lineWidth = 1.5 * ratio;
    (data.marks ?? []).forEach((mark, k) => {
      if (mark.at === null || mark.at === undefined || mark.at < u.scales.x.min || mark.at > u.scales.x.max) return;
      const x = Math.round(u.valToPos(mark.at, "x", true)), y = u.bbox.top;
      pen.strokeStyle = ink.ink;
      pen.fillStyle = ink.ink;
      pen.setLineDash(dashes[(k + 1) % dashes.length].map((d) => d * ratio));
      pen.beginPath();
      pen.moveTo(x, y);
      pen.lineTo(x, y + u.bbox.height);
      pen.stroke();
      const left = x > u.bbox.left + 0.75 * u.bbox.width, at = [mark.text, x + (left ? -5 : 5) * ratio, y + (14 + 16 * k) * ratio];
      pen.textAlign = left ? "right" : "left";
      pen.setLineDash([]);
      pen.lineJoin = "round";
      pen.lineWidth = 5 * ratio;
      pen.strokeStyle = ink.paper;
      pen.strokeText(...at);
      pen.fillText(...at);
      pen.lineWidth = 1.5 * ratio;
    });
    pen.restore();
  }

  async function build() {
    await fetched();
    plot?.destroy();
    plot = null;
    wide = place.clientWidth;
    if (!wide) return;
    if (!globalThis.uPlot) {
      place.replaceChildren(el("p", { class: "hint" }, "This build of cgam has no uPlot (run tools/uplot to fetch it), so there are no curves; the numbers are below."));
      numbers.open = true;
      return;
    }
    const ink = colours();
    const line = { font: letters(0.75), labelFont: `600 ${letters(0.75)}`, stroke: ink.ink, grid: { stroke: ink.line, width: 1 }, ticks: { stroke: ink.line } };
    const series = data.series.map((one, k) => ({
      label: one.label + KINDS[k % dashes.length], stroke: ink.curves[k % ink.curves.length], dash: dashes[k % dashes.length], width: 2,
      points: { show: Boolean(one.points), size: 5 }, paths: one.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined, spanGaps: false,
      value: (u, v) => show(v),
    }));
    plot = new uPlot({
      width: wide, height: Math.min(height, Math.max(280, wide * 0.7)),
      scales: { x: { time: false, distr: data.log ? 3 : 1, range: data.xRange }, y: { range: data.y } },
      axes: [{ ...line, label: xLabel, labelSize: 22, values: (u, v) => v.map((one) => one === null ? "" : show(one, 3)) },
        { ...line, label: yLabel, labelSize: 22, size: 62, values: (u, v) => v.map((one) => show(one, 3)) }],
      series: [{ label: xLabel, value: (u, v) => show(v) }, ...series],
      hooks: { draw: [marks] },
    }, [data.x, ...data.series.map((one) => one.values)], place);
  }

  function list() {
    const step = Math.max(1, Math.ceil(data.x.length / 60));
    const rows = data.x.map((x, i) => [x, ...data.series.map((one) => one.values[i])]).filter((_, i) => i % step === 0);
    const marked = (data.marks ?? []).filter((mark) => mark.at !== null && mark.at !== undefined).map((mark) => `${mark.text} at ${show(mark.at)}`);
    numbers.replaceChildren(numbers.firstChild, marked.length ? el("p", { class: "marks" }, `Marks: ${marked.join("; ")}.`) : "", el("div", { class: "wide" }, el("table", {},
      el("thead", {}, el("tr", {}, [xLabel, ...data.series.map((one) => one.label)].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((v) => el("td", {}, show(v)))))))));
  }

  node.draw = (next) => {
    data = next;
    if (node.isConnected) build();
    list();
  };
  new ResizeObserver(() => data && place.clientWidth && place.clientWidth !== wide && build()).observe(node);
  dark.addEventListener("change", () => data && node.isConnected && build());
  return node;
}
