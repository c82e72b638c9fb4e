// The drawings over time at any zoom: what is in view, and the paths that show it. Without script the page shows them at
// full length.
const data = JSON.parse(document.getElementById("data").textContent);
const charts = [...document.querySelectorAll("[data-zoom]")];
const SHORTEST_S = Math.min(5, data.seconds);
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
const events = data.events.filter(([at]) => at >= 0 && at <= data.seconds);
let view = [0, data.seconds];
let cursor = null; // { at, row, event, spell }: what the words are about
let band = null; // [from, until] of the spell that is looked at
let waiting = false;

const clock = at => {
  const whole = Math.floor(at), two = n => String(n).padStart(2, "0");
  const [h, m, s] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
};
const px = value => +value.toFixed(1);
const svgOf = chart => [...chart.querySelectorAll("svg[data-chart]")].find(svg => svg.getClientRects().length);
const edges = svg => [+svg.dataset.left, +svg.dataset.right];
const toX = (svg, at) => {
  const [left, right] = edges(svg);
  return left + (at - view[0]) / (view[1] - view[0]) * (right - left);
};
const toTime = (svg, clientX) => {
  const box = svg.getBoundingClientRect(), [left, right] = edges(svg);
  const x = (clientX - box.left) / box.width * svg.viewBox.baseVal.width;
  return view[0] + Math.min(1, Math.max(0, (x - left) / (right - left))) * (view[1] - view[0]);
};

// Entries in view, in groups of as many as share a pixel: [first entry, entry after the last] of each group.
const groups = (svg, step, length, pixels) => {
  const [left, right] = edges(svg);
  const first = Math.max(0, Math.floor(view[0] / step)), last = Math.min(length, Math.ceil(view[1] / step));
  const size = Math.max(1, Math.ceil((last - first) / ((right - left) / pixels)));
  const found = [];
  for (let k = first - first % size; k < last; k += size) found.push([k, Math.min(k + size, length)]);
  return found;
};
const extreme = (values, [from, to], better) => {
  let best = null;
  for (let k = from; k < to; k++) if (values[k] !== null && (best === null || better(values[k], best))) best = values[k];
  return best;
};
const highest = (values, group) => extreme(values, group, (a, b) => a > b), lowest = (values, group) => extreme(values, group, (a, b) => a < b);
const heightIn = panel => {
  const { panel: kind, low, high, from, to } = panel.dataset;
  const of = kind === "log" ? value => Math.log10(Math.max(value, +low)) : value => value;
  return value => +from + (of(value) - of(+low)) / (of(+high) - of(+low)) * (to - from);
};

function drawSeries(svg, path) {
  const { high, low = high } = data.series[path.dataset.series], y = heightIn(path.closest("[data-panel]"));
  const filled = path.classList.contains("fill"), floor = px(+path.closest("[data-panel]").dataset.from);
  const parts = [], all = groups(svg, data.step, high.length, 1);
  let pen = "M";
  for (const group of all) {
    const top = highest(high, group), bottom = lowest(low, group);
    const x0 = px(toX(svg, group[0] * data.step)), x1 = px(toX(svg, Math.min(group[1] * data.step, data.seconds)));
    const single = group[1] - group[0] === 1 && low === high, y0 = top === null ? floor : px(y(top));
    if (filled) parts.push(`${parts.length ? "L" : `M${x0} ${floor}L`}${x0} ${y0}H${x1}`);
    else if (top === null) { pen = "M"; continue; }
    else if (single && path.dataset.kind !== "line") parts.push(`${pen}${x0} ${y0}H${x1}`);
    else parts.push(`${pen}${px((x0 + x1) / 2)} ${y0}${single ? "" : `V${px(y(bottom))}`}`);
    pen = "L";
  }
  path.setAttribute("d", parts.join("") + (filled && parts.length ? `V${floor}Z` : ""));
}

function drawLate(svg, paths) {
  const panel = paths[0].closest("[data-panel]"), y = heightIn(panel), floor = +panel.dataset.from;
  const parts = data.late.map(() => []);
  for (const [from, to] of groups(svg, data.step, data.late[0].high.length, 2)) {
    let worst = from, most = -1;
    for (let k = from; k < to; k++) {
      const total = data.late.reduce((sum, one) => sum + one.high[k], 0);
      if (total > most) [worst, most] = [k, total];
    }
    const x0 = toX(svg, from * data.step), x1 = toX(svg, to * data.step);
    let base = floor;
    data.late.forEach((one, which) => {
      if (!one.high[worst]) return;
      const tall = Math.max(2, floor - y(one.high[worst]));
      parts[which].push(`M${px(x0)} ${px(base)}H${px(Math.max(x0 + 1, x1))}v${px(-tall)}H${px(x0)}z`);
      base -= tall;
    });
  }
  paths.forEach(path => path.setAttribute("d", parts[data.late.findIndex(o => o.cause === path.dataset.cause)].join("")));
}

function drawHeat(svg) {
  const { cell, worst, bounds, held } = data.heat, row = +svg.dataset.row, top = +svg.dataset.top;
  const parts = Array.from({ length: bounds.length + 1 }, () => []), changes = [];
  const columns = groups(svg, cell, worst[0].length, 2);
  worst.forEach((values, line) => {
    const y = px(top + line * row);
    for (const group of columns) {
      const value = highest(values, group);
      if (value === null) continue;
      const level = bounds.filter(bound => value > bound).length;
      const x0 = px(toX(svg, group[0] * cell)), x1 = px(toX(svg, Math.min(group[1] * cell, data.seconds)));
      parts[level].push(`M${x0} ${y}H${x1}v${px(row)}H${x0}z`);
    }
    held[line].slice(1).forEach(([at]) => changes.push(`M${px(toX(svg, at))} ${y}v${px(row)}`));
  });
  svg.querySelectorAll("[data-level]").forEach(path => path.setAttribute("d", parts[path.dataset.level].join("")));
  svg.querySelectorAll("[data-changes]").forEach(path => path.setAttribute("d", changes.join("")));
}

function drawMarks(svg, path) {
  const { marks, y, shape } = path.dataset, inView = events.filter(([at]) => at >= view[0] && at <= view[1]);
  const places = new Set(inView.filter(([, kind]) => kind === marks).map(([at]) => Math.round(toX(svg, at))));
  path.setAttribute("d", [...places].map(x => `M${x} ${y}${shape}`).join(""));
}

function make(name, attributes, words) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
  if (words) made.textContent = words;
  return made;
}

function drawAxis(svg) {
  const axis = svg.querySelector("[data-axis]"), [left, right] = edges(svg), { top, bottom } = svg.dataset;
  const step = STEPS_S.find(one => (view[1] - view[0]) / one <= (right - left) / 85) ?? STEPS_S.at(-1);
  axis.replaceChildren();
  for (let at = Math.ceil(view[0] / step) * step; at <= view[1]; at += step) {
    const x = px(toX(svg, at));
    axis.append(make("path", { class: "grid", d: `M${x} ${top}V${bottom}` }));
    const words = clock(at), most = svg.viewBox.baseVal.width - 3.8 * words.length;
    axis.append(make("text", { class: "tick", x: Math.min(x, most), y: +bottom + 18, "text-anchor": "middle" }, words));
  }
}

function draw() {
  waiting = false;
  for (const svg of charts.map(svgOf).filter(Boolean)) {
    drawAxis(svg);
    svg.querySelectorAll("[data-series]").forEach(path => drawSeries(svg, path));
    svg.querySelectorAll("[data-marks]").forEach(path => drawMarks(svg, path));
    const late = [...svg.querySelectorAll("[data-cause]")];
    if (late.length) drawLate(svg, late);
    if (svg.dataset.chart === "heat") drawHeat(svg);
    drawCursor(svg);
  }
  const all = view[1] - view[0] >= data.seconds;
  document.querySelectorAll("[data-do=reset]").forEach(button => { button.disabled = all; });
  document.querySelectorAll("[data-span]").forEach(span => {
    span.textContent = all ? "the whole run" : `${clock(view[0])} – ${clock(Math.ceil(view[1]))}`;
  });
}
const redraw = () => { if (!waiting) { waiting = true; requestAnimationFrame(draw); } };

function look(from, to) {
  const length = Math.min(data.seconds, Math.max(SHORTEST_S, to - from));
  const start = Math.min(data.seconds - length, Math.max(0, (from + to - length) / 2));
  view = [start, start + length];
  redraw();
}
const zoom = (factor, at) => look(at - (at - view[0]) * factor, at + (view[1] - at) * factor);
const pan = share => look(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));

// The line at the cursor, and the stretch of the spell that is looked at.
function drawCursor(svg) {
  const { top, bottom } = svg.dataset, part = name => svg.querySelector(`.${name}`) ?? svg.appendChild(make("path", { class: name }));
  const shown = cursor && cursor.at >= view[0] && cursor.at <= view[1];
  part("cursor").setAttribute("d", shown ? `M${px(toX(svg, cursor.at))} ${top}V${bottom}` : "");
  const [from, to] = (band ?? [0, 0]).map(at => toX(svg, Math.min(view[1], Math.max(view[0], at))));
  const seen = band && band[0] <= view[1] && band[1] >= view[0];
  part("band").setAttribute("d", seen ? `M${px(from - 1)} ${top}H${px(Math.max(to, from + 1) + 1)}V${bottom}H${px(from - 1)}z` : "");
}
