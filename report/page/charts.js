// Drawing helpers: uPlot in the colours of the page, which follow the theme and the printer.
let colours = {}; // reading a style makes the browser compute all changed ones
const css = name => colours[name] ??= getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
const pale = name => `${css(name)}2e`;
const plots = [];

const decades = (low, high, most) => {
  for (const factors of [[1, 2, 5], [1, 3], [1]]) {
    const found = [];
    for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++)
      for (const factor of factors) found.push(+(factor * 10 ** power).toPrecision(3));
    const visible = found.filter(value => value >= low * .999 && value <= high * 1.001);
    if (visible.length <= most || factors.length === 1) return visible;
  }
};
const format = value => value === null || value === undefined ? "–" : (+value.toPrecision(6)).toLocaleString("en");
const formatMs = value => value < 1000 ? `${format(value)} ms` : `${format(value / 1000)} s`;

// An axis in the colours of the page. more: further options of uPlot.
const axis = more => ({
  stroke: () => css("muted"), font: "12px system-ui, sans-serif", ticks: { show: false },
  grid: { stroke: () => css("grid"), width: 1 }, ...more,
});
const decimal = { splits: (u, at, low, high) => decades(low, high, 8), filter: (u, splits) => splits };
const nothing = { paths: () => null, points: { show: false } }; // a series that is drawn by hooks only
const logRange = (u, low, high) => [(low ?? 1) * .8, (high ?? 10) * 1.25];

// Draw a chart into an element and keep its width equal to that of the element.
function plot(element, options, data) {
  const chart = new uPlot({
    width: element.clientWidth, legend: { show: false }, padding: [6, 18, 0, 0], ...options,
    cursor: { points: { show: false }, y: false, ...options.cursor },
  }, data, element);
  new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: options.height })).observe(element);
  plots.push(chart);
  return chart;
}
// Draw a dashed line at a value: across (horizontal) or down (vertical).
const across = (u, y) => dashed(u, u.bbox.left, u.valToPos(y, "y", true), u.bbox.width, 0);
const down = (u, x) => dashed(u, u.valToPos(x, "x", true), u.bbox.top, 0, u.bbox.height);
function dashed({ ctx }, x, y, wide, tall) {
  ctx.save();
  Object.assign(ctx, { strokeStyle: css("bad"), lineWidth: devicePixelRatio });
  ctx.setLineDash([5 * devicePixelRatio, 3 * devicePixelRatio]);
  ctx.beginPath();
  ctx.moveTo(x, y);
  ctx.lineTo(x + wide, y + tall);
  ctx.stroke();
  ctx.restore();
}
const repaint = () => { colours = {}; plots.forEach(chart => chart.redraw(false, true)); };
for (const medium of ["(prefers-color-scheme: dark)", "print"]) matchMedia(medium).addEventListener("change", repaint);
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(part => { part.open = true; }));
const clock = at => {
  const [h, m, s] = [Math.floor(at / 3600), Math.floor(at / 60) % 60, String(Math.floor(at) % 60).padStart(2, "0")];
  return h ? `${h}:${String(m).padStart(2, "0")}:${s}` : `${m}:${s}`;
};
