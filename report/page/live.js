const config = JSON.parse(document.getElementById("config").textContent);
const $ = id => document.getElementById(id);
const KEPT_FRAMES = 7200, WINDOW_S = 60, AGAIN_MS = 3000, WORK_MS = 4;
// Texts come from records. They are set as text, never as HTML.
const make = (tag, name, text) => {
  const element = document.createElement(tag);
  if (name) element.className = name;
  if (text !== undefined) element.textContent = text;
  return element;
};
const setText = (element, text) => { if (element.textContent !== text) element.textContent = text; };
const formats = [0, 1].map(digits => new Intl.NumberFormat("en", { maximumFractionDigits: digits })); // each takes 50 µs to make
const number = (value, digits = 0) => formats[digits].format(value);
const percent = share => `${(Math.floor(share * 1e5) / 1e3).toLocaleString("en")} %`; // never rounded up to 100 %
const natural = new Intl.Collator("en", { numeric: true }).compare;

const timeOf = at => (at < -.01 ? "−" : "") + clock(Math.round(Math.abs(at) * 100) / 100);

// A JSON merge patch (RFC 7386), applied in place.
function merge(into, patch) {
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) delete into[key];
    else if (typeof value === "object" && !Array.isArray(value)) into[key] = merge(typeof into[key] === "object" && !Array.isArray(into[key]) ? into[key] : {}, value);
    else into[key] = value;
  }
  return into;
}

// A run: its patches by time, and the state at a cursor.
class Run {
  constructor() { Object.assign(this, { frames: [], base: {}, state: {}, at: -1, costs: [], lanes: new Lanes() }); }
  get origin() { return (this.start_us ?? (this.state.first_us || this.state.now_us || 0)) / 1e6; }
  get first() { return this.frames.length ? this.frames[0].us / 1e6 - this.origin : 0; }
  get last() { return this.frames.length ? this.frames.at(-1).us / 1e6 - this.origin : 0; }
  restart(state) {
    Object.assign(this, { frames: [], base: {}, state: {}, at: -1, costs: [], start_us: undefined });
    this.push(state);
    this.seek(Infinity); // a panel may be drawn before the next seek
  }
  push(patch) {
    this.start_us = patch.start_us ?? this.start_us;
    this.frames.push({ us: patch.now_us ?? this.frames.at(-1).us, patch });
    if (patch.cost_s !== undefined) this.costs.push([this.frames.at(-1).us / 1e6, patch.cost_s / 60]);
    if (this.costs.length > KEPT_FRAMES) this.costs.shift();
    if (this.frames.length > KEPT_FRAMES) {
      for (const frame of this.frames.splice(0, KEPT_FRAMES / 10)) merge(this.base, structuredClone(frame.patch));
      Object.assign(this, { state: structuredClone(this.base), at: -1 });
    }
  }
  seek(second) {
    const us = (second + this.origin) * 1e6 + 1000;
    let to = this.frames.findLastIndex(frame => frame.us <= us);
    to = Math.max(to, this.frames.length ? 0 : -1);
    if (to < this.at) Object.assign(this, { state: structuredClone(this.base), at: -1 });
    while (this.at < to) merge(this.state, structuredClone(this.frames[++this.at].patch));
  }
}

// Panels C to E: lines over the last minute.
const LINES = { // words, colour, whether the legend lists it
  latency: [["p50", "a", true], ["p99", "c", true], ["max; vertical lines are plans", "b", true], ["", "muted"]],
  arrivals: [["arrivals", "a", true], ["forecast with its 10–90 % band", "b", true], ["", "b"], ["", "b"]],
  replicas: [["needed (arrivals / μ)", "muted", true], ["requested", "a", true], ["ready", "good", true]],
};
function chart(name, options) {
  const series = LINES[name].map(([, colour], place) => ({
    stroke: () => css(colour), points: { show: false }, spanGaps: true, dash: colour === "muted" ? [4, 4] : undefined,
    width: name === "arrivals" && place > 1 ? 0 : 1.8,
    paths: name === "replicas" ? uPlot.paths.stepped({ align: 1 }) : undefined,
    fill: name === "replicas" && place === 1 || name === "arrivals" && !place ? () => css("band") : undefined,
  }));
  for (const [words, colour, isListed] of LINES[name]) if (isListed) {
    const key = make("i");
    key.style.setProperty("--line", `var(--${colour})`);
    $(`legend-${name}`).append(key, words);
  }
  return plot($(`chart-${name}`), {
    height: 130, cursor: { drag: { x: false } }, series: [{}, ...series], ...options,
    scales: { x: { time: false, range: () => view }, ...options.scales },
    axes: [axis({ size: 24, space: 60, values: (u, splits) => splits.map(timeOf) }), axis({ size: 46, space: 24, ...options.y })],
  }, [[], ...series.map(() => [])]);
}
let view = [-WINDOW_S, 0];
function markPlans(u) {
  const { left, top, width, height } = u.bbox;
  if (hasLatencies()) across(u, 1000 * state().target_s);
  for (const [us, , moved] of Object.values(state().plans ?? {})) {
    const x = u.valToPos(us / 1e6 - runs[0].origin, "x", true);
    u.ctx.fillStyle = moved ? css("c") : css("muted");
    if (x >= left && x <= left + width) u.ctx.fillRect(x, moved ? top : top + height * .85, devicePixelRatio, height);
  }
}
const hasLatencies = () => Object.values(state().latency ?? {}).some(row => row[2] !== null);
const charted = {
  latency: chart("latency", {
    hooks: { draw: [markPlans] }, y: { ...decimal, values: (u, splits) => splits.map(format) },
    scales: { y: { distr: 3, range: (u, low, high) => logRange(u, Math.max(1, low ?? 10), Math.max(high ?? 0, 1000 * (state().target_s || 1))) } },
  }),
  arrivals: chart("arrivals", { bands: [{ series: [4, 3], fill: () => pale("b") }], scales: { y: { range: (u, low, high) => [0, Math.max(1, high * 1.1)] } } }),
  replicas: chart("replicas", { y: { incrs: [1, 2, 5, 10, 20, 50] }, scales: { y: { range: (u, low, high) => [0, Math.max(2, high * 1.15)] } } }),
};

// The state of the first run is what all panels but B show.
const runs = [new Run()], state = () => runs[0].state;
let mode = config.live ? "live" : "replay", playing = true, cursor = 0, selected = null, spoken = 0, isConnected = true;

function drawHead(now) {
  const { title = "tailpack", policy = "", phase = "", duration_s = 0, percentile = .999, done = 0, in_time = 0, target_s = .5 } = now;
  setText($("title"), title);
  document.title = `${title} · tailpack`;
  const elapsed = now.now_us / 1e6 - runs[0].origin, gone = isConnected ? "" : " · disconnected: the process ended or is unreachable";
  setText($("phase"), [policy, phase, `${timeOf(elapsed)}${duration_s ? ` / ${timeOf(duration_s)}` : ""}`].filter(Boolean).join(" · ") + gone);
  const share = done ? in_time / done : 1, budget = percentile < 1 ? 1 - (1 - share) / (1 - percentile) : 1;
  setText($("share"), done ? percent(share) : "–");
  $("share").className = share >= percentile ? "met" : "missed";
  setText($("budget"), `${number(done)} events, in ${number(1000 * target_s)} ms; SLO ${percent(percentile)}; budget ${budget >= 0 ? `left ${number(100 * budget)} %` : `exceeded ${number(1 - budget, 1)} ×`}`);
  $("left").style.transform = `scaleX(${Math.min(1, Math.max(0, budget)).toFixed(4)})`;
  const problems = [...now.problems ?? [], ...now.hold ? [`held: ${now.hold}`] : []];
  $("problems").hidden = !problems.length;
  if ($("problems").textContent !== problems.join("")) $("problems").replaceChildren(...problems.map(text => make("p", "", text)));
}

function drawStages(now) {
  const rate = Object.values(now.partitions ?? {}).reduce((sum, row) => sum + row[1], 0), known = now.stages ?? {};
  const boxes = [["Orders", `${number(rate)}/s`]];
  for (const [name, ms] of Object.entries(known)) if (name !== "wait") boxes.push([name[0].toUpperCase() + name.slice(1), `${number(ms, ms < 10 ? 1 : 0)} ms`, ms]);
  if (boxes.length === 1) boxes.push([now.title ?? "Group", `${now.ready ?? 0} × ${number(now.service_rate ?? 0)}/s`]);
  boxes.push(["Waiting", number(Object.values(now.partitions ?? {}).reduce((sum, row) => sum + row[2], 0))]);
  if (now.letters) boxes.push(["Dead letters", number(now.letters)]);
  const slowest = Math.max(...boxes.map(box => box[2] ?? 0));
  while ($("stages").children.length > boxes.length) $("stages").lastChild.remove();
  boxes.forEach(([name, figure, ms], place) => {
    const item = $("stages").children[place] ?? $("stages").appendChild(make("li"));
    if (!item.firstChild) item.appendChild(make("span", "stage")).append(make("span"), " ", make("b"));
    setText(item.firstChild.firstChild, name);
    setText(item.firstChild.lastChild, figure);
    item.firstChild.classList.toggle("busy", ms !== undefined && ms === slowest && ms > 100 * (now.target_s ?? 1));
  });
  const beat = `${(1 / Math.max(.2, Math.min(5, rate / 25))).toFixed(2)}s`;
  if ($("stages").style.getPropertyValue("--beat") !== beat) $("stages").style.setProperty("--beat", rate ? beat : "1000s");
}

function* drawCharts(now) {
  const end = now.now_us / 1e6 - runs[0].origin, other = runs[1]?.state.latency ?? {}, shift = runs[1] ? runs[1].origin : 0;
  const ticks = Object.entries(now.ticks ?? {}).map(([ms, row]) => [ms / 1e3 - runs[0].origin, row]).sort((a, b) => a[0] - b[0]);
  const ahead = ticks.length && ticks.at(-1)[1].length > 5 ? ticks.at(-1)[1][8] : 0;
  view = [end - WINDOW_S, end + Math.min(10, ahead)];
  const own = Object.fromEntries(Object.entries(now.latency ?? {}).map(([at, row]) => [Math.round(at - runs[0].origin), row]));
  const second = Object.fromEntries(Object.entries(other).map(([at, row]) => [Math.round(at - shift), row]));
  const at = [...new Set([...Object.keys(own), ...Object.keys(second)].map(Number))].filter(t => t <= end).sort((a, b) => a - b);
  const isKnown = hasLatencies(), zero = value => value === undefined || value === null ? null : Math.max(1, value);
  setText($("h-c"), isKnown ? "Latency, ms" : "Late events, % of each second");
  $("legend-latency").hidden = !isKnown;
  const late = row => row && row[3] ? Math.max(1, 100 * row[4] / row[3]) : null;
  const show = (name, data) => charted[name].batch(() => charted[name].setData(data)); // drawn at once, not after the frame's steps
  show("latency", [at, ...isKnown ? [0, 1, 2].map(k => at.map(t => zero(own[t]?.[k]))) : [at.map(() => null), at.map(() => null), at.map(t => late(own[t]))], at.map(t => zero(second[t]?.[2]))]);
  yield;
  const points = ticks.filter(([, row]) => row.length > 5).map(([t, row]) => [t + row[8] / 2, row]), merged = new Map();
  for (const [t, row] of ticks) merged.set(t, [row[0], null, null, null]);
  for (const [t, row] of points) merged.set(t + 1e-6, [null, row[5], row[6], row[7]]);
  if (ahead) merged.set(ticks.at(-1)[0] + ahead, [null, ...ticks.at(-1)[1].slice(5, 8)]);
  const order = [...merged].sort((a, b) => a[0] - b[0]);
  show("arrivals", [order.map(one => one[0]), ...[0, 1, 2, 3].map(k => order.map(one => one[1][k]))]);
  yield;
  show("replicas", [[...ticks.map(one => one[0]), end], ...[4, 2, 3].map(k => [...ticks.map(one => one[1][k]), ticks.at(-1)?.[1][k] ?? null])]);
}

const WORDS = { up: "scale out", down: "scale in", reassign: "move partitions", "no-change": "no change" };
function sentence({ action, times, replicas: [before, after], moves }) {
  if (action === "no-change") return `${WORDS[action]} ×${times}`;
  const listed = moves.slice(0, 6).map(([number, owner]) => `p${number} → ${owner}`).join(", ");
  return `${WORDS[action] ?? action}${before === after ? "" : ` ${before} → ${after}`}${listed && `; ${listed}`}${moves.length > 6 ? " and more" : ""}`;
}
function drawDecisions({ decisions = {} }) {
  const rows = Object.entries(decisions).sort((a, b) => b[0] - a[0]), list = $("decisions");
  const shown = new Map([...list.children].map(item => [item.dataset.number, item]));
  for (const [key, item] of shown) if (!(key in decisions)) item.remove();
  rows.forEach(([key, row], place) => {
    const item = shown.get(key) ?? make("li"), text = JSON.stringify(row);
    if (!item.firstChild) item.appendChild(make("details")).append(make("summary"));
    if (item.row !== text) fillDecision(item, row);
    item.row = text;
    if (item.dataset.number !== key) item.dataset.number = key;
    if (list.children[place] !== item) list.insertBefore(item, list.children[place] ?? null);
  });
  const newest = rows.find(([, row]) => row.action !== "no-change");
  if (newest && +newest[0] > spoken) {
    spoken = +newest[0];
    setText($("said"), `${timeOf(newest[1].at_us / 1e6 - runs[0].origin)}: ${sentence(newest[1])}`);
  }
}
function fillDecision(item, row) {
  item.className = row.action === "no-change" ? "same" : row.action;
  const effect = row.effect.length ? ` After 10 s: ${row.waiting} → ${row.effect[0]} events waiting, ${row.effect[1]} ready.` : "";
  const notes = row.compared.map((plan, place) => `${place ? "not chosen" : "chosen"}: ${plan.replicas} replicas, ${plan.moved} moved: ${percent(plan.in_sla)} in time at cost ${number(plan.cost_s, 1)} replica-seconds`);
  const [details] = item.children, [summary] = details.children;
  summary.replaceChildren(`${timeOf(row.at_us / 1e6 - runs[0].origin)} `, make("span", "verb", sentence(row)), `: ${row.why}.${effect}`);
  details.replaceChildren(summary, ...(notes.length ? notes : ["This policy follows a rule: it compares no plans."]).map(text => make("p", "note", text)));
}
function drawPartition(now) {
  const row = selected === null ? null : now.partitions?.[selected];
  if (!row) return setText($("partition"), "");
  const moves = Object.values(now.decisions ?? {}).flatMap(one => one.moves.filter(([number]) => String(number) === selected).map(([, owner]) => `${timeOf(one.at_us / 1e6 - runs[0].origin)} to ${owner} (plan ${one.epoch}, pause ${number(now.plans?.[one.epoch]?.[3] ?? 0)} ms)`));
  setText($("partition"), `partition ${selected}: ${row[0] || "no replica"}, ${number(row[1], 1)} events/s, ${row[2]} waiting; moved: ${moves.join(", ") || "not in the listed decisions"}`);
}

// The panels are drawn one after the other, in as many frames as this takes: meanwhile blocks slide.
function* drawPanels() {
  for (const run of runs) run.seek(mode === "live" ? run.last : cursor);
  if (mode === "live") cursor = runs[0].last;
  const now = state();
  if (!now.now_us) return;
  for (const { state, lanes } of runs) {
    const { done = 0, in_time = 0, policy = "", cost_s = 0 } = state;
    yield* lanes.draw(state, runs.length > 1 ? `${policy}: ${done ? percent(in_time / done) : "–"} in time, ${number(cost_s / 60, 1)} replica-minutes` : "");
  }
  drawHead(now);
  yield drawStages(now);
  yield* drawCharts(now);
  yield drawCosts(runs[0]);
  yield drawDecisions(now);
  drawPartition(now);
  globalThis.drawControls?.(now);
  Object.assign($("scrub"), { min: runs[0].first, max: Math.max(runs[0].first, runs[0].last), value: cursor, ariaValueText: timeOf(cursor) });
  setText($("clock"), timeOf(cursor));
  $("follow").hidden = !config.live || mode === "live";
  setText($("play"), playing ? "▮▮" : "▶▏");
  $("play").setAttribute("aria-label", playing ? "Pause" : "Play");
}
let steps, step, frame = 0, isDue = false;
const draw = () => { isDue = true; frame ||= requestAnimationFrame(drawFrame); };
function drawFrame() {
  const end = performance.now() + WORK_MS;
  frame = 0;
  if (!steps) [steps, isDue] = [drawPanels(), false];
  do step = steps.next(); while (!step.done && !step.value && performance.now() < end);
  if (step.done) steps = undefined;
  if (steps || isDue) frame = requestAnimationFrame(drawFrame);
}

// Time: follow the live run, or replay.
const goTo = at => { mode = "replay"; cursor = Math.min(runs[0].last, Math.max(runs[0].first, at)); playing &&= config.live || cursor < runs[0].last; draw(); };
const toggle = () => { playing = !playing; mode = mode === "live" && !playing ? "replay" : mode; if (playing && !config.live && cursor >= runs[0].last) cursor = runs[0].first; draw(); };
let lastBeat = performance.now();
setInterval(() => {
  const beat = performance.now(), passed = (beat - lastBeat) / 1000 * $("speed").value;
  lastBeat = beat;
  if (mode === "replay" && playing && runs[0].frames.length && cursor < runs[0].last) goTo(cursor + passed);
  else if (mode === "replay" && playing && config.live && cursor >= runs[0].last - 1) { mode = "live"; draw(); }
}, 100);
$("scrub").addEventListener("input", () => goTo(+$("scrub").value));
$("play").addEventListener("click", toggle);
for (const [id, step] of [["back", -10], ["forth", 10]]) $(id).addEventListener("click", () => goTo(cursor + step));
$("follow").addEventListener("click", () => { mode = "live"; playing = true; draw(); });
addEventListener("keydown", event => {
  if (event.target.closest("input, select") || event.key === " " && event.target.closest("button, summary") || event.ctrlKey || event.metaKey || event.altKey) return;
  const block = event.target.closest(".block"), step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
  if (event.key === " ") toggle();
  else if (step && block) {
    const all = [...block.closest(".lanes").querySelectorAll(".block")], next = all[(all.indexOf(block) + step + all.length) % all.length];
    block.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  } else if (step) goTo(cursor + step);
  else return;
  event.preventDefault();
});
$("runs").addEventListener("click", event => {
  const key = event.target.closest(".block")?.dataset.partition;
  if (key === undefined) return;
  selected = selected === key ? null : key;
  document.querySelectorAll(".block").forEach(block => block.setAttribute("aria-pressed", String(block.dataset.partition === selected)));
  draw();
});

// Sources: a live process streams patches; a finished run is loaded whole.
async function load(run, { file }) {
  const { frames, others } = await (await fetch(file)).json();
  run.others = others ?? [];
  run.restart(frames[0][1]);
  frames.slice(1).forEach(([, patch]) => run.push(patch));
  run.seek(run.first);
}
function listen() {
  const source = new EventSource("live/events");
  let again;
  const take = ({ type, data }) => {
    clearTimeout(again);
    isConnected = true;
    runs[0][type === "state" ? "restart" : "push"](JSON.parse(data));
    draw();
  };
  for (const kind of ["state", "patch"]) source.addEventListener(kind, take);
  source.addEventListener("error", () => {
    isConnected = false;
    draw();
    clearTimeout(again); // Chromium may connect again and then deliver nothing
    again = setTimeout(() => { source.close(); listen(); }, AGAIN_MS);
  });
}
$("compare").addEventListener("change", async () => {
  runs.splice(1).forEach(run => run.lanes.box.remove());
  document.body.classList.toggle("compared", $("compare").value !== "");
  if ($("compare").value !== "") {
    const run = new Run();
    await load(run, config.runs[$("compare").value]);
    runs.splice(1, 1, run);
    $("runs").append(run.lanes.box);
  }
  draw();
});
$("runs").append(runs[0].lanes.box);
config.runs.forEach(({ name }, place) => {
  if (config.live || place) $("compare").append(new Option(name, place));
});
$("others").hidden = $("compare").options.length < 2;
if (config.live) listen();
else load(runs[0], config.runs[0]).then(() => {
  cursor = runs[0].first;
  const { simulated: address, whatif } = config.runs[0];
  if (address) { offerTries(runs[0], address, whatif); loadOthers(runs[0], address); }
  if (config.runs.length > 1) { $("compare").value = "1"; $("compare").dispatchEvent(new Event("change")); }
  draw();
});
