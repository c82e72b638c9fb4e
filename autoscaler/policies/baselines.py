"""Baselines: `linear` scales by the total arrival rate, `static` keeps a fixed count, `ffd-2022` packs.

`ffd-2022` is the two-dimensional first fit of Ezzeddine, Baude, Huet (ICCBDC 2022). It decides only the count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace

from autoscaler.model import Decision, GroupObservation
from autoscaler.packing.bins import Bin, Capacity, Item
from autoscaler.packing.least_loaded import spread
from autoscaler.policies.planning import (
    ScalingHistory,
    change,
    describe_unowned,
    items_of,
    no_change,
    number,
    plan_for,
    replicas_for,
    scale_to,
)
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Settings, setting


class Linear:
    """Divides the total arrival rate by the events that a replica serves within the target; decides a count only.

    The count is ⌈Σλ/(μ·W·f)⌉ (CLOSER 2024), with f = f_up to scale up and f = f_down to scale down. A replica serves
    μ·W of the events of one second in time, so a W above 1 s counts as 1 s. The paper uses 0.5 s.
    """

    name = "linear"

    def __init__(self, settings: PolicySettings) -> None:
        self.settings = settings

    def decide(self, observation: GroupObservation) -> Decision:
        """Compare the requested count with the counts that the total arrival rate needs at f_up and f_down."""
        now = observation.requested_replicas
        total = sum(load.arrival_rate for load in observation.partitions)
        in_time = observation.service_rate * min(1.0, self.settings.latency_target_s)
        rule = "μ·W" if self.settings.latency_target_s < 1 else "μ"
        for share, differs in ((self.settings.f_up, int.__gt__), (self.settings.f_down, int.__lt__)):
            allowed = in_time * share
            wanted = replicas_for(total, allowed)
            if differs(wanted, now):
                why = f"{number(total)} events/s at {number(allowed)} for each replica ({rule}·{share})"
                return scale_to(observation, wanted, self.settings.replica_prefix, why)
        return scale_to(observation, now, self.settings.replica_prefix, f"{number(total)} events/s fit the count")


class Static:
    """Keeps a fixed number of replicas and spreads the partitions evenly once."""

    def __init__(self, settings: PolicySettings, count: int = 0) -> None:
        """count: number of replicas, part of the policy's name; 0: from the settings."""
        self.settings = settings
        self.name = f"static-{count}" if count else "static"
        self._wanted = count or settings.static_replicas

    def decide(self, observation: GroupObservation) -> Decision:
        """Restore the count, or assign partitions without an owner."""
        wanted = self._wanted
        why = describe_unowned(observation)
        if observation.requested_replicas != wanted:
            why = f"static keeps {wanted}"
        if not why:
            return no_change(observation, f"static keeps {wanted}: no change at {wanted}")
        bins = spread(items_of(observation), wanted)
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix), why)


@dataclass(frozen=True, kw_only=True)
class FirstFit2022Settings(Settings):
    """Parameters of the paper. Raises ValueError for a value out of range."""

    cool_down_s: float = setting(30.0, "s", least=0)
    """Time without a decision after any change of the count. ICCBDC 2022 uses 30 at W = 5 s."""


class FirstFit2022:
    """Decides a count by two-dimensional first-fit decreasing and spreads partitions by number (ICCBDC 2022).

    A bin holds μ events/s and μ·W events of lag. Partitions move only when the count changes, as in the paper.
    """

    name = "ffd-2022"

    def __init__(self, settings: PolicySettings, options: FirstFit2022Settings | None = None) -> None:
        self.settings = settings
        self.options = options or FirstFit2022Settings()
        self._scalings = ScalingHistory(self.options.cool_down_s)

    def decide(self, observation: GroupObservation) -> Decision:
        """Scale to the count of the packing unless cooling down. Assign partitions without an owner."""
        self._scalings.observe(observation)
        now = observation.requested_replicas
        items = items_of(observation)
        capacity = Capacity.of_replica(observation.service_rate, self.settings.latency_target_s, 1.0)
        wanted = max(1, first_fit_decreasing(items, capacity))
        total = Bin(items)
        why = (
            f"{number(total.arrival_rate)} events/s and {number(total.lag)} events of lag fit {wanted} with "
            f"{number(capacity.arrival_rate)} events/s (μ) and {number(capacity.lag)} events (μ·W) each"
        )
        since_s = observation.at_s - self._scalings.last_s
        if wanted != now and now and since_s < self.options.cool_down_s:
            so_far = f"{number(since_s)} of {number(self.options.cool_down_s)} s"
            why, wanted = f"{why}, but cooling down, {so_far}", now
        if wanted == now and not describe_unowned(observation):
            return no_change(observation, f"{why}: no change at {now}")
        if wanted == now:
            why = describe_unowned(observation)
        bins = fewest_partitions(items, wanted)
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix, at_least=wanted), why)


def fewest_partitions(items: Sequence[Item], count: int) -> tuple[Bin, ...]:
    """Spread `items` over `count` bins, largest λ first, each into the bin with the fewest items, then the least λ."""
    contents: list[list[Item]] = [[] for _ in range(count)]
    heap = [(0, 0.0, index) for index in range(count)]  # items, λ, index: sorted, hence a heap
    for item in sorted(items, key=lambda item: (-item.arrival_rate, item.partition)):
        number_of_items, arrival_rate, index = heap[0]
        contents[index].append(item)
        heapreplace(heap, (number_of_items + 1, arrival_rate + item.arrival_rate, index))
    return tuple(Bin(tuple(content)) for content in contents)


def first_fit_decreasing(items: Sequence[Item], capacity: Capacity) -> int:
    """Return the number of bins. Each item goes into the first one in which both capacities hold, else into a new one.

    Items come largest λ first. Ties: larger lag, then lower partition number. An item bigger than a bin counts as one
    full bin, as in Least-Loaded, so only idle partitions can join it.
    """
    room: list[tuple[float, float]] = []
    for item in sorted(items, key=lambda item: (-item.arrival_rate, -item.lag, item.partition)):
        whole = capacity.exceeded_by(item.arrival_rate, item.lag)
        rate = capacity.arrival_rate if whole else item.arrival_rate
        lag = capacity.lag if whole else item.lag
        fitting = (number for number, (rate_left, lag_left) in enumerate(room) if rate <= rate_left and lag <= lag_left)
        chosen = next(fitting, len(room))
        if chosen == len(room):
            room.append((capacity.arrival_rate, capacity.lag))
        room[chosen] = (room[chosen][0] - rate, room[chosen][1] - lag)
    return len(room)
