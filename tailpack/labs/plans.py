"""Writes plans by hand, as the autoscaler would, and remembers who owns what under the newest one."""

import time
from collections.abc import Iterable, Mapping
from types import MappingProxyType

import msgspec
from confluent_kafka import Producer

from bench.handover.evidence import Move
from contracts.connection import Connection
from contracts.plan import Eviction, PlanRecord
from contracts.topics import Group, Topic, qualified
from tailpack.errors import TailpackError
from tailpack.labs.clients import producer

DEADLINE_S = 10.0


class Plans:
    """The plan log of one experiment, which is its only writer."""

    def __init__(self, connection: Connection) -> None:
        self._producer = Producer(producer(connection))
        self._topic = qualified(connection.namespace, Topic.PLANS)
        self._key = qualified(connection.namespace, Group.PAYMENT).encode()
        self._assignment: dict[int, str] = {}
        self.replicas: tuple[str, ...] = ()
        self.epoch = 0

    @property
    def assignment(self) -> Mapping[int, str]:
        """Partition → replica under the newest plan, or as assumed since."""
        return MappingProxyType(self._assignment)

    def held_by(self, replica: str) -> list[int]:
        """Return the partitions of `replica`, ascending."""
        return sorted(partition for partition, owner in self._assignment.items() if owner == replica)

    def spread(self, partitions: Iterable[int], among: Iterable[str]) -> dict[int, str]:
        """Return who takes which of these partitions, so that the least loaded gets the next."""
        counts = {name: len(self.held_by(name)) for name in among}
        taken: dict[int, str] = {}
        for number in partitions:
            least = min(counts, key=lambda name: (counts[name], name))
            counts[least] += 1
            taken[number] = least
        return taken

    def write(
        self,
        replicas: Iterable[str],
        assignment: Mapping[int, str],
        evictions: tuple[Eviction, ...] = (),
        reason: str = "an experiment wants it",
    ) -> int:
        """Write the next plan; return its time. Raises TailpackError when the broker does not take it in 10 s."""
        self.epoch += 1
        record = PlanRecord(
            epoch=self.epoch,
            at_us=time.time_ns() // 1000,
            replicas=tuple(replicas),
            assignment=dict(assignment),
            reason=reason,
            evictions=evictions,
        )
        self._producer.produce(self._topic, msgspec.json.encode(record), self._key)
        if self._producer.flush(DEADLINE_S):
            raise TailpackError(f"plan {self.epoch} was not taken by the broker within {DEADLINE_S:g} s")
        self.replicas, self._assignment = record.replicas, dict(assignment)
        return record.at_us

    def moves(self, changes: Mapping[int, str]) -> tuple[Move, ...]:
        """Return what `changes` would move, against the newest plan."""
        owners = self._assignment
        wanted = sorted(changes.items())
        return tuple(Move(number, owners[number], target) for number, target in wanted if owners[number] != target)
