"""Owners of the partitions of a simulated group, as the rebalance models change them."""

from collections.abc import Sequence

from autoscaler.simulator.arrivals import Agenda
from autoscaler.simulator.engine import NO_OWNER, Engine


class Owners:
    """Owners of the partitions. Only this class attaches and detaches partitions.

    A dead replica that was not evicted yet can get partitions. These are not served until it is evicted.
    """

    def __init__(self, engine: Engine, agenda: Agenda) -> None:
        self._engine, self._agenda = engine, agenda
        self._busy_us: dict[int, int] = {}
        """Replica → time at which it finishes the last event of the partitions taken from it, µs."""
        self._evicted_us: dict[int, int] = {}
        """Dead replica → time of its eviction, µs."""

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run in which `owners` are in place."""
        self._holder = list(owners)
        """By partition: the replica that it is attached to, or NO_OWNER."""
        self._free_us = [0] * len(owners)
        """By partition: time at which its last owner releases it, µs. It is in the future while that owner is busy."""
        for partition, owner in enumerate(owners):
            self._engine.attach(partition, owner)

    def on_death(self, replica: int, evicted_us: int) -> None:
        """Record a death. The replica's partitions become free when it is evicted."""
        self._evicted_us[replica] = evicted_us
        for partition in self._held_by(replica):
            self._holder[partition] = NO_OWNER
            self._free_us[partition] = evicted_us

    def _held_by(self, replica: int) -> list[int]:
        return [partition for partition, holder in enumerate(self._holder) if holder == replica]

    def _detach(self, partition: int) -> None:
        owner = self._holder[partition]
        free_us = self._engine.in_service_until_us(partition)
        self._engine.detach(partition)
        self._holder[partition] = NO_OWNER
        self._free_us[partition] = free_us
        self._busy_us[owner] = max(free_us, self._busy_us.get(owner, 0))

    def _attach(self, partition: int, owner: int) -> None:
        if owner in self._evicted_us:
            self._free_us[partition] = max(self._free_us[partition], self._evicted_us[owner])
            return
        self._engine.attach(partition, owner)
        self._holder[partition] = owner
