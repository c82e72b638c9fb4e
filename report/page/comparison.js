// A comparison: who keeps how much for what cost, and which differences are more than chance.
const NONE_LATE = 1e-6, lateOf = share => Math.max(1 - share, NONE_LATE);
const percent = late => late <= NONE_LATE ? "none" : `${+(late * 100).toPrecision(3)} %`;

// A chart of points: nothing is drawn but what `draw` paints.
const points = (id, height, x, y, xRange, yScale, draw) => plot(document.getElementById(id), {
  height, series: [{}, nothing], cursor: { show: false },
  scales: { x: { time: false, range: () => xRange }, y: yScale },
  axes: [axis({ size: 28, values: (u, splits) => splits.map(say) }), y],
  hooks: { draw: [u => { u.named = []; draw(u); }] },
}, [x, x.map(() => null)]);

// A point with the lines of its intervals, and its name where there is room.
function mark(u, at, spans, colour, full, name) {
  const x = value => u.valToPos(value, "x", true), y = value => u.valToPos(value, "y", true);
  const { ctx } = u, ratio = devicePixelRatio;
  stroke(u, colour, [], path => spans.forEach(([from, to]) => {
    path.moveTo(x(from[0]), y(from[1]));
    path.lineTo(x(to[0]), y(to[1]));
  }), 1.5);
  ctx.beginPath();
  ctx.arc(x(at[0]), y(at[1]), 5 * ratio, 0, 7);
  Object.assign(ctx, { fillStyle: css(full ? colour : "card"), strokeStyle: css(colour), lineWidth: 1.5 * ratio });
  ctx.fill();
  ctx.stroke();
  Object.assign(ctx, { fillStyle: css("ink"), font: `${12 * ratio}px system-ui, sans-serif`, textAlign: "left" });
  const wide = ctx.measureText(name).width, right = x(at[0]) + 9 * ratio + wide < u.bbox.left + u.bbox.width;
  const box = { x: x(at[0]) + (right ? 9 * ratio : -9 * ratio - wide), y: y(at[1]) - 8 * ratio, wide };
  const taken = () => u.named.some(other => Math.abs(other.y - box.y) < 13 * ratio
    && other.x < box.x + wide && box.x < other.x + other.wide);
  // Below, above, further below …
  for (let turn = 1; taken() && turn < 9; turn++) box.y += (turn % 2 ? 1 : -1) * turn * 13 * ratio;
  u.named.push(box);
  ctx.fillText(name, box.x, box.y);
}

page.forEach(({ contestants, percentile, packing_replica_minutes: packing }, number) => {
  const costs = contestants.flatMap(({ replica_minutes: cost }) => [cost.low, cost.high]).concat(packing ?? []);
  const lates = contestants.flatMap(({ in_sla: kept }) => [kept.low, kept.high]).concat(percentile).map(lateOf);
  const margin = Math.max(.1 * (Math.max(...costs) - Math.min(...costs)), .02 * Math.max(...costs), .01);
  const range = [Math.max(0, Math.min(...costs) - margin), Math.max(...costs) + margin];
  const late = { distr: 3, range: () => [Math.min(...lates) / 2, Math.min(2, 3 * Math.max(...lates))] };
  const lateAxis = logAxis({ size: 68, values: (u, splits) => splits.map(percent) });
  points(`front-${number}`, 360, costs, lateAxis, range, late, u => {
    across(u, lateOf(percentile), "bad");
    if (packing) down(u, packing, "muted", [2, 3]);
    for (const { replica_minutes: cost, in_sla: kept, on_front, label } of contestants) {
      const at = [cost.mean, lateOf(kept.mean)];
      const spans = [[[cost.low, at[1]], [cost.high, at[1]]], [[at[0], lateOf(kept.low)], [at[0], lateOf(kept.high)]]];
      mark(u, at, spans, "a", on_front, label);
    }
  });

  const gaps = contestants.filter(one => one.in_sla_difference);
  if (!gaps.length) return;
  const ends = gaps.flatMap(({ in_sla_difference: gap }) => [gap.low * 100, gap.high * 100]).concat(0);
  const room = .08 * (Math.max(...ends) - Math.min(...ends)) || 1;
  const rows = { dir: -1, range: () => [-.8, gaps.length - .4] };
  const noAxis = axis({ size: 8, splits: () => [], grid: { show: false } });
  const wide = [Math.min(...ends) - room, Math.max(...ends) + room];
  points(`gaps-${number}`, 70 + 34 * gaps.length, ends, noAxis, wide, rows, u => {
    down(u, 0, "muted", []);
    gaps.forEach(({ in_sla_difference: gap, label }, k) => {
      const span = [[gap.low * 100, k], [gap.high * 100, k]];
      mark(u, [gap.mean * 100, k], [span], gap.distinguishable ? "a" : "muted", gap.distinguishable, label);
    });
  });
});
