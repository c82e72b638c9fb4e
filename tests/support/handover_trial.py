"""A Payment group under load that meets a fault, and what must hold when it is over."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from commit_history import assert_no_commit_goes_back
from kafka_helpers import create_topics, produce, wait_for
from payment_group import PaymentGroup, request
from payment_load import PaymentLoad, assert_in_order, assert_repeats_from

from contracts.events import PaymentSettled
from contracts.topics import Topic

RATE = 100
PARTITIONS = 6
NAMES = ["payment-0", "payment-1", "payment-2"]
SPREAD = {partition: NAMES[partition % 3] for partition in range(PARTITIONS)}
SESSION_S = 4.0
"""No shorter: on a busy machine the well would be taken for dead, too."""
BESIDE = 1_000_000
"""First number of the payments that do not come from the load."""


@dataclass
class Trial:
    """Three replicas that carry out SPREAD and serve 100 payments/s."""

    group: PaymentGroup
    load: PaymentLoad
    extra: set[str] = field(default_factory=set)
    """Orders that were placed beside the load."""

    def wait_until_serving(self) -> None:
        """Let the group serve half a second of the load."""
        before = len(self.load.orders)
        wait_for(lambda: len(self.load.orders) >= before + RATE / 2, "the load goes on")
        wait_for(lambda: self.group.read_progress() and self.served() >= before, "the group serves")

    def ask(self, count: int, partition: int) -> None:
        """Place payments beside the load."""
        first = BESIDE + self.group.produced
        asked = [request(number) for number in range(first, first + count)]
        self.group.produced += count
        self.extra |= {one.order_id for one in asked}
        values = [msgspec.json.encode(one) for one in asked]
        produce(self.group.kafka, self.group.namespace, Topic.PAYMENTS_REQUESTED, values, partition=partition)

    def served(self) -> int:
        return sum(each.processed for each in self.group.progress.values())

    def committed_of(self, name: str) -> dict[int, int]:
        """Return the partitions that SPREAD gives to `name` → the group's offsets."""
        offsets = self.group.committed()
        return {partition: offsets.get(partition, 0) for partition, owner in SPREAD.items() if owner == name}

    def finish(self, *, lost_at: dict[int, int] | None = None) -> list[PaymentSettled]:
        """End the load. Nothing may be lost or out of order, and no commit may have gone back.

        lost_at: partitions of a replica that was lost → the group's offsets then; what lay below is served once, as are
        all other partitions.
        """
        self.load.finish()
        asked = set(self.load.orders) | self.extra
        settled = wait_for(lambda: self._all_of(asked), "every payment is settled", every_s=0.2)
        assert_in_order(settled)
        ends = {p: 1 + max(one.timeline.offset for one in settled if one.timeline.partition == p) for p in SPREAD}
        wait_for(lambda: self.group.committed().items() >= ends.items(), "every event is committed")
        assert_no_commit_goes_back(self.group.kafka, self.group.group)
        assert_repeats_from(settled, lost_at or {})
        return settled

    def _all_of(self, asked: set[str]) -> list[PaymentSettled] | None:
        settled = self.load.settled()
        return settled if {one.order_id for one in settled} >= asked else None


@contextmanager
def trial(
    kafka: str, namespace: str, folder: Path, *, session_s: float = SESSION_S, **settings: object
) -> Iterator[Trial]:
    """Start three replicas; `settings` are those of the replica, such as delivery."""
    create_topics(kafka, namespace, PARTITIONS)
    told = {f"TAILPACK_{name.upper()}": str(value) for name, value in settings.items()}
    with PaymentGroup(kafka, namespace, PARTITIONS, folder, session_s=session_s, settings=told) as group:
        group.plan(NAMES, SPREAD)
        group.start(*NAMES)
        group.wait_for_owners(SPREAD)
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            yield Trial(group, load)
