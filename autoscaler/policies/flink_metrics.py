"""What Flink's autoscaler is told and knows: its options, and averages over a window that each rescale starts anew."""

import math
from collections import deque
from dataclasses import dataclass
from typing import Final

from autoscaler.model import GroupObservation
from contracts.settings import Rule, Settings, Values, setting

AGGREGATORS: Final = ("max", "avg")
ALIGNMENTS: Final = ("none", "evenly-spread", "maximize-utilisation")


@dataclass(frozen=True, kw_only=True)
class FlinkDs2Settings(Settings):
    """The operator's options, by its names without `job.autoscaler.`. Raises ValueError naming all mistakes.

    Times: the operator's own defaults suit jobs that restart in minutes (window 15 min, catch-up 30 min). The defaults
    here are those of the example in its documentation with minutes read as seconds, since a rebalance takes no longer
    than seconds. Everything else is as in that example, or the operator's default where the example says nothing.
    """

    utilization_target: float = setting(0.6, "share", above=0, most=1)
    """utilization.target: share of its time that a replica should be busy. Example 0.6, default 0.7."""
    utilization_max: float = setting(0.8, "share", least=0, most=1)
    """utilization.max: no action while the replicas are less busy than this, and more than `utilization_min`."""
    utilization_min: float = setting(0.4, "share", least=0, most=1)
    """utilization.min. Example: 0.6 ± 0.2; default: target ± 0.3."""
    catch_up_s: float = setting(5.0, "s", least=0)
    """catch-up.duration, s: a backlog should be gone after that. 0: backlogs ask for nothing. Example 5 min."""
    restart_s: float = setting(2.0, "s", least=0)
    """restart.time, s: what a rescale is expected to take where it is not tracked. Example 2 min."""
    track_restart_time: bool = setting(True)
    """restart.time-tracking.enabled: take the t_r that this very group shows instead. The operator's default is off."""
    restart_limit_s: float = setting(15.0, "s", least=0)
    """restart.time-tracking.limit, s: t_r counts as no more than this. Default 15 min."""
    metrics_window_s: float = setting(5.0, "s", above=0)
    """metrics.window, s: rates and busyness are averages over it; nothing is done before it is full. Example 5 min."""
    stabilisation_s: float = setting(1.0, "s", least=0)
    """stabilization.interval, s: after a rescale, nothing is measured for so long. Example 1 min."""
    scale_down_interval_s: float = setting(60.0, "s", least=0)
    """scale-down.interval, s: down only after that long without a reason to stay, and then to the most that was
    recommended meanwhile. Default 1 h."""
    max_scale_down_factor: float = setting(0.6, "share", least=0, most=1)
    """scale-down.max-factor: share of the capacity that may go at once."""
    max_scale_up_factor: float = setting(100_000.0, least=0)
    """scale-up.max-factor: how many times the capacity may come at once."""
    min_parallelism: int = setting(1, least=1)
    """vertex.min-parallelism."""
    max_parallelism: int = setting(200, least=1)
    """vertex.max-parallelism; the number of partitions is the cap in any case."""
    backlog_lag_s: float = setting(5.0, "s", least=0)
    """backlog-processing.lag-threshold, s: a lag that takes longer than this to serve at the present pace is a backlog.
    While there is one, being busy is no reason to grow and being idle none to shrink. Default 5 min."""
    detect_ineffective: bool = setting(False)
    """scaling.effectiveness.detection.enabled: do not scale up again after a scale-up that did not help."""
    effectiveness: float = setting(0.1, least=0)
    """scaling.effectiveness.threshold: share of the expected increase below which a scale-up did not help."""
    observe_scalability: bool = setting(False)
    """observed-scalability.enabled: learn from past rescales how much of its share a further replica really adds."""
    scalability_min: float = setting(0.5, least=0)
    """observed-scalability.coefficient-min: it is never believed to add less than this."""
    scalability_observations: int = setting(3, least=1)
    """observed-scalability.min-observations: rescales that it takes; also how many are remembered."""
    busy_aggregator: str = setting("max", known=AGGREGATORS)
    """metrics.busy-time.aggregator: the busiest replica stands for all (max, the default), or their average (avg)."""
    alignment: str = setting("none", known=ALIGNMENTS)
    """key-group.partitions.adjust.mode: evenly-spread goes up to a count that divides the partitions, which is the
    operator's default; maximize-utilisation to one at which the busiest replica owns fewer of them; none takes DS2's
    own count. With a prime number of partitions the first leaves nothing between 1 and all, hence none here."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return: utilization_min ≤ utilization_target ≤ utilization_max."""
        return (("utilization_target", _between_its_limits),)


def _between_its_limits(values: Values) -> str | None:
    inside = values["utilization_min"] <= values["utilization_target"] <= values["utilization_max"]
    return None if inside else "utilization_min ≤ utilization_target ≤ utilization_max does not hold"


@dataclass(frozen=True, slots=True)
class Sample:
    """One tick."""

    at_s: float
    arrival_rate: float
    """Σλ, events/s."""
    lag: int
    """Σlag, events."""
    busy: float
    """Share of its time that the replica that stands for all needs to serve what arrives; above 1 it falls behind."""


@dataclass(frozen=True, slots=True)
class Metrics:
    """Averages over the window, and the newest lag."""

    arrival_rate: float
    """Σλ, events/s."""
    lag: int
    true_rate: float
    """Events/s that the group serves when the replica that stands for all is never idle; infinite in silence."""
    backlog: bool
    """The lag takes longer than `backlog_lag_s` to serve at the pace of the window."""

    def capacity_for(self, options: FlinkDs2Settings, utilization: float, restart_s: float) -> float:
        """Return the true rate that is needed, events/s: lag/catch-up + λ·restart/catch-up + λ/utilization."""
        if not utilization:
            return math.inf
        catch_up = (self.lag + self.arrival_rate * restart_s) / options.catch_up_s if options.catch_up_s else 0.0
        return math.floor(catch_up + self.arrival_rate / utilization + 0.5)


class MetricWindow:
    """Collects samples; has metrics once a window is full."""

    def __init__(self, options: FlinkDs2Settings) -> None:
        self.options = options
        self._samples: deque[Sample] = deque()
        self._since_s = math.inf

    def restart(self, at_s: float) -> None:
        """Forget all: the group was rescaled at `at_s`."""
        self._samples.clear()
        self._since_s = at_s

    def observe(self, observation: GroupObservation) -> None:
        """Take in one tick."""
        if self._since_s == math.inf:
            self._since_s = observation.at_s
        if observation.at_s <= self._since_s + self.options.stabilisation_s:
            return
        self._samples.append(_sample(observation, self.options))
        while self._samples[0].at_s <= observation.at_s - self.options.metrics_window_s:
            self._samples.popleft()

    def missing_s(self, at_s: float) -> float:
        """Return how long it takes until the window is full; 0 when it is."""
        full_s = self._since_s + self.options.stabilisation_s + self.options.metrics_window_s
        return full_s - at_s if full_s - at_s > 1e-6 else 0.0

    def metrics(self) -> Metrics:
        """Return the averages of a window that is full."""
        samples = self._samples
        oldest, newest = samples[0], samples[-1]
        arrival_rate = sum(one.arrival_rate for one in samples) / len(samples)
        busy = sum(one.busy for one in samples) / len(samples)
        passed_s = newest.at_s - oldest.at_s
        served = max(0.0, arrival_rate - (newest.lag - oldest.lag) / passed_s) if passed_s else arrival_rate
        return Metrics(
            arrival_rate=arrival_rate,
            lag=newest.lag,
            true_rate=arrival_rate / busy if busy else math.inf,
            backlog=newest.lag > served * self.options.backlog_lag_s,
        )


def _sample(observation: GroupObservation, options: FlinkDs2Settings) -> Sample:
    arrival_rate = sum(load.arrival_rate for load in observation.partitions)
    lag = sum(load.lag for load in observation.partitions)
    return Sample(observation.at_s, arrival_rate, lag, _busy(observation, arrival_rate, options))


def _busy(observation: GroupObservation, arrival_rate: float, options: FlinkDs2Settings) -> float:
    """Return what λ/μ is at the busiest replica, or on average; on average where owners are not known."""
    rates = {one.name: one.service_rate or observation.service_rate for one in observation.replicas}
    held = dict.fromkeys(rates, 0.0)
    for load in observation.partitions:
        owner = observation.assignment.get(load.partition)
        if options.busy_aggregator == "avg" or owner not in rates:
            return arrival_rate / sum(rates.values())
        held[owner] += load.arrival_rate
    return max(held[name] / rate for name, rate in rates.items())
