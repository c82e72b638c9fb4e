const page = JSON.parse(document.getElementById("data").textContent);
document.querySelectorAll(".script-only").forEach(part => { part.hidden = false; });

// The charts: the latency curve, the panels over time and the heat map. Panels and heat map share zoom and cursor.
const { seconds, step, target, curve, late, heat, episodes, unchanged } = page;
const time = document.getElementById("time"), row = id => document.getElementById(id);
const COLOURS = { arrivals: "a", done: "b", requested: "a", ready: "b", packing: "c", lag: "a", max: "c", p99: "a" };
const FILLED = new Set(["arrivals", "requested", "lag"]), SMOOTH = new Set(["max", "p99"]);
const LANES = { up: 0, down: 0, reassign: 0, other: 0, handover: 1, failure: 2 };
const MARKS = { up: "b", down: "a", reassign: "c", other: "muted", handover: "muted", failure: "bad" };
const DAY_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400];
const COMPARED = { Replicas: ["requested_replicas", 1], "Latency, ms": ["max_s", 1000] }; // panel → field of another run, factor
const inTime = []; // the charts that share the time axis
const overlaid = []; // the charts that can show another run: [chart, its own columns, field, factor]
let view = [0, Math.max(1, seconds)], cursor = null, band = null, other = null;

const times = [...Array(Math.ceil(seconds / step)).keys()].map(k => k * step).concat(seconds);
// Changes by time: plans, failures and handovers. All handovers at the same time become one change.
const moves = {};
heat?.held.forEach((since, line) => since.slice(1).forEach(([at, owner], k) => {
  const way = `${heat.owners[since[k][1]]} → ${heat.owners[owner]}`;
  ((moves[at] ??= {})[way] ??= []).push(heat.partitions[line]);
}));
const handovers = Object.entries(moves).map(([at, ways]) => [+at, "handover",
  `handover ${Object.entries(ways).map(([way, moved]) => `${way}: partition ${moved.join(", ")}`).join("; ")}`]);
const events = [...page.happened, ...handovers].sort((a, b) => a[0] - b[0]);
const closed = values => [...values, values.at(-1) ?? null]; // the line must reach the end of the last second

function setView(from, to) {
  const length = Math.min(seconds, Math.max(5, to - from));
  const start = Math.min(seconds - length, Math.max(0, (from + to - length) / 2));
  view = [start, start + length];
  inTime.forEach(chart => chart.batch(() => chart.setScale("x", { min: view[0], max: view[1] })));
  const whole = length >= seconds;
  time.querySelector("[data-do=reset]").disabled = whole;
  const shown = whole ? "the whole run" : `${clock(view[0])} – ${clock(Math.ceil(view[1]))}`;
  time.querySelector("[data-span]").textContent = shown;
}

// Create a chart over time. All these charts share zoom and cursor.
function overTime(box, height, options, values) {
  const chart = plot(box, {
    height, ...options,
    scales: { x: { time: false, range: () => view }, ...options.scales },
    axes: [axis({
      space: 80, size: options.clock ? 26 : 8, incrs: DAY_S,
      values: (u, splits) => splits.map(at => options.clock ? clock(at) : ""),
    }), axis({ size: 54, space: 26, values: (u, splits) => splits.map(format), ...options.y })],
    cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "time" }, ...options.cursor },
    hooks: {
      setSelect: [u => {
        const { left, width } = u.select;
        if (width > 6) setView(u.posToVal(left, "x"), u.posToVal(left + width, "x"));
        u.setSelect({ width: 0, height: 0 }, false);
      }],
      setCursor: [u => { if (u.cursor.event && u.cursor.left >= 0) point(u.posToVal(u.cursor.left, "x")); }],
      drawClear: [u => {
        if (!band) return;
        const [from, to] = band.map(at => u.valToPos(Math.min(view[1], Math.max(view[0], at)), "x", true));
        u.ctx.fillStyle = pale("ink");
        u.ctx.fillRect(from - 1, u.bbox.top, Math.max(2, to - from) + 2, u.bbox.height);
      }],
      draw: options.draw ?? [],
    },
  }, values);
  chart.over.addEventListener("click", () => { if (cursor !== null) explain(box.closest("figure"), chart); });
  chart.over.addEventListener("dblclick", () => setView(0, seconds));
  inTime.push(chart);
  return chart;
}

function panel(title, place) {
  const names = page.panels[title], log = title.startsWith("Latency"), keys = Object.keys(names);
  const lines = keys.map(name => ({
    stroke: () => name === "requested" ? `${css("a")}99` : css(COLOURS[name]),
    fill: FILLED.has(name) ? () => pale(COLOURS[name]) : undefined,
    width: { requested: 4, packing: 1 }[name] ?? 1.5,
    dash: name === "packing" ? [4, 3] : undefined,
    points: { show: false },
    paths: SMOOTH.has(name) ? uPlot.paths.linear() : uPlot.paths.stepped({ align: 1 }),
  }));
  const y = log
    ? { distr: 3, range: (u, low, high) => logRange(u, Math.min(low ?? target, target), Math.max(high ?? target, target)) }
    : { range: (u, low, high) => [0, Math.max(1, high * 1.06)] };
  const last = place === Object.keys(page.panels).length - 1, own = [times, ...keys.map(name => closed(names[name]))];
  const another = { stroke: () => css("ink"), width: 1.5, dash: [2, 3], points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }) };
  const chart = overTime(row(`panel-${place}`), (log ? 132 : 92) + 18 * last, {
    clock: last, series: [{}, ...lines, another], scales: { y }, y: log ? decimal : {},
    draw: log ? [u => across(u, target)] : [],
  }, [...own, times.map(() => null)]);
  if (COMPARED[title]) overlaid.push([chart, own, ...COMPARED[title]]);
}

// Draw the replicas and the worst latencies of another run, whose result.json the reader chose, as dotted lines.
async function overlay(file) {
  const note = time.querySelector("[data-other]");
  try {
    if (file.size > 1e8) throw file;
    const found = JSON.parse(await file.text()), percent = Math.floor(found.in_sla * 1e5 + 1e-6) / 1e3; // rounded down, as on this page
    const columns = overlaid.map(([, , field, factor]) => times.map(at => found.series[field].slice(at, at + step)
      .reduce((most, value) => value === null ? most : Math.max(most ?? 0, value * factor), null)));
    found.decisions.forEach(plan => plan.at_s.toFixed());
    other = found;
    overlaid.forEach(([chart, own], k) => chart.setData([...own, columns[k]]));
    note.textContent = `dotted: ${found.policy} (${found.run}), ${percent} % in time, ${found.replica_minutes?.toFixed(2) ?? "–"} replica-minutes`;
  } catch {
    note.textContent = `${file.name} is not the result.json of a run`;
  }
}

function lateBars() {
  const causes = Object.values(late);
  const total = closed(causes[0][1].map((_, k) => causes.reduce((sum, [, counts]) => sum + counts[k], 0)));
  overTime(row("panel-late"), 92, {
    series: [{}, nothing],
    scales: { y: { range: (u, low, high) => [0, Math.max(1, high * 1.06)] } },
    draw: [u => {
      const wide = Math.max(2, u.valToPos(step, "x", true) - u.valToPos(0, "x", true)), least = 3 * devicePixelRatio;
      for (let k = 0; k < total.length - 1; k++) {
        if (!total[k] || times[k] + step < view[0] || times[k] > view[1]) continue;
        let floor = u.valToPos(0, "y", true);
        for (const [cause, counts] of causes) {
          if (!counts[k]) continue;
          const tall = Math.max(least, u.valToPos(0, "y", true) - u.valToPos(counts[k], "y", true));
          u.ctx.fillStyle = css(cause);
          u.ctx.fillRect(u.valToPos(times[k], "x", true), floor - tall, wide, tall);
          floor -= tall;
        }
      }
    }],
  }, [times, total]);
}

function happened() {
  const box = (x, y) => [[-x, -y], [x, -y], [x, y], [-x, y]];
  const shapes = { up: [[0, -5], [5, 4], [-5, 4]], down: [[0, 5], [5, -4], [-5, -4]],
    reassign: [[0, -5], [5, 0], [0, 5], [-5, 0]], other: box(4, 4), handover: box(1, 6), failure: box(5, 5) };
  overTime(row("panel-happened"), 70, {
    series: [{}, nothing], scales: { y: { dir: -1, range: () => [-.6, 2.6] } },
    y: { splits: () => [0, 1, 2], values: () => ["plans", "moves", "faults"] },
    draw: [u => events.forEach(([at, kind]) => {
      if (at < view[0] || at > view[1]) return;
      const x = u.valToPos(at, "x", true), y = u.valToPos(LANES[kind], "y", true);
      u.ctx.fillStyle = css(MARKS[kind]);
      u.ctx.beginPath();
      shapes[kind].forEach(([dx, dy]) => u.ctx.lineTo(x + dx * devicePixelRatio, y + dy * devicePixelRatio));
      u.ctx.fill();
    })],
  }, [times, times.map(() => null)]);
}

// One lane for each replica. Its partitions are bars on top of each other, in the colour of their worst latency.
function owners() {
  const { bounds, cell, worst, held } = heat, cells = [...worst[0].keys()];
  const ownersAt = cells.map(k => held.map(since => since.findLast(([from]) => from <= k * cell)?.[1]));
  const most = Math.max(...ownersAt.map(owned => Math.max(...heat.owners.map((_, lane) => owned.filter(one => one === lane).length))));
  const names = heat.owners, tall = Math.max(14, Math.min(44, 300 / names.length));
  overTime(row("panel-owners"), Math.round(8 + tall * names.length), {
    series: [{}, nothing], scales: { y: { dir: -1, range: () => [0, names.length] } },
    y: { grid: { show: false }, splits: () => [...names.keys()].map(k => k + .5), space: 12,
      values: (u, splits) => splits.map(k => names[Math.floor(k)].split("-").pop().slice(-6)) },
    draw: [u => {
      const at = k => u.valToPos(Math.min(view[1], Math.max(view[0], k * cell)), "x", true), lane = u.bbox.height / names.length;
      const colours = [0, 1, 2, 3, 4, 5].map(k => css(`heat-${k}`)), high = (lane - 4) / most;
      cells.filter(k => (k + 1) * cell > view[0] && k * cell < view[1]).forEach(k => {
        const filled = names.map(() => 0), left = at(k), wide = Math.ceil(at(k + 1) - left);
        ownersAt[k].forEach((owner, line) => {
          if (owner === undefined) return;
          u.ctx.fillStyle = colours[bounds.filter(bound => worst[line][k] > bound).length];
          u.ctx.fillRect(left, u.bbox.top + (owner + 1) * lane - 2 - ++filled[owner] * high, wide, Math.max(1, high - 1));
        });
      });
    }],
  }, [times, times.map(() => null)]);
}

function heatMap() {
  const { partitions, worst, bounds, cell } = heat, tall = Math.min(24, 600 / partitions.length);
  overTime(row("panel-heat"), Math.round(32 + tall * partitions.length), {
    clock: true, series: [{}, nothing], scales: { y: { dir: -1, range: () => [0, partitions.length] } },
    y: { grid: { show: false }, splits: () => [...partitions.keys()].map(k => k + .5), space: 14,
      values: (u, splits) => splits.map(k => partitions[Math.floor(k)]) },
    draw: [u => {
      const at = x => u.valToPos(x, "x", true), high = u.bbox.height / partitions.length;
      const colours = [0, 1, 2, 3, 4, 5].map(k => css(`heat-${k}`));
      const first = Math.floor(view[0] / cell), last = Math.min(worst[0].length, Math.ceil(view[1] / cell));
      u.ctx.save();
      u.ctx.beginPath();
      u.ctx.rect(u.bbox.left, u.bbox.top, u.bbox.width, u.bbox.height);
      u.ctx.clip();
      const least = 2 * devicePixelRatio, hot = []; // late cells are drawn last and have a minimum width, so that they are visible
      worst.forEach((values, line) => {
        for (let k = first; k < last; k++) {
          if (values[k] === null) continue;
          const level = bounds.filter(bound => values[k] > bound).length;
          const cellAt = [at(k * cell), u.bbox.top + line * high];
          if (level > 2) { hot.push([level, ...cellAt]); continue; }
          u.ctx.fillStyle = colours[level];
          u.ctx.fillRect(...cellAt, Math.ceil(at((k + 1) * cell) - cellAt[0]), Math.ceil(high) - 1);
        }
      });
      for (const [level, x, y] of hot.sort((a, b) => a[0] - b[0])) {
        u.ctx.fillStyle = colours[level];
        u.ctx.fillRect(x, y, Math.max(least, at(cell) - at(0)), Math.ceil(high) - 1);
      }
      u.ctx.restore();
    }],
  }, [times, times.map(() => null)]);
}

// The latency distribution. Its vertical axis counts nines: −log10(1 − share).
function latencyCurve() {
  const { latency, share, nines } = curve, leastShare = 10 ** -nines;
  const toNines = value => -Math.log10(Math.max(leastShare, 1 - value)), slo = toNines(page.percentile);
  const levels = [0, .5, .9, .99, .999, .9999, .99999, .999999, .9999999];
  plot(row("curve"), {
    height: 320, cursor: { show: false }, scales: {
      x: { time: false, distr: 3, range: (u, low, high) => logRange(u, Math.min(low, target), Math.max(high, target)) },
      y: { range: () => [0, nines * 1.03] },
    },
    axes: [axis({
      ...decimal, size: 28, values: (u, splits) => splits.map(formatMs), splits: (u, at, low, high) => decades(low, high, u.width / 75),
    }), axis({
      size: 76, splits: () => levels.map(level => -Math.log10(1 - level)).filter(at => at <= nines),
      values: (u, splits) => splits.map((at, k) => k === 1 ? "50 %" : `${+((1 - 10 ** -at) * 100).toFixed(6)} %`),
    })],
    series: [{}, {
      stroke: () => css("a"), width: 2, points: { show: false }, paths: uPlot.paths.stepped({ align: 1 }),
    }],
    hooks: { draw: [u => {
      across(u, slo);
      down(u, target);
      u.ctx.fillStyle = css("bad");
      u.ctx.beginPath();
      u.ctx.arc(u.valToPos(target, "x", true), u.valToPos(slo, "y", true), 5 * devicePixelRatio, 0, 7);
      u.ctx.fill();
    }] },
  }, [latency, share.map(toNines)]);
}

// Move the cursor to a time and show the values at that time.
function point(at) {
  cursor = Math.min(seconds, Math.max(0, at));
  const k = Math.min(times.length - 2, Math.floor(cursor / step));
  time.querySelector("[data-at]").textContent = clock(cursor);
  document.querySelectorAll("[data-value]").forEach(box => {
    const [title, name] = box.dataset.value.split("|");
    box.textContent = format((title === "late" ? late[name][1] : page.panels[title][name])[k]);
  });
  const map = inTime.find(chart => chart.root.parentElement.id === "panel-heat");
  if (!map) return;
  const line = lineOf(map), cell = Math.min(heat.worst[line].length - 1, Math.floor(cursor / heat.cell));
  const owner = heat.held[line].filter(([since]) => since <= cursor).at(-1);
  const worst = heat.worst[line][cell], whose = owner ? heat.owners[owner[1]] : "owner unknown";
  row("heat-here").textContent = `${clock(cursor)} · partition ${heat.partitions[line]} · ${whose} · `
    + (worst === null ? "no event" : `worst ${formatMs(worst)}`);
}
const lineOf = map => {
  const line = Math.floor(map.posToVal(Math.max(0, map.cursor.top), "y"));
  return Math.min(heat.partitions.length - 1, Math.max(0, line));
};

function move(at) {
  if (at < view[0] || at > view[1]) setView(at - (view[1] - view[0]) / 2, at + (view[1] - view[0]) / 2);
  inTime.forEach(chart => chart.setCursor({ left: chart.valToPos(at, "x"), top: chart.cursor.top > 0 ? chart.cursor.top : 1 }));
  point(at);
}

// List the changes and late-event episodes at the cursor below a figure, with links to their table rows.
function explain(figure, chart, only) {
  const here = figure.querySelector("[data-here]"), begin = Math.floor(cursor / step) * step;
  const near = Math.max(step, 6 * (view[1] - view[0]) / chart.over.clientWidth);
  const onMap = only === undefined && chart.root.parentElement.id === "panel-heat";
  const partition = onMap ? heat.partitions[lineOf(chart)] : null;
  const isHere = ([from, until, where]) => from < begin + step && until >= begin && (partition === null || where.includes(partition));
  const found = only !== undefined ? [only] : [...episodes.keys()].filter(k => isHere(episodes[k]));
  found.sort((a, b) => episodes[b][3] - episodes[a][3]);
  const happened = events.filter(([at]) => Math.abs(at - cursor) <= near).slice(0, 6);
  const items = [...happened.map(changeItem), ...found.slice(0, 8).map(episodeItem), ...stateItems(cursor)];
  if (found.length > 8) items.push(item("", `${found.length - 8} more: click a row of the heat map, or zoom in.`));
  here.replaceChildren(...items);
  here.hidden = !items.length;
  const [from, until] = only === undefined ? [begin, begin] : episodes[only];
  band = [from, Math.max(until, from + step)];
  inTime.forEach(chart => chart.redraw(false));
}
// Who owned what at a time, why the last decision changed nothing, and what the other run had decided.
function stateItems(at) {
  const before = list => list.findLast(each => (each.at_s ?? each[0]) <= at), items = [];
  const plan = before(page.happened.filter(([, kind]) => kind !== "failure")), same = before(unchanged);
  if (same && !(plan?.[0] > same[0])) items.push(item(clock(same[0]), same[1], "", "no change"));
  if (heat) {
    const cell = Math.min(heat.worst[0].length - 1, Math.floor(at / heat.cell)), owned = {};
    heat.held.forEach((since, line) => (owned[before(since)?.[1]] ??= []).push(line));
    heat.owners.filter((name, owner) => owned[owner]).forEach(name => {
      const lines = owned[heat.owners.indexOf(name)], worst = Math.max(...lines.map(line => heat.worst[line][cell] ?? 0));
      const numbers = lines.map(line => heat.partitions[line]).join(", ");
      const entry = item(name, ` partition${lines.length > 1 ? "s" : ""} ${numbers}${worst ? `, worst ${formatMs(worst)}` : ""}`);
      const bar = Object.assign(document.createElement("span"), { className: "bar-box" });
      const fill = bar.appendChild(Object.assign(document.createElement("span"), { className: "bar-fill" }));
      fill.style.width = `${100 * lines.length / heat.partitions.length}%`;
      entry.firstChild.after(" ", bar);
      items.push(entry);
    });
  }
  const theirs = other && before(other.decisions);
  if (theirs) items.push(item(clock(Math.max(0, theirs.at_s)), theirs.reason, "", `${other.policy} (other run): ${theirs.replicas} replicas`));
  return items;
}
function changeItem([at, kind, detail]) {
  if (typeof detail !== "number") return item(clock(at), detail || kind);
  const plan = row(`plan-${detail}`);
  return item(clock(at), plan.querySelector(".reason > span").textContent, `#plan-${detail}`, `${kind}: plan ${plan.dataset.plan}`);
}
function episodeItem(k) {
  const episode = row(`episode-${k}`), text = name => episode.querySelector(name).textContent.trim();
  return item(text(".when"), text(".words"), `#episode-${k}`, `${text(".cause")}, ${episodes[k][3].toLocaleString("en")} late`);
}
function item(when, words, way, name) {
  const entry = document.createElement("li");
  entry.append(Object.assign(document.createElement("strong"), { textContent: when }), " ");
  if (name) entry.append(Object.assign(document.createElement(way ? "a" : "em"), way ? { href: way, textContent: name } : { textContent: name }), ": ");
  entry.append(words);
  return entry;
}
function clear() {
  band = cursor = null;
  document.querySelectorAll("[data-here]").forEach(here => { here.hidden = true; });
  inTime.forEach(chart => chart.redraw(false));
}

// Go to the next or previous change or episode.
function visit(list, direction, show) {
  const at = cursor ?? (direction > 0 ? -1 : Infinity), inRun = [...list.keys()].filter(k => list[k][0] >= 0);
  const next = direction > 0 ? inRun.find(k => list[k][0] > at) : inRun.findLast(k => list[k][0] < at);
  if (next === undefined) return;
  move(list[next][0]);
  explain(time, inTime[0], show ? next : undefined);
}
const middle = () => cursor ?? (view[0] + view[1]) / 2, wide = () => view[1] - view[0];
const zoom = factor => setView(middle() - (middle() - view[0]) * factor, middle() + (view[1] - middle()) * factor);
const actions = {
  in: () => zoom(.5), out: () => zoom(2), reset: () => setView(0, seconds),
  left: () => setView(...view.map(at => at - wide() / 2)), right: () => setView(...view.map(at => at + wide() / 2)),
  before: () => visit(events, -1), next: () => visit(events, 1),
  sooner: () => visit(episodes, -1, true), later: () => visit(episodes, 1, true),
  back: () => move(middle() - Math.max(step, wide() / 120)), on: () => move(middle() + Math.max(step, wide() / 120)),
  list: () => { if (cursor !== null) explain(time, inTime[0]); }, clear,
};
const KEYS = {
  "+": "in", "-": "out", 0: "reset", PageUp: "left", PageDown: "right", p: "before", n: "next", L: "sooner", l: "later",
  ArrowLeft: "back", ArrowRight: "on", Enter: "list", Escape: "clear",
};

if (seconds >= 2) {
  Object.keys(page.panels).forEach((title, place) => {
    panel(title, place);
    if (title === "Replicas" && row("panel-happened")) happened();
    if (title === "Replicas" && row("panel-owners")) owners();
  });
  if (Object.keys(late).length) lateBars();
  if (heat) heatMap();
  setView(0, seconds);
  time.querySelectorAll("[data-do]").forEach(button => button.addEventListener("click", () => actions[button.dataset.do]()));
  const file = time.querySelector("input[type=file]");
  file.addEventListener("change", () => { if (file.files.length) overlay(file.files[0]); });
  addEventListener("dragover", event => event.preventDefault());
  addEventListener("drop", event => {
    event.preventDefault();
    if (event.dataTransfer.files.length) overlay(event.dataTransfer.files[0]);
  });
  time.querySelector(".panels").addEventListener("keydown", event => {
    if (!KEYS[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    actions[KEYS[event.key]]();
    event.preventDefault();
  });
  document.querySelectorAll("a[data-at]").forEach(link => link.addEventListener("click", () => {
    const at = +link.dataset.at, episode = link.dataset.episode;
    setView(at - 10, (episode ? episodes[episode][1] : at) + 10);
    move(at);
    explain(time, inTime[0], episode ? +episode : undefined);
  }));
}
if (curve.share.length) latencyCurve();
