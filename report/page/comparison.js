// A comparison: who keeps how much for what cost, and which differences are more than chance.
const NONE_LATE = 1e-6, lateOf = share => Math.max(1 - share, NONE_LATE);
const percent = late => late <= NONE_LATE ? "none" : `${+(late * 100).toPrecision(3)} %`;

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
  if (!name) return;
  lettering(ctx);
  const wide = ctx.measureText(name).width, right = x(at[0]) + 9 * ratio + wide < u.bbox.left + u.bbox.width;
  const box = { x: right ? x(at[0]) + 9 * ratio : x(at[0]) - 9 * ratio - wide, y: y(at[1]) - 5 * ratio, wide };
  const taken = () => u.named.some(other => Math.abs(other.y - box.y) < 13 * ratio
    && other.x < box.x + wide && box.x < other.x + other.wide);
  // Below, above, further below …
  for (let turn = 1; taken() && turn < 9; turn++) box.y += (turn % 2 ? 1 : -1) * turn * 13 * ratio;
  u.named.push(box);
  ctx.fillText(name, box.x, box.y);
}
const lettering = ctx => Object.assign(ctx, {
  fillStyle: css("ink"), font: `${12 * devicePixelRatio}px system-ui, sans-serif`,
  textAlign: "left", textBaseline: "alphabetic",
});

page.forEach((group, number) => {
  const { contestants, differences, bound_replica_minutes: bound } = group;
  const costs = contestants.flatMap(one => [one.replica_minutes.low, one.replica_minutes.high]).concat(bound ?? []);
  const lates = contestants.flatMap(one => [lateOf(one.in_sla.low), lateOf(one.in_sla.high)])
    .concat(lateOf(group.percentile));
  const margin = Math.max(.1 * (Math.max(...costs) - Math.min(...costs)), .02 * Math.max(...costs), .01);
  plot(document.getElementById(`front-${number}`), {
    height: 360, series: [{}, nothing], cursor: { show: false },
    scales: {
      x: { time: false, range: () => [Math.max(0, Math.min(...costs) - margin), Math.max(...costs) + margin] },
      y: { distr: 3, range: () => [Math.min(...lates) / 2, Math.min(2, 3 * Math.max(...lates))] },
    },
    axes: [
      axis({ size: 28, values: (u, splits) => splits.map(say) }),
      logAxis({ size: 68, values: (u, splits) => splits.map(percent) }),
    ],
    hooks: { draw: [u => {
      u.named = [];
      across(u, lateOf(group.percentile), "bad");
      if (bound) down(u, bound, "muted", [2, 3]);
      contestants.forEach(one => {
        const [cost, kept] = [one.replica_minutes, one.in_sla], at = [cost.mean, lateOf(kept.mean)];
        const costly = [[cost.low, at[1]], [cost.high, at[1]]];
        const late = [[at[0], lateOf(kept.low)], [at[0], lateOf(kept.high)]];
        mark(u, at, [costly, late], "a", one.on_front, one.label);
      });
    }] },
  }, [costs, costs.map(() => null)]);

  const gaps = differences.filter(one => one.in_sla).map(one => ({ ...one.in_sla, label: one.label }));
  if (!gaps.length) return;
  const ends = gaps.flatMap(one => [one.low * 100, one.high * 100]).concat(0);
  const room = .08 * (Math.max(...ends) - Math.min(...ends)) || 1;
  plot(document.getElementById(`gaps-${number}`), {
    height: 70 + 34 * gaps.length, series: [{}, nothing], cursor: { show: false },
    scales: {
      x: { time: false, range: () => [Math.min(...ends) - room, Math.max(...ends) + room] },
      y: { dir: -1, range: () => [-.8, gaps.length - .4] },
    },
    axes: [
      axis({ size: 28, values: (u, splits) => splits.map(say) }),
      axis({ size: 8, splits: () => [], grid: { show: false } }),
    ],
    hooks: { draw: [u => {
      down(u, 0, "muted", []);
      u.named = [];
      gaps.forEach((one, k) => {
        const span = [[one.low * 100, k], [one.high * 100, k]];
        mark(u, [one.mean * 100, k], [span], one.distinguishable ? "a" : "muted", one.distinguishable);
        lettering(u.ctx);
        u.ctx.fillText(one.label, u.bbox.left + 4, u.valToPos(k, "y", true) - 9 * devicePixelRatio);
      });
    }] },
  }, [ends, ends.map(() => null)]);
});
