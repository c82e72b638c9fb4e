"""Writes plans by hand, as the autoscaler would, and remembers who owns what under the newest one."""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
from confluent_kafka import Producer

from bench import BenchError
from bench.handover.evidence import Move
from contracts.clock import now_us
from contracts.connection import Connection
from contracts.plan import Eviction, PlanRecord
from contracts.topics import Group, Topic, qualified

DEADLINE_S: Final = 10.0


class Plans:
    """The plan log of one experiment, which is its only writer."""

    def __init__(self, connection: Connection, producer: Producer) -> None:
        self._producer = producer
        self._topic = qualified(connection.namespace, Topic.PLANS)
        self._key = qualified(connection.namespace, Group.PAYMENT).encode()
        self.assignment: Mapping[int, str] = {}
        """Partition → replica under the newest plan."""
        self.replicas: tuple[str, ...] = ()
        self.epoch = 0

    def held_by(self, replica: str) -> list[int]:
        """Return the partitions of `replica`, ascending."""
        return sorted(partition for partition, owner in self.assignment.items() if owner == replica)

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
        changes: Mapping[int, str],
        replicas: Iterable[str] | None = None,
        evictions: tuple[Eviction, ...] = (),
    ) -> tuple[int, tuple[Move, ...]]:
        """Write the newest plan with `changes`, and with other replicas where told; return its time and what it moves.

        Raises BenchError when the broker does not take it in 10 s.
        """
        before, assignment = self.assignment, {**self.assignment, **changes}
        record = PlanRecord(
            epoch=self.epoch + 1,
            at_us=now_us(),
            replicas=self.replicas if replicas is None else tuple(replicas),
            assignment=assignment,
            reason="an experiment wants it",
            evictions=evictions,
        )
        self._producer.produce(self._topic, msgspec.json.encode(record), self._key)
        if self._producer.flush(DEADLINE_S):
            raise BenchError(f"plan {record.epoch} was not taken by the broker within {DEADLINE_S:g} s")
        self.epoch, self.replicas, self.assignment = record.epoch, record.replicas, assignment
        moves = (Move(one, before[one], target) for one, target in sorted(changes.items()) if one in before)
        return record.at_us, tuple(move for move in moves if move.source != move.target)
