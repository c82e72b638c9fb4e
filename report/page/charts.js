// What every page draws with: uPlot in the page's own colours, which follow the theme and the printer.
const page = JSON.parse(document.getElementById("data").textContent);
const css = name => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const pale = name => `${css(name)}2e`;
const plots = [];

const decades = (low, high, most) => {
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const factor of factors) found.push(+(factor * 10 ** power).toPrecision(3));
    const seen = found.filter(value => value >= low * .999 && value <= high * 1.001);
    if (seen.length <= most || factors.length === 1) return seen;
  }
};
const say = value => value === null || value === undefined ? "–" : (+value.toPrecision(6)).toLocaleString("en");
const sayMs = value => value < 1000 ? `${say(value)} ms` : `${say(value / 1000)} s`;

// An axis in the page's colours. more: what uPlot is told beyond that.
const axis = more => ({
  stroke: () => css("muted"), font: "12px system-ui, sans-serif", ticks: { show: false },
  grid: { stroke: () => css("grid"), width: 1 }, ...more,
});
const logAxis = more => axis({
  splits: (u, at, low, high) => decades(low, high, 8), filter: (u, splits) => splits, ...more,
});
const nothing = { paths: () => null, points: { show: false } }; // a series of which hooks paint all
const logRange = (u, low, high) => [(low ?? 1) * .8, (high ?? 10) * 1.25];

// Draw a chart into an element and keep it as wide as that.
function plot(element, options, data) {
  const made = new uPlot({
    width: element.clientWidth, legend: { show: false }, padding: [6, 18, 0, 0], ...options,
    cursor: { points: { show: false }, y: false, ...options.cursor },
  }, data, element);
  new ResizeObserver(() => made.setSize({ width: element.clientWidth, height: options.height })).observe(element);
  plots.push(made);
  return made;
}
// Lines in the chart's own units, as a hook.
const across = (u, y, name, dash = [5, 3]) => stroke(u, name, dash, ctx => {
  ctx.moveTo(u.bbox.left, u.valToPos(y, "y", true));
  ctx.lineTo(u.bbox.left + u.bbox.width, u.valToPos(y, "y", true));
});
const down = (u, x, name, dash = [5, 3]) => stroke(u, name, dash, ctx => {
  ctx.moveTo(u.valToPos(x, "x", true), u.bbox.top);
  ctx.lineTo(u.valToPos(x, "x", true), u.bbox.top + u.bbox.height);
});
function stroke(u, name, dash, path, width = 1) {
  const { ctx, bbox } = u;
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  Object.assign(ctx, { strokeStyle: css(name), lineWidth: width * devicePixelRatio });
  ctx.setLineDash(dash.map(length => length * devicePixelRatio));
  ctx.beginPath();
  path(ctx);
  ctx.stroke();
  ctx.restore();
}
const repaint = () => plots.forEach(one => one.redraw(false, true));
for (const medium of ["(prefers-color-scheme: dark)", "print"]) matchMedia(medium).addEventListener("change", repaint);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(one => { one.open = true; }));
document.querySelectorAll(".script-only").forEach(part => { part.hidden = false; });
