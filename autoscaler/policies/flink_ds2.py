"""DS2 (Kalavri et al., OSDI 2018) as implemented by the autoscaler of the Flink Kubernetes Operator, for one source.

The count is target capacity divided by true processing rate, limited by the rules that prevent frequent rescaling.
Written after its documentation ("Autoscaler", "Configuration reference") and checked against the sources of
flink-autoscaler: `JobVertexScaler`, `ScalingMetricEvaluator`, `AutoScalerUtils`, `DelayedScaleDown`,
`AutoScalerOptions`. A vertex here is the group, its parallelism the count, a subtask a replica, a rescale a rebalance.
"""

import math
from collections import deque
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple

from autoscaler.model import Decision, GroupObservation
from autoscaler.policies.planning import ScalingHistory, busiest, describe_unowned, number, scale_to
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Rules, Settings, Values, setting

ALIGNMENTS: Final = ("none", "evenly-spread")


def _between_its_limits(values: Values) -> str | None:
    inside = values["utilization_min"] <= values["utilization_target"] <= values["utilization_max"]
    return None if inside else "utilization_min ≤ utilization_target ≤ utilization_max does not hold"


@dataclass(frozen=True, kw_only=True)
class FlinkDs2Settings(Settings):
    """Options of the operator, whose names are given without `job.autoscaler.`. Raises ValueError naming all mistakes.

    Defaults are those of the example in the operator's documentation, with seconds in place of minutes: a rebalance
    takes only seconds here. The operator's own defaults are in bench/matrices.toml.
    """

    utilization_target: float = setting(0.6, "share", above=0, most=1)
    """`utilization.target`: target share of busy time. Flink's example 0.6, default 0.7."""
    utilization_max: float = setting(0.8, "share", least=0, most=1)
    """`utilization.max`: no action between utilization_min and this."""
    utilization_min: float = setting(0.4, "share", least=0, most=1)
    """`utilization.min`. Example 0.4, default target − 0.3."""
    catch_up_s: float = setting(5.0, "s", least=0)
    """`catch-up.duration`: time in which a backlog is removed; 0: backlogs are ignored. Example 5 min."""
    metrics_window_s: float = setting(5.0, "s", above=0)
    """`metrics.window`: time over which rates are averaged. No decision before it is full. Example 5 min."""
    stabilisation_s: float = setting(1.0, "s", least=0)
    """`stabilization.interval`: time without measurements after a change. Example 1 min."""
    scale_down_interval_s: float = setting(60.0, "s", least=0)
    """`scale-down.interval`: scale down only to the maximum recommended in this time. Default 1 h."""
    max_scale_down_factor: float = setting(0.6, "share", least=0, most=1)
    """`scale-down.max-factor`: maximum share of capacity removed at once."""
    max_scale_up_factor: float = setting(100_000.0, least=0)
    """`scale-up.max-factor`: maximum factor of capacity added at once."""
    backlog_lag_s: float = setting(5.0, "s", least=0)
    """`backlog-processing.lag-threshold`: a lag that takes longer to serve is a backlog. Utilization is ignored during
    it. Default 5 min."""
    alignment: str = setting("none", known=ALIGNMENTS)
    """`key-group.partitions.adjust.mode`: `evenly-spread` (Flink's default) rounds up to a divisor of the partitions,
    which a prime number lacks."""
    RULES: ClassVar[Rules] = (("utilization_target", _between_its_limits),)


class _Sample(NamedTuple):
    """One tick: rate and lag of the whole group."""

    at_s: float
    arrival_rate: float
    lag: int
    busy: float
    """Share of time that the busiest replica needs for its arrivals. Above 1 it falls behind."""


class _Metrics(NamedTuple):
    """Averages over the window, and the latest lag."""

    arrival_rate: float
    lag: int
    true_rate: float
    """Events/s that the group serves if the busiest replica is never idle; infinite without arrivals."""
    backlog: bool
    """Whether the lag takes longer than `backlog_lag_s` to serve at the average rate of the window."""

    def capacity_for(self, options: FlinkDs2Settings, utilization: float, restart_s: float) -> float:
        """Return the required true rate, events/s: (lag + λ·restart_s)/catch_up_s + λ/utilization."""
        if not utilization:
            return math.inf
        catch_up = (self.lag + self.arrival_rate * restart_s) / options.catch_up_s if options.catch_up_s else 0.0
        return math.floor(catch_up + self.arrival_rate / utilization + 0.5)


class _Window:
    """Collects samples, and computes metrics once the window is full."""

    def __init__(self, options: FlinkDs2Settings) -> None:
        self.options = options
        self._samples: deque[_Sample] = deque()
        self._since_s = math.inf

    def restart(self, at_s: float) -> None:
        self._samples.clear()
        self._since_s = at_s

    def observe(self, observation: GroupObservation) -> float:
        """Add one tick. Return the time until the window is full, seconds; 0: it is full."""
        options, at_s = self.options, observation.at_s
        self._since_s = at_s if self._since_s == math.inf else self._since_s
        if at_s > self._since_s + options.stabilisation_s:
            self._samples.append(_sample(observation))
            while self._samples[0].at_s <= at_s - options.metrics_window_s:
                self._samples.popleft()
        missing_s = self._since_s + options.stabilisation_s + options.metrics_window_s - at_s
        return missing_s if missing_s > 1e-6 else 0.0

    def metrics(self) -> _Metrics:
        samples = self._samples
        oldest, newest = samples[0], samples[-1]
        arrival_rate = sum(sample.arrival_rate for sample in samples) / len(samples)
        busy = sum(sample.busy for sample in samples) / len(samples)
        passed_s = newest.at_s - oldest.at_s
        served = max(0.0, arrival_rate - (newest.lag - oldest.lag) / passed_s) if passed_s else arrival_rate
        true_rate = arrival_rate / busy if busy else math.inf
        return _Metrics(arrival_rate, newest.lag, true_rate, newest.lag > served * self.options.backlog_lag_s)


def _sample(observation: GroupObservation) -> _Sample:
    """Return the tick as a sample. `busy` is λ/μ at the busiest replica, or the average if owners are unknown."""
    arrival_rate = sum(load.arrival_rate for load in observation.partitions)
    if describe_unowned(observation):
        busy = arrival_rate / sum(replica.service_rate or observation.service_rate for replica in observation.replicas)
    else:
        busy = busiest(observation, observation.assignment)
    return _Sample(observation.at_s, arrival_rate, sum(load.lag for load in observation.partitions), busy)


@dataclass(frozen=True, slots=True)
class _Recommendation:
    """A recommended smaller count, and whether the utilisation was outside its bounds."""

    at_s: float
    count: int
    outside: bool


class FlinkDs2:
    """Scales by needed capacity / true processing rate, as Flink's autoscaler; decides a count only.

    The count changes if the utilisation is outside its bounds. No decision is made while a replica starts, because
    a Flink job does not run then.
    """

    name = "flink-ds2"

    def __init__(self, settings: PolicySettings, options: FlinkDs2Settings | None = None) -> None:
        self.settings = settings
        self.options = options or FlinkDs2Settings()
        self._window = _Window(self.options)
        self._scalings = ScalingHistory(0.0)
        self._recommended: deque[_Recommendation] = deque()
        self._first_recommended_s = math.inf

    def decide(self, observation: GroupObservation) -> Decision:
        """Evaluate the window if it is full."""
        wanted = observation.requested_replicas
        if not wanted:
            wanted, why = 1, "no replica is requested"
        elif not (why := self._not_ready(observation)):
            wanted, why = self._evaluate(observation, self._window.metrics())
        return scale_to(observation, wanted, self.settings.replica_prefix, why)

    def _not_ready(self, observation: GroupObservation) -> str:
        rescaled_s = self._scalings.last_s
        self._scalings.observe(observation)
        starting = [replica.name for replica in observation.replicas if not replica.ready]
        if starting or self._scalings.last_s > rescaled_s:
            self._forget_recommendations()
            self._window.restart(observation.at_s if starting else self._scalings.last_s)
        if starting:
            return f"{', '.join(starting)} not ready"
        missing_s = self._window.observe(observation)
        return f"the window is full in {number(missing_s)} s" if missing_s else ""

    def _evaluate(self, observation: GroupObservation, metrics: _Metrics) -> tuple[int, str]:
        """Return the wanted count, and why."""
        now, options = observation.requested_replicas, self.options
        restart_s = observation.rebalance_time_s
        target = metrics.capacity_for(options, options.utilization_target, restart_s)
        factor = target / metrics.true_rate
        factor = min(max(factor, 1 - options.max_scale_down_factor), 1 + options.max_scale_up_factor)
        partitions = len(observation.partitions)
        wanted = max(1, min(math.ceil(factor * now * (1 - 1e-9)), partitions))
        wanted = align(wanted, now, partitions, options.alignment)
        why = (
            f"{number(metrics.arrival_rate)} events/s and {metrics.lag} events of lag need {number(target)} events/s, "
            f"{now} serve {number(metrics.true_rate)}"
        )
        most, least = (1.0, 0.0) if metrics.backlog else (options.utilization_max, options.utilization_min)
        outside = metrics.true_rate < metrics.capacity_for(options, most, 0.0)
        outside |= metrics.true_rate > metrics.capacity_for(options, least, restart_s)
        if wanted >= now:
            self._forget_recommendations()
        if wanted < now:
            wanted, outside, waiting = self._delay(_Recommendation(observation.at_s, wanted, outside))
            if waiting:
                return now, f"{why}: {wanted} wanted, but {waiting}"
        if wanted != now and not outside:
            backlog = ", which are 0 to 1 while a backlog is served" if metrics.backlog else ""
            return now, f"{why}: {wanted} wanted, but the utilisation is within its bounds{backlog}"
        return wanted, why

    def _delay(self, newest: _Recommendation) -> tuple[int, bool, str]:
        """Return the maximum recommended count, whether it was outside the bounds, and the reason of a delay."""
        interval_s = self.options.scale_down_interval_s
        self._first_recommended_s = min(self._first_recommended_s, newest.at_s)
        self._recommended.append(newest)
        waited_s = newest.at_s - self._first_recommended_s
        if waited_s < interval_s - 1e-6:
            return newest.count, newest.outside, f"scale-down is delayed, {number(waited_s)} of {number(interval_s)} s"
        while self._recommended[0].at_s < newest.at_s - interval_s - 1e-6:
            self._recommended.popleft()
        most = max(self._recommended, key=lambda recommendation: (recommendation.count, recommendation.at_s))
        return most.count, most.outside, ""

    def _forget_recommendations(self) -> None:
        self._recommended.clear()
        self._first_recommended_s = math.inf


def align(wanted: int, now: int, partitions: int, mode: str) -> int:
    """Return a count near `wanted` (≤ partitions) by the operator's rule, or `now` if that count is beyond `now`.

    The rule takes the next divisor of `partitions` from `wanted` up, at most `now` if the group shrinks. Else it takes
    the smallest count with the same ⌊partitions/count⌋ as `wanted`, or one less if that is a divisor.
    """
    if mode == "none" or wanted == now:
        return wanted
    each = partitions // wanted
    highest = partitions if wanted > now else min(now, partitions)
    for count in range(wanted, highest + 1):
        if partitions % count == 0:
            return count
    lower = next((count for count in range(wanted, 0, -1) if partitions // count > each), 0)
    if lower and partitions % lower:
        lower += 1
    found = max(lower, 1)
    return found if (found > now) == (wanted > now) and found != now else now
