"""What a way to deliver plans is, and what all of them keep in mind."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from autoscaler.simulator.engine import NOBODY, Engine


@dataclass(frozen=True, slots=True)
class Handover:
    """One partition that changed its owner. Times in µs since the start of the run."""

    partition: int
    free_us: int
    """When the last event at the owner before was finished, or that owner was given up for dead."""
    attached_us: int
    """When the next event could start."""
    replica: int
    """Number of the new owner."""


Completed = Callable[[Handover], None]
"""Told of each handover when it is complete."""


class PlanDelivery(Protocol):
    """Carries owners to the replicas. Owners are replica numbers by partition, of replicas that could serve.

    members: all replicas that belong to the group then, owners or not.
    """

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run: the owners are in place at once."""
        ...

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """From now on work towards `owners`; that replaces what was wanted before."""
        ...

    def lost(self, replica: int, evicted_us: int) -> None:
        """Take note that `replica` died now; the group takes it for alive until `evicted_us`."""
        ...

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished all it was given; None while it holds something or is to get something."""
        ...


class Holdings:
    """Who serves which partition. The one place from which deliveries attach and detach.

    A replica that died and is believed alive can be given partitions: nobody serves them until it is evicted.
    """

    def __init__(self, engine: Engine, owners: Sequence[int], completed: Completed) -> None:
        """Attach every partition to its first owner."""
        self._engine = engine
        self.holder = list(owners)
        """By partition: the replica that it is attached to, or NOBODY."""
        self._before = list(owners)
        self.free_us = [0] * len(owners)
        """By partition: when its last owner lets go of it; later than now while that one finishes an event of it."""
        self.busy_us: dict[int, int] = {}
        """Replica → when it finishes the last event of what was taken from it."""
        self.evicted_us: dict[int, int] = {}
        """Dead replica → when the group stops to take it for alive."""
        self._completed = completed
        for partition, owner in enumerate(owners):
            engine.attach(partition, owner)

    def stop(self, partition: int) -> None:
        """Detach `partition` now; an event of it in service is finished first."""
        owner = self.holder[partition]
        free_us = self._engine.in_service_until_us(partition)
        self._engine.detach(partition)
        self.holder[partition] = NOBODY
        self.free_us[partition] = free_us
        self.busy_us[owner] = max(free_us, self.busy_us.get(owner, 0))

    def start(self, partition: int, owner: int) -> None:
        """Attach `partition`, which is free, to `owner` now."""
        if owner in self.evicted_us:
            self.free_us[partition] = max(self.free_us[partition], self.evicted_us[owner])
            return
        self._engine.attach(partition, owner)
        self.holder[partition] = owner
        if owner != self._before[partition]:
            self._before[partition] = owner
            self._completed(Handover(partition, self.free_us[partition], self._engine.now_us, owner))

    def lost(self, replica: int, evicted_us: int) -> list[int]:
        """Take note of a death; return the partitions that nobody serves since. They are free when it is evicted."""
        self.evicted_us[replica] = evicted_us
        orphans = [partition for partition, holder in enumerate(self.holder) if holder == replica]
        for partition in orphans:
            self.holder[partition] = NOBODY
            self.free_us[partition] = evicted_us
        return orphans

    def gone(self, replica: int) -> bool:
        """Tell whether the group knows that `replica` is dead."""
        return self.evicted_us.get(replica, self._engine.now_us + 1) <= self._engine.now_us
