"""Reference policies with information that no real policy has. `clairvoyant` knows the future.

`paper-optimal` and `overprovisioned` are the two references of CLOSER 2024. `paper-optimal` packs at each tick.
`overprovisioned` knows the peak and packs only the peak, once.
"""

import math
from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from autoscaler.model import Decision, GroupObservation, Plan
from autoscaler.packing.bins import Bin, Capacity, Item
from autoscaler.packing.least_loaded import least_loaded
from autoscaler.policies.planning import change, describe_unowned, no_change, number, plan_for
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class PaperOptimalSettings(Settings):
    """Capacity of a bin. Raises ValueError for a value out of range."""

    bin_events_per_s: float = setting(85.0, "events/s", above=0)
    """Capacity of a bin. 85 reproduces the printed 32.72 and 414.1 replica-minutes of W1 and taxi. The text's μ·W of
    100 does not."""


class PaperOptimal:
    """Packs the arrival rates of each tick and ignores lag and handovers (CLOSER 2024).

    Owners change only with the count, or if the load of a replica does not fit into a bin. The paper only counts
    replicas. Here, handovers that are not needed would cost latency.
    """

    name = "paper-optimal"

    def __init__(self, settings: PolicySettings, options: PaperOptimalSettings | None = None) -> None:
        self.settings = settings
        self.options = options or PaperOptimalSettings()

    def decide(self, observation: GroupObservation) -> Decision:
        """Request the bins of this tick."""
        now = observation.requested_replicas
        items = [Item(load.partition, load.arrival_rate, 0.0) for load in observation.partitions]
        bins = _pack(items, self.options.bin_events_per_s)
        total = number(sum(item.arrival_rate for item in items))
        why = f"{total} events/s fit {len(bins)} with less than {number(self.options.bin_events_per_s)} events/s each"
        if len(bins) == now and not describe_unowned(observation) and self._fits(observation, items):
            return no_change(observation, f"{why}: no change at {now}")
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix), why)

    def _fits(self, observation: GroupObservation, items: Iterable[Item]) -> bool:
        rates_by_owner: dict[str, list[float]] = {}
        for item in items:
            rates_by_owner.setdefault(observation.assignment[item.partition], []).append(item.arrival_rate)
        return all(len(rates) == 1 or sum(rates) < self.options.bin_events_per_s for rates in rates_by_owner.values())


@dataclass(frozen=True, kw_only=True)
class OverprovisionedSettings(Settings):
    """The peak, which is required. Raises ValueError if it is missing or a value is out of range."""

    peak_rates: tuple[float, ...]
    """Arrival rates (events/s) of partitions 0, 1, … in the second whose packing needs most bins."""
    bin_events_per_s: float = setting(85.0, "events/s", above=0)
    """As for `paper-optimal`."""


class Overprovisioned:
    """Keeps the packing of the peak that `peak_rates` gives."""

    name = "overprovisioned"

    def __init__(self, settings: PolicySettings, options: OverprovisionedSettings) -> None:
        self.settings, self.options = settings, options

    def decide(self, observation: GroupObservation) -> Decision:
        """Request the packing if it is not in force."""
        now = observation.requested_replicas
        peak = dict(enumerate(self.options.peak_rates))
        items = [Item(load.partition, peak.get(load.partition, 0.0), 0.0) for load in observation.partitions]
        bins = _pack(items, self.options.bin_events_per_s)
        why = f"{len(bins)} for the peak"
        if len(bins) == now and not describe_unowned(observation):
            return no_change(observation, f"{why}: no change at {now}")
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix), why)


def _pack(items: Iterable[Item], less_than: float) -> tuple[Bin, ...]:
    return least_loaded(tuple(items), Capacity(math.nextafter(less_than, 0.0), 1.0))


ScheduledPlan = tuple[int, tuple[str, ...], tuple[str, ...]]
"""µs since the start of the run, replicas from then on, and the owner of each partition."""


@dataclass(frozen=True, kw_only=True)
class ClairvoyantSettings(Settings):
    """The schedule, which is required."""

    schedule: tuple[ScheduledPlan, ...]
    """The schedule of the optimum, ordered by time."""


class Clairvoyant:
    """Follows the schedule of the optimum, which is an option."""

    name = "clairvoyant"

    def __init__(self, settings: PolicySettings, options: ClairvoyantSettings) -> None:
        self.settings, self.options = settings, options
        self._times_us = [at_us for at_us, _, _ in options.schedule]

    def decide(self, observation: GroupObservation) -> Decision:
        """Request the plan of the schedule's present step."""
        step = bisect_right(self._times_us, round(observation.at_s * 1e6))
        if not step:
            return no_change(observation, "the schedule has not begun: no change")
        _, replicas, owners = self.options.schedule[step - 1]
        known = dict(enumerate(owners))
        partitions = sorted(load.partition for load in observation.partitions)
        plan = Plan(replicas, {p: known.get(p, replicas[p % len(replicas)]) for p in partitions})
        return change(observation, plan, f"step {step} of {len(self._times_us)}")
