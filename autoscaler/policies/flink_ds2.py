"""DS2 (Kalavri et al., OSDI 2018) as the autoscaler of the Flink Kubernetes Operator carries it out for one source.

Metrics become a count, target capacity over true processing rate, inside the rules that keep it from rescaling often.
Written after its documentation ("Autoscaler", "Configuration reference") and checked against the sources of
flink-autoscaler: `JobVertexScaler`, `ScalingMetricEvaluator`, `AutoScalerUtils`, `DelayedScaleDown`,
`AutoScalerOptions`. A vertex here is the group, its parallelism the count, a subtask a replica, a rescale a rebalance.
"""

import math
from collections import deque
from dataclasses import dataclass

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.flink_metrics import FlinkDs2Settings, Metrics, MetricWindow
from autoscaler.policies.planning import Scalings, change, counted_hold, counted_plan, number
from autoscaler.policies.settings import PolicySettings


@dataclass(frozen=True, slots=True)
class Rescale:
    """One that was decided, and what was expected of it."""

    before: int
    after: int
    true_rate: float
    """Before it, events/s."""
    expected_rate: float
    """After it, events/s."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A smaller count that was recommended."""

    at_s: float
    count: int
    outside: bool
    """The utilisation was outside its bounds."""


class FlinkDs2:
    """Count = ⌈count × target capacity / true rate⌉, where the utilisation is outside its bounds. States a count only.

    Nothing is decided while a replica starts: the job is not running then.
    """

    name = "flink-ds2"

    def __init__(self, settings: PolicySettings, options: FlinkDs2Settings | None = None) -> None:
        self.settings = settings
        self.options = options or FlinkDs2Settings()
        self._window = MetricWindow(self.options)
        self._scalings = Scalings(0.0)
        self._rescales: deque[Rescale] = deque(maxlen=self.options.scalability_observations)
        self._wishes: deque[Wish] = deque()
        self._first_wish_s = math.inf

    def decide(self, observation: GroupObservation) -> Decision:
        """Evaluate a full window; hold until there is one."""
        now, prefix = observation.requested_replicas, self.settings.replica_prefix
        if not now:
            plan = counted_plan(observation, self.options.min_parallelism, prefix)
            return change(observation, plan, "no replica is requested")
        if why := self._not_ready(observation):
            return counted_hold(observation, prefix, f"{why}: hold {now}")
        wanted, why = self._evaluated(observation, self._window.metrics())
        if wanted == now:
            return counted_hold(observation, prefix, f"{why}: hold {now}")
        return change(observation, counted_plan(observation, wanted, prefix), why)

    def _not_ready(self, observation: GroupObservation) -> str:
        """Take in the tick; say what is waited for before anything can be evaluated."""
        rescaled_s = self._scalings.last_s
        self._scalings.observe(observation)
        starting = [one.name for one in observation.replicas if not one.ready]
        if starting or self._scalings.last_s > rescaled_s:
            self._forget_wishes()
            self._window.restart(observation.at_s if starting else self._scalings.last_s)
        if starting:
            return f"{', '.join(starting)} not ready"
        self._window.observe(observation)
        missing_s = self._window.missing_s(observation.at_s)
        return f"the window is full in {number(missing_s)} s" if missing_s else ""

    def _evaluated(self, observation: GroupObservation, metrics: Metrics) -> tuple[int, str]:
        """Return the count to ask for, and why."""
        now, options = observation.requested_replicas, self.options
        restart_s = options.restart_s
        if options.track_restart_time:
            restart_s = min(observation.rebalance_time_s, options.restart_limit_s)
        target = metrics.capacity_for(options, options.utilization_target, restart_s)
        factor = target / metrics.true_rate / self._scalability()
        factor = min(max(factor, 1 - options.max_scale_down_factor), 1 + options.max_scale_up_factor)
        wanted = self._bounded(math.ceil(factor * now * (1 - 1e-9)), now, len(observation.partitions))
        why = (
            f"{number(metrics.arrival_rate)} events/s and {metrics.lag} events of lag need {number(target)} events/s, "
            f"{now} serve {number(metrics.true_rate)}"
        )
        outside = self._outside(metrics, restart_s)
        if wanted >= now:
            self._forget_wishes()
        if wanted > now and (ineffective := self._ineffective(metrics, now)):
            return now, f"{why}: {wanted} wanted, but {ineffective}"
        if wanted < now:
            wanted, outside, waiting = self._delayed(Wish(observation.at_s, wanted, outside))
            if waiting:
                return now, f"{why}: {wanted} wanted, but {waiting}"
        if wanted != now and not outside:
            backlog = ", for a backlog is being served" if metrics.backlog else ""
            return now, f"{why}: {wanted} wanted, but the utilisation is within its bounds{backlog}"
        if wanted != now:
            expected = metrics.true_rate * factor if metrics.true_rate < math.inf else target
            self._rescales.append(Rescale(now, wanted, metrics.true_rate, expected))
        return wanted, why

    def _bounded(self, wanted: int, now: int, partitions: int) -> int:
        least = min(now, self.options.min_parallelism)
        most = max(1, min(partitions, max(now, self.options.max_parallelism)))
        return aligned(min(max(wanted, least), most), now, partitions, self.options.alignment, at_least=least)

    def _outside(self, metrics: Metrics, restart_s: float) -> bool:
        """Tell whether the group serves less than `utilization_max` asks for, or more than `utilization_min` does."""
        options = self.options
        most, least = (1.0, 0.0) if metrics.backlog else (options.utilization_max, options.utilization_min)
        too_little = metrics.true_rate < metrics.capacity_for(options, most, 0.0)
        return too_little or metrics.true_rate > metrics.capacity_for(options, least, restart_s)

    def _delayed(self, wish: Wish) -> tuple[int, bool, str]:
        """Return the most that was wished in the interval, whether outside the bounds then, and what is waited for."""
        interval_s = self.options.scale_down_interval_s
        if not interval_s:
            return wish.count, wish.outside, ""
        self._first_wish_s = min(self._first_wish_s, wish.at_s)
        while self._wishes and self._wishes[-1].count <= wish.count:
            self._wishes.pop()
        self._wishes.append(wish)
        waited_s = wish.at_s - self._first_wish_s
        if waited_s < interval_s - 1e-6:
            return wish.count, wish.outside, f"down is delayed, {number(waited_s)} of {number(interval_s)} s"
        while self._wishes[0].at_s < wish.at_s - interval_s - 1e-6:
            self._wishes.popleft()
        return self._wishes[0].count, self._wishes[0].outside, ""

    def _forget_wishes(self) -> None:
        self._wishes.clear()
        self._first_wish_s = math.inf

    def _ineffective(self, metrics: Metrics, now: int) -> str:
        """Say that the last scale-up, which led to the present count, added less than it should have."""
        last = self._rescales[-1] if self._rescales else None
        if not self.options.detect_ineffective or last is None or last.after != now or last.before >= now:
            return ""
        expected, actual = last.expected_rate - last.true_rate, metrics.true_rate - last.true_rate
        if actual >= self.options.effectiveness * expected:
            return ""
        return f"the last scale-up added {number(actual)} of {number(expected)} events/s"

    def _scalability(self) -> float:
        """Return the share of its part that a replica adds: least squares of true rates over counts, 1 until known.

        With r(n) = α·β·n, where β is the rate of one replica at the smallest count seen, Σ(α·β·n − r)² is least at
        α = Σ n·r / (β·Σ n²).
        """
        options, seen = self.options, self._rescales
        if not options.observe_scalability or len(seen) < options.scalability_observations:
            return 1.0
        if any(one.true_rate == math.inf for one in seen):
            return 1.0
        smallest = min(seen, key=lambda one: one.before)
        base = smallest.true_rate / smallest.before
        fitted = sum(one.before * one.true_rate for one in seen) / (base * sum(one.before**2 for one in seen))
        return math.ceil(min(1.0, max(options.scalability_min, fitted)) * 100 - 1e-9) / 100


def aligned(wanted: int, now: int, partitions: int, mode: str, *, at_least: int = 1) -> int:
    """Return the count near `wanted` ≤ `partitions` that `mode` prefers, never on the other side of `now`.

    First upwards, to a count that divides the partitions, or (maximize-utilisation) at which the least that a replica
    owns is fewer; a group that shrinks looks no higher than `now`. Where there is none, downwards, to the fewest
    replicas of which the least loaded own no more than at `wanted`.
    """
    if mode == "none" or wanted == now:
        return wanted
    each = partitions // wanted
    highest = partitions if wanted > now else min(now, partitions)
    for count in range(wanted, highest + 1):
        if partitions % count == 0 or (mode == "maximize-utilisation" and partitions // count < each):
            return count
    lower = next((count for count in range(wanted, 0, -1) if partitions // count > each), 0)
    if lower and partitions % lower:
        lower += 1
    found = max(lower, at_least)
    return found if (found > now) == (wanted > now) and found != now else now
