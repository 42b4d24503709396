// heat.js: a map on a canvas – cells or a smooth field with level lines – that can be read by pointer and by keyboard.
//
//   const map = heat({ label, read(i, j) -> text, pick(i, j) });     arrow keys move, Enter picks
//   map.draw({ values [rows][columns], low, high, contours, cells, x [columns], y [rows], xLabel, yLabel, xNames, yNames, words(i, j), over(pen) })
//
// Row 0 is at the bottom. `over` draws on top: pen has the context and px, py from coordinates to pixels.
import { el, say, show } from "./dom.js";
import { colours, dark, letters, viridis } from "./theme.js";

const MARGIN = { left: 58, right: 10, top: 8, bottom: 40 };

// Round numbers within a rising list, at most about `most`.
function ticks(list, most) {
  const low = list[0], high = list.at(-1), rough = (high - low) / most, unit = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((k) => k * unit).find((one) => one >= rough) ?? 10 * unit, out = [];
  for (let k = Math.ceil(low / step); k * step <= high; k++) out.push(Number((k * step).toPrecision(6)));
  return out;
}

export function heat({ label, read, pick, height = 0.85 }) {
  const canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": label });
  const note = el("p", { class: "reading" }, " ");
  const node = el("figure", { class: "heat" }, el("figcaption", {}, label), canvas, el("div", { class: "scale" }), note);
  let data = null, at = null, box = null;

  const place = (event) => {
    const rect = canvas.getBoundingClientRect();
    const x = (event.clientX - rect.left - box.left) / box.width, y = 1 - (event.clientY - rect.top - box.top) / box.height;
    if (x < 0 || x > 1 || y < 0 || y > 1) return null;
    const rows = data.values.length, columns = data.values[0].length;
    return data.cells ? { i: Math.min(Math.floor(x * columns), columns - 1), j: Math.min(Math.floor(y * rows), rows - 1) } :
      { i: Math.round(x * (columns - 1)), j: Math.round(y * (rows - 1)) };
  };
  const go = (to, loud) => {
    at = to;
    note.textContent = to ? read(to.i, to.j) : " ";
    if (to && loud) say(note.textContent);
    paint();
  };
  canvas.addEventListener("pointermove", (event) => data && go(place(event)));
  canvas.addEventListener("pointerleave", () => data && document.activeElement !== canvas && go(null));
  canvas.addEventListener("click", (event) => {
    const to = data && place(event);
    if (to) {
      go(to);
      pick?.(to.i, to.j);
    }
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key];
    if (!data || !step && event.key !== "Enter") return;
    event.preventDefault();
    const rows = data.values.length, columns = data.values[0].length;
    const from = at ?? { i: columns >> 1, j: rows >> 1 };
    if (!step) return pick?.(from.i, from.j);
    const big = event.shiftKey ? 5 : 1, clamp = (v, most) => Math.min(Math.max(v, 0), most);
    go({ i: clamp(from.i + big * step[0], columns - 1), j: clamp(from.j + big * step[1], rows - 1) }, true);
  });

  function field(pen) { // the colours: an image of the grid's size, enlarged
    const rows = data.values.length, columns = data.values[0].length;
    const image = new ImageData(columns, rows);
    for (let j = 0; j < rows; j++)
      for (let i = 0; i < columns; i++) {
        const v = data.values[j][i], k = 4 * ((rows - 1 - j) * columns + i);
        if (v === null || v === undefined) continue;
        const [r, g, b] = viridis((v - data.low) / (data.high - data.low || 1));
        image.data.set([r, g, b, 255], k);
      }
    const small = new OffscreenCanvas(columns, rows);
    small.getContext("2d").putImageData(image, 0, 0);
    pen.imageSmoothingEnabled = !data.cells;
    pen.imageSmoothingQuality = "high";
    const { left, top, width, height: tall } = box;
    if (data.cells) return pen.drawImage(small, left, top, width, tall);
    // the middle of the first and last pixel lie on the edges
    pen.drawImage(small, 0.5, 0.5, columns - 1, rows - 1, left, top, width, tall);
  }

  function contours(pen) { // marching squares
    const rows = data.values.length, columns = data.values[0].length, v = data.values;
    const X = (i) => box.left + i / (columns - 1) * box.width, Y = (j) => box.top + (1 - j / (rows - 1)) * box.height;
    pen.lineWidth = 1;
    data.contours.forEach((level) => {
      pen.strokeStyle = (level - data.low) / (data.high - data.low) > 0.6 ? "rgba(0,0,0,.55)" : "rgba(255,255,255,.6)";
      pen.beginPath();
      for (let j = 0; j + 1 < rows; j++)
        for (let i = 0; i + 1 < columns; i++) {
          const corner = [[i, j], [i + 1, j], [i + 1, j + 1], [i, j + 1]], cut = [];
          for (let k = 0; k < 4; k++) {
            const [a, b] = corner[k], [c, d] = corner[(k + 1) % 4], from = v[b][a], to = v[d][c];
            if (from < level === to < level) continue;
            const t = (level - from) / (to - from);
            cut.push([X(a + t * (c - a)), Y(b + t * (d - b))]);
          }
          for (let k = 0; k + 1 < cut.length; k += 2) {
            pen.moveTo(...cut[k]);
            pen.lineTo(...cut[k + 1]);
          }
        }
      pen.stroke();
    });
  }

  function words(pen) { // what a cell says, where there is room for it
    const rows = data.values.length, columns = data.values[0].length, w = box.width / columns, h = box.height / rows;
    if (w < 30 || h < 15) return;
    pen.font = `${Math.min(13, h * 0.7)}px system-ui, sans-serif`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let j = 0; j < rows; j++)
      for (let i = 0; i < columns; i++) {
        const v = data.values[j][i];
        if (v === null || v === undefined) continue;
        pen.fillStyle = (v - data.low) / (data.high - data.low || 1) > 0.55 ? "#000" : "#fff";
        pen.fillText(data.words(i, j), box.left + (i + 0.5) * w, box.top + (rows - 0.5 - j) * h, w - 4);
      }
  }

  function axis(pen, ink) {
    const { left, top, width, height: tall } = box, rows = data.values.length, columns = data.values[0].length;
    pen.fillStyle = ink.ink;
    pen.strokeStyle = ink.line;
    pen.font = letters(0.75);
    pen.strokeRect(left, top, width, tall);
    const most = Math.max(2, Math.floor(width / 44)), few = Math.max(2, Math.floor(tall / 28));
    const mark = (count, room) => {
      const step = Math.max(1, Math.ceil(count / room)), list = [];
      for (let k = 0; k < count; k += step) list.push(k);
      return list;
    };
    pen.textAlign = "center";
    pen.textBaseline = "top";
    if (data.cells)
      for (const i of mark(columns, most)) pen.fillText(data.xNames[i], left + (i + 0.5) / columns * width, top + tall + 5, width / Math.min(most, columns));
    else
      for (const v of ticks(data.x, most)) pen.fillText(show(v, 3), left + (v - data.x[0]) / (data.x.at(-1) - data.x[0]) * width, top + tall + 5);
    pen.fillText(data.xLabel, left + width / 2, top + tall + 21);
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    if (data.cells)
      for (const j of mark(rows, few)) pen.fillText(data.yNames[j], left - 5, top + (1 - (j + 0.5) / rows) * tall, left - 22);
    else
      for (const v of ticks(data.y, few)) pen.fillText(show(v, 3), left - 5, top + (1 - (v - data.y[0]) / (data.y.at(-1) - data.y[0])) * tall);
    pen.save();
    pen.translate(8, top + tall / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(data.yLabel, 0, 0);
    pen.restore();
  }

  function paint() {
    if (!data || !canvas.isConnected) return;
    const wide = node.clientWidth, tall = Math.round(Math.min(wide * (data.height ?? height), 560)), ratio = devicePixelRatio || 1;
    canvas.style.height = `${tall}px`;
    canvas.width = Math.round(wide * ratio);
    canvas.height = Math.round(tall * ratio);
    const pen = canvas.getContext("2d"), ink = colours();
    pen.scale(ratio, ratio);
    box = { left: MARGIN.left, top: MARGIN.top, width: wide - MARGIN.left - MARGIN.right, height: tall - MARGIN.top - MARGIN.bottom };
    field(pen);
    if (data.contours) contours(pen);
    if (data.words) words(pen);
    axis(pen, ink);
    const rows = data.values.length, columns = data.values[0].length;
    if (data.over) {
      const x0 = data.x[0], x1 = data.x[columns - 1], y0 = data.y[0], y1 = data.y[rows - 1];
      pen.save();
      pen.beginPath();
      pen.rect(box.left, box.top, box.width, box.height);
      pen.clip();
      data.over({ pen, px: (x) => box.left + (x - x0) / (x1 - x0) * box.width, py: (y) => box.top + (1 - (y - y0) / (y1 - y0)) * box.height });
      pen.restore();
    }
    if (at && at.i < columns && at.j < rows) {
      const w = data.cells ? box.width / columns : 12, h = data.cells ? box.height / rows : 12;
      const x = data.cells ? box.left + at.i * w : box.left + at.i / (columns - 1) * box.width - 6;
      const y = data.cells ? box.top + (rows - 1 - at.j) * h : box.top + (1 - at.j / (rows - 1)) * box.height - 6;
      pen.lineWidth = 4;
      pen.strokeStyle = "#000";
      pen.strokeRect(x, y, w, h);
      pen.lineWidth = 2;
      pen.strokeStyle = "#fff";
      pen.strokeRect(x, y, w, h);
    }
  }

  function scale() { // the colours and what they stand for
    const bar = el("canvas", { width: 128, height: 1, "aria-hidden": "true" });
    const pen = bar.getContext("2d");
    for (let i = 0; i < 128; i++) {
      pen.fillStyle = `rgb(${viridis(i / 127)})`;
      pen.fillRect(i, 0, 1, 1);
    }
    node.querySelector(".scale").replaceChildren(el("span", {}, show(data.shownLow ?? data.low, 3)), bar, el("span", {}, show(data.shownHigh ?? data.high, 3)), el("span", {}, data.scaleLabel ?? ""));
  }

  node.draw = (next) => {
    const fresh = !data || next.low !== data.low || next.high !== data.high || next.scaleLabel !== data.scaleLabel;
    data = next;
    if (fresh) scale();
    if (at && (at.j >= data.values.length || at.i >= data.values[0].length)) at = null;
    if (at) note.textContent = read(at.i, at.j);
    paint();
  };
  node.paint = paint;
  new ResizeObserver(paint).observe(node);
  dark.addEventListener("change", paint);
  return node;
}

// Level lines: `count` between the ends, closer together where the field is low.
export function levels(low, high, count = 12) {
  return Array.from({ length: count }, (_, k) => low + (high - low) * ((k + 0.5) / count) ** 1.6);
}
