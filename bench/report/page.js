"use strict";
// Zoom, cursor and words for the drawings over time. Without it the page shows the same drawings at full length.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const charts = [...document.querySelectorAll("[data-zoom]")];
  if (!charts.length || data.seconds < 2) return;
  const SHORTEST_S = Math.min(5, data.seconds), NEAR_PX = 6;
  const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
  const events = data.events.filter(([at]) => at >= 0 && at <= data.seconds);
  const explained = events.filter(([, , words]) => words);
  let view = [0, data.seconds];
  let cursor = null; // { at, row, event }: what the words are about
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

  function drawCursor(svg) {
    const line = svg.querySelector(".cursor") ?? svg.appendChild(make("path", { class: "cursor" }));
    const shown = cursor && cursor.at >= view[0] && cursor.at <= view[1];
    line.setAttribute("d", shown ? `M${px(toX(svg, cursor.at))} ${svg.dataset.top}V${svg.dataset.bottom}` : "");
  }

  // The words at the cursor, as [label, text, "event" for what happened there].
  function words(svg) {
    const k = Math.min(Math.floor(cursor.at / data.step), Math.ceil(data.seconds / data.step) - 1), found = [];
    const known = value => value === null ? "–" : value.toLocaleString("en");
    if (svg.dataset.chart === "heat") {
      const { partitions, worst, cell, held, owners } = data.heat;
      const value = worst[cursor.row][Math.min(Math.floor(cursor.at / cell), worst[cursor.row].length - 1)];
      const owner = held[cursor.row].filter(([at]) => at <= cursor.at).at(-1);
      found.push(["partition", partitions[cursor.row]], ["owner", owner ? owners[owner[1]] : "–"]);
      found.push(["worst latency", value === null ? "no event" : `${known(value)} ms`]);
    } else {
      Object.values(data.series).forEach(({ label, unit, high }) => found.push([label, known(high[k]) + (high[k] === null ? "" : unit)]));
      data.late.filter(one => one.high[k]).forEach(one => found.push([`late: ${one.label.toLowerCase()}`, `${one.high[k]} /s`]));
    }
    const [left, right] = edges(svg), nearS = NEAR_PX * (view[1] - view[0]) / (right - left);
    const near = cursor.event ? [cursor.event] : explained.filter(([at]) => Math.abs(at - cursor.at) <= nearS);
    near.slice(0, 4).forEach(([at, , text]) => found.push([clock(at), text, "event"]));
    if (near.length > 4) found.push(["…", `and ${near.length - 4} more: zoom in`, "event"]);
    return found;
  }

  function tell(chart, clientY, aloud) {
    const svg = svgOf(chart), tip = chart.querySelector(".tip"), found = words(svg);
    const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
    const x = toX(svg, cursor.at) * scale, right = x > box.width / 2;
    const term = (name, textContent, className = "") => Object.assign(document.createElement(name), { textContent, className });
    const list = document.createElement("dl");
    found.forEach(([label, text, kind]) => list.append(term("dt", label, kind), term("dd", text, kind)));
    tip.replaceChildren(term("strong", clock(cursor.at)), list);
    tip.hidden = false;
    tip.style.left = right ? "" : `${x + 14}px`;
    tip.style.right = right ? `${box.width - x + 14}px` : "";
    const top = (clientY ?? Math.max(box.top, 0) + 60) - box.top;
    tip.style.top = `${Math.max(0, Math.min(top - 20, innerHeight - box.top - tip.offsetHeight - 8, box.height - tip.offsetHeight))}px`;
    if (aloud) chart.querySelector("[aria-live]").textContent = `${clock(cursor.at)}: ` + found.map(([label, text]) => `${label} ${text}`).join(", ");
    charts.map(svgOf).filter(Boolean).forEach(drawCursor);
  }
  function silence() {
    cursor = null;
    document.querySelectorAll(".tip").forEach(tip => { tip.hidden = true; });
    charts.map(svgOf).filter(Boolean).forEach(drawCursor);
  }

  function point(at, row) {
    const rows = data.heat?.partitions.length ?? 1;
    cursor = { at: Math.min(data.seconds - .001, Math.max(0, at)), row: Math.min(rows - 1, Math.max(0, row)) };
  }
  function move(chart, at, row = cursor?.row ?? 0) {
    point(at, row);
    if (cursor.at < view[0]) look(cursor.at, cursor.at + view[1] - view[0]);
    if (cursor.at > view[1]) look(cursor.at - view[1] + view[0], cursor.at);
    tell(chart, null, true);
  }
  function visit(chart, direction) {
    const at = cursor?.at ?? (direction > 0 ? -1 : Infinity);
    const here = cursor?.event ? explained.indexOf(cursor.event) : -1;
    const next = here >= 0 ? explained[here + direction] : direction > 0
      ? explained.find(one => one[0] > at) : explained.findLast(one => one[0] < at);
    if (!next) return;
    move(chart, next[0]);
    cursor.event = next; // its own words, whatever else lies under the same pixel
    tell(chart, null, true);
  }

  const middle = () => cursor?.at ?? (view[0] + view[1]) / 2;
  const actions = {
    in: () => zoom(.5, middle()), out: () => zoom(2, middle()), reset: () => look(0, data.seconds),
    left: () => pan(-.5), right: () => pan(.5), previous: chart => visit(chart, -1), next: chart => visit(chart, 1),
  };
  const keys = { "+": "in", "=": "in", "-": "out", 0: "reset", Home: "reset", PageUp: "left", PageDown: "right", p: "previous", n: "next" };
  function press(chart, event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const stride = Math.max(data.step, (view[1] - view[0]) / 120), row = cursor?.row ?? 0, heat = svgOf(chart).dataset.chart === "heat";
    if (keys[event.key]) actions[keys[event.key]](chart);
    else if (event.key === "ArrowLeft") move(chart, middle() - stride);
    else if (event.key === "ArrowRight") move(chart, middle() + stride);
    else if (heat && event.key === "ArrowUp") move(chart, middle(), row - 1);
    else if (heat && event.key === "ArrowDown") move(chart, middle(), row + 1);
    else if (event.key === "Escape") silence();
    else return;
    event.preventDefault();
  }

  function listen(chart) {
    const plot = chart.querySelector(".plot"), brush = chart.querySelector(".brush");
    let pressed = null;
    chart.querySelectorAll(".script-only").forEach(part => { part.hidden = false; });
    plot.tabIndex = 0;
    plot.setAttribute("role", "application");
    chart.querySelectorAll("[data-do]").forEach(button => button.addEventListener("click", () => actions[button.dataset.do](chart)));
    plot.addEventListener("keydown", event => press(chart, event));
    plot.addEventListener("blur", silence);
    plot.addEventListener("dblclick", actions.reset);
    plot.addEventListener("wheel", event => {
      const svg = svgOf(chart), sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY);
      const zoomed = view[1] - view[0] < data.seconds;
      if (sideways && zoomed) pan(event.deltaX / 600);
      else if (!sideways && (event.ctrlKey || document.activeElement === plot) && (zoomed || event.deltaY < 0))
        zoom(Math.exp(event.deltaY / 400), toTime(svg, event.clientX));
      else return;
      event.preventDefault();
    }, { passive: false });
    plot.addEventListener("pointerdown", event => {
      if (event.button) return;
      pressed = event.clientX;
      plot.setPointerCapture(event.pointerId);
    });
    plot.addEventListener("pointermove", event => {
      const svg = svgOf(chart), box = svg.getBoundingClientRect();
      const y = (event.clientY - box.top) / box.height * svg.viewBox.baseVal.height;
      point(toTime(svg, event.clientX), Math.floor((y - svg.dataset.top) / (svg.dataset.row ?? Infinity)));
      tell(chart, event.clientY, false);
      brush.hidden = pressed === null || Math.abs(event.clientX - pressed) < 8;
      const [from, to] = [pressed, event.clientX].sort((a, b) => a - b);
      Object.assign(brush.style, { left: `${from - box.left}px`, width: `${to - from}px` });
    });
    plot.addEventListener("pointerup", event => {
      const svg = svgOf(chart), [from, to] = [pressed, event.clientX].sort((a, b) => a - b);
      if (!brush.hidden && pressed !== null) look(toTime(svg, from), toTime(svg, to));
      pressed = null;
      brush.hidden = true;
    });
    plot.addEventListener("pointercancel", () => { pressed = null; brush.hidden = true; silence(); });
    plot.addEventListener("pointerleave", () => { if (document.activeElement !== plot) silence(); });
  }

  charts.forEach(listen);
  document.querySelectorAll("a[data-from]").forEach(link => link.addEventListener("click", () => {
    const from = +link.dataset.from, until = +(link.dataset.until ?? from);
    look(from - 10, until + 10);
    point(from, 0);
  }));
  addEventListener("resize", redraw);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(one => { one.open = true; }));
  draw();
})();
