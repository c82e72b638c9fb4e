"""What the autoscaler knows of the group: averages over a window that starts anew with each rescale."""

import math
from collections import deque
from dataclasses import dataclass

from autoscaler.model import GroupObservation
from autoscaler.policies.flink_ds2.settings import FlinkDs2Settings


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
