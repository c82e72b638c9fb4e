// Mouse, touch and keyboard over the drawings, and the links that lead to a moment.
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

const rowOf = spell => Math.max(0, data.heat?.partitions.indexOf(spell?.partition) ?? 0);

// To the next or the one before of what is told: name is where the cursor holds it, when says its moment.
function visit(chart, direction, all, name, when) {
  const at = cursor?.at ?? (direction > 0 ? -1 : Infinity), here = all.indexOf(cursor?.[name]);
  const next = here >= 0 ? all[here + direction] : direction > 0
    ? all.find(one => when(one) > at) : all.findLast(one => when(one) < at);
  if (!next) return;
  move(chart, when(next), name === "spell" ? rowOf(next) : undefined);
  cursor[name] = next; // its own words, whatever else lies under the same pixel
  tell(chart, null, true);
  keep(chart);
}
const happening = (chart, direction) => visit(chart, direction, explained, "event", ([at]) => at);
const lateness = (chart, direction) => visit(chart, direction, data.spells, "spell", one => one.from);

const middle = () => cursor?.at ?? (view[0] + view[1]) / 2;
const actions = {
  in: () => zoom(.5, middle()), out: () => zoom(2, middle()), reset: () => look(0, data.seconds),
  left: () => pan(-.5), right: () => pan(.5), previous: chart => happening(chart, -1), next: chart => happening(chart, 1),
  late: chart => lateness(chart, 1), sooner: chart => lateness(chart, -1), enter: chart => { if (cursor) keep(chart); },
};
const keys = {
  "+": "in", "=": "in", "-": "out", 0: "reset", Home: "reset", PageUp: "left", PageDown: "right", p: "previous", n: "next",
  l: "late", L: "sooner", Enter: "enter",
};
function press(chart, event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const stride = Math.max(data.step, (view[1] - view[0]) / 120), row = cursor?.row ?? 0, heat = isHeat(svgOf(chart));
  if (keys[event.key]) actions[keys[event.key]](chart);
  else if (event.key === "ArrowLeft") move(chart, middle() - stride);
  else if (event.key === "ArrowRight") move(chart, middle() + stride);
  else if (heat && event.key === "ArrowUp") move(chart, middle(), row - 1);
  else if (heat && event.key === "ArrowDown") move(chart, middle(), row + 1);
  else if (event.key === "Escape") forget();
  else return;
  event.preventDefault();
}

function listen(chart) {
  const plot = chart.querySelector(".plot"), brush = chart.querySelector(".brush");
  const fingers = new Map(); // pointer → where it is, px
  let pressed = null, dragged = false, pinched = null; // pinched: the moments under two fingers
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

  const pointAt = event => {
    const svg = svgOf(chart), box = svg.getBoundingClientRect();
    const y = (event.clientY - box.top) / box.height * svg.viewBox.baseVal.height;
    nearPx = event.pointerType === "touch" ? TOUCHED_PX : NEAR_PX;
    point(toTime(svg, event.clientX), Math.floor((y - svg.dataset.top) / (svg.dataset.row ?? Infinity)));
    tell(chart, event.clientY, false);
  };
  const pinch = () => {
    const svg = svgOf(chart), box = svg.getBoundingClientRect(), [left, right] = edges(svg);
    const [a, b] = [...fingers.values()].sort((one, other) => one - other), scale = box.width / svg.viewBox.baseVal.width;
    const perPx = (pinched[1] - pinched[0]) / Math.max(20, b - a), from = pinched[0] - (a - box.left - left * scale) * perPx;
    look(from, from + (right - left) * scale * perPx);
  };
  const release = event => {
    fingers.delete(event.pointerId);
    if (fingers.size < 2) pinched = null;
    pressed = null;
    brush.hidden = true;
  };
  plot.addEventListener("pointerdown", event => {
    if (event.button) return;
    dragged = false;
    pressed = event.clientX;
    fingers.set(event.pointerId, event.clientX);
    plot.setPointerCapture(event.pointerId);
    if (fingers.size !== 2) return;
    pinched = [...fingers.values()].sort((one, other) => one - other).map(x => toTime(svgOf(chart), x));
    pressed = null;
    brush.hidden = dragged = true;
    silence();
  });
  plot.addEventListener("pointermove", event => {
    if (fingers.has(event.pointerId)) fingers.set(event.pointerId, event.clientX);
    if (pinched) return pinch();
    pointAt(event);
    brush.hidden = pressed === null || Math.abs(event.clientX - pressed) < 8;
    if (brush.hidden) return;
    const left = svgOf(chart).getBoundingClientRect().left, [from, to] = [pressed, event.clientX].sort((a, b) => a - b);
    dragged = true;
    Object.assign(brush.style, { left: `${from - left}px`, width: `${to - from}px` });
  });
  plot.addEventListener("pointerup", event => {
    const svg = svgOf(chart), [from, to] = [pressed, event.clientX].sort((a, b) => a - b);
    if (!brush.hidden && pressed !== null) look(toTime(svg, from), toTime(svg, to));
    release(event);
  });
  plot.addEventListener("pointercancel", event => { release(event); silence(); });
  plot.addEventListener("pointerleave", () => { if (document.activeElement !== plot) silence(); });
  plot.addEventListener("click", event => {
    if (dragged) return;
    pointAt(event);
    keep(chart);
  });
}

if (charts.length && data.seconds >= 2) {
  charts.forEach(listen);
  document.querySelectorAll(".script-only").forEach(part => { part.hidden = false; });
  document.querySelectorAll("a[data-from]").forEach(link => link.addEventListener("click", () => {
    const spell = data.spells[link.dataset.spell], from = +link.dataset.from, until = spell?.until ?? from;
    const near = explained.find(([at, kind]) => Math.abs(at - from) < .001 && kind !== "handover");
    look(from - 10, until + 10);
    point(from, rowOf(spell));
    Object.assign(cursor, spell ? { spell } : { event: near });
    charts.forEach(keep);
  }));
  addEventListener("resize", redraw);
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(one => { one.open = true; }));
  draw();
}
