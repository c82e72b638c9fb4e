// What stands at a moment, in words: at the cursor for a glance, and below the drawing for good.
const NEAR_PX = 6, TOUCHED_PX = 14, TOLD = 8, WIDE_PX = 500;
const explained = events.filter(([, , words]) => words);
let nearPx = NEAR_PX;

const isHeat = svg => svg.dataset.chart === "heat";
const stretch = ({ from, until }) => from === until ? clock(from) : `${clock(from)} – ${clock(until)}`;
const place = spell => [spell.label, spell.partition === null ? "" : `partition ${spell.partition}`, spell.replica ?? "",
  spell.epoch === null ? "" : `plan ${spell.epoch}`].filter(Boolean).join(", ");

// Spells of late events in the second at the cursor, the largest first; in the heat map those of the row.
function spellsHere(svg) {
  const begin = Math.floor(cursor.at / data.step) * data.step;
  return data.spells.filter(one => one.from < begin + data.step && one.until >= begin
    && (!isHeat(svg) || one.partition === data.heat.partitions[cursor.row])).sort((a, b) => b.events - a.events);
}
function happenedHere(svg) {
  const [left, right] = edges(svg), nearS = nearPx * (view[1] - view[0]) / (right - left);
  return cursor.event ? [cursor.event] : explained.filter(([at]) => Math.abs(at - cursor.at) <= nearS);
}

// The words at the cursor, as [label, text, "event" for what happened there].
function words(svg) {
  const k = Math.min(Math.floor(cursor.at / data.step), Math.ceil(data.seconds / data.step) - 1), found = [];
  const known = value => value === null ? "–" : value.toLocaleString("en");
  if (isHeat(svg)) {
    const { partitions, worst, cell, held, owners } = data.heat;
    const value = worst[cursor.row][Math.min(Math.floor(cursor.at / cell), worst[cursor.row].length - 1)];
    const owner = held[cursor.row].filter(([at]) => at <= cursor.at).at(-1);
    found.push(["partition", partitions[cursor.row]], ["owner", owner ? owners[owner[1]] : "–"]);
    found.push(["worst latency", value === null ? "no event" : `${known(value)} ms`]);
  } else {
    Object.values(data.series).forEach(({ label, unit, high }) => found.push([label, known(high[k]) + (high[k] === null ? "" : unit)]));
    data.late.filter(one => one.high[k]).forEach(one => found.push([`late: ${one.label.toLowerCase()}`, `${one.high[k]} /s`]));
  }
  const near = happenedHere(svg), late = cursor.spell ? [cursor.spell] : spellsHere(svg);
  near.slice(0, 4).forEach(([at, , text]) => found.push([clock(at), text, "event"]));
  if (near.length > 4) found.push(["…", `and ${near.length - 4} more: zoom in`, "event"]);
  late.slice(0, 1).forEach(one => found.push([`why late: ${place(one)}`, one.why, "event"]));
  if (late.length > 1) found.push(["…", `and ${late.length - 1} more for other late events: click, tap or Enter`, "event"]);
  return found;
}

const term = (name, textContent, className = "") => Object.assign(document.createElement(name), { textContent, className });

function tell(chart, clientY, aloud) {
  const svg = svgOf(chart), tip = chart.querySelector(".tip"), found = words(svg);
  const glance = svg.viewBox.baseVal.width < WIDE_PX ? found.filter(([, , kind]) => !kind) : found; // no room for more
  const box = svg.getBoundingClientRect(), scale = box.width / svg.viewBox.baseVal.width;
  const x = toX(svg, cursor.at) * scale, right = x > box.width / 2;
  const list = document.createElement("dl");
  glance.forEach(([label, text, kind]) => list.append(term("dt", label, kind), term("dd", text, kind)));
  tip.replaceChildren(term("strong", clock(cursor.at)), list);
  tip.hidden = false;
  tip.style.left = `${Math.max(0, right ? x - 14 - tip.offsetWidth : x + 14)}px`;
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

// Keep below the drawing what happened at the cursor, and each spell with the way to its row in the table.
function keep(chart) {
  const here = chart.querySelector("[data-here]"), svg = svgOf(chart), items = [];
  const late = cursor.spell ? [cursor.spell] : spellsHere(svg);
  happenedHere(svg).slice(0, TOLD).forEach(([at, , text]) => items.push(item(term("strong", clock(at)), text)));
  late.slice(0, TOLD).forEach(one => {
    const way = term("a", `${stretch(one)}: ${place(one)}`), many = `${one.events.toLocaleString("en")} late`;
    way.href = `#spell-${data.spells.indexOf(one)}`;
    items.push(item(term("i", "", `cause-${one.cause}`), way, ` (${many}). ${one.why}`));
  });
  if (late.length > TOLD) items.push(item(`${late.length - TOLD} more: click on a row of the map, or zoom in.`));
  here.replaceChildren(term("p", late.length ? "Late here, with the way to the row in the table:" : "What happened here:"), list(items));
  here.hidden = !items.length;
  const entry = at => Math.floor(at / data.step) * data.step; // as its bars are drawn
  band = cursor.spell ? [entry(cursor.spell.from), entry(cursor.spell.until) + data.step] : null;
  charts.map(svgOf).filter(Boolean).forEach(drawCursor);
}
const item = (...parts) => { const made = document.createElement("li"); made.append(...parts.flatMap(part => [part, " "])); return made; };
const list = items => { const made = document.createElement("ul"); made.append(...items); return made; };
function forget() {
  band = null;
  document.querySelectorAll("[data-here]").forEach(here => { here.hidden = true; });
  silence();
}
