"""The two-dimensional first fit of the 2022 predecessor (Ezzeddine, Baude, Huet, ICCBDC 2022): it decides the count."""

from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapreplace

from autoscaler.model import Decision, GroupObservation
from autoscaler.packing.bins import Bin, Capacity, Item
from autoscaler.packing.first_fit_2022 import first_fit_decreasing
from autoscaler.policies.planning import change, hold, items_of, number, plan_for, unowned
from autoscaler.policies.scalings import Scalings
from autoscaler.policies.settings import PolicySettings
from contracts.settings import Settings, setting


@dataclass(frozen=True, kw_only=True)
class FirstFit2022Settings(Settings):
    """What the paper fixed. Raises ValueError for a value out of range."""

    cool_down_s: float = setting(30.0, "s", least=0)
    """Seconds without a decision after any change of the count. ICCBDC 2022: 30, at W = 5 s."""


class FirstFit2022:
    """As many replicas as first-fit decreasing needs with all of μ and μ·W; partitions are spread at each change.

    Between two changes of the count nothing moves: the paper reassigns only when it scales.
    """

    name = "ffd-2022"

    def __init__(self, settings: PolicySettings, options: FirstFit2022Settings | None = None) -> None:
        self.settings = settings
        self.options = options or FirstFit2022Settings()
        self._scalings = Scalings(self.options.cool_down_s)

    def decide(self, observation: GroupObservation) -> Decision:
        """Scale to the count of the packing, unless it is too early; give owners to partitions without one."""
        self._scalings.observe(observation)
        now = observation.requested_replicas
        items = items_of(observation)
        capacity = Capacity.of_replica(observation.service_rate, self.settings.latency_target_s, 1.0)
        wanted = max(1, len(first_fit_decreasing(items, capacity)))
        total = Bin(items)
        why = (
            f"{number(total.arrival_rate)} events/s and {number(total.lag)} events of lag fit {wanted} with "
            f"{number(capacity.arrival_rate)} events/s (μ) and {number(capacity.lag)} events (μ·W) each"
        )
        since_s = observation.at_s - self._scalings.last_s
        if wanted != now and now and since_s < self.options.cool_down_s:
            so_far = f"{number(since_s)} of {number(self.options.cool_down_s)} s"
            why, wanted = f"{why}, but cooling down, {so_far}", now
        if wanted == now and not unowned(observation):
            return hold(observation, f"{why}: hold {now}")
        if wanted == now:
            why = unowned(observation)
        bins = fewest_partitions(items, wanted)
        return change(observation, plan_for(observation, bins, self.settings.replica_prefix, at_least=wanted), why)


def fewest_partitions(items: Sequence[Item], count: int) -> tuple[Bin, ...]:
    """Spread `items` over `count` bins: largest λ first, each into the bin with the fewest items, then the least λ."""
    contents: list[list[Item]] = [[] for _ in range(count)]
    heap = [(0, 0.0, index) for index in range(count)]  # items held, λ, index: sorted already, so a heap
    for item in sorted(items, key=lambda one: (-one.arrival_rate, one.partition)):
        held, arrival_rate, index = heap[0]
        contents[index].append(item)
        heapreplace(heap, (held + 1, arrival_rate + item.arrival_rate, index))
    return tuple(Bin(tuple(content)) for content in contents)
