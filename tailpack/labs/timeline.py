"""Follows payments.settled: which replica finished which event when."""

from collections.abc import Sequence
from typing import Final

import msgspec
from confluent_kafka import Consumer, TopicPartition

from bench.handover.evidence import Row, Served, as_served
from contracts.connection import Connection
from contracts.topics import PIPELINE_PARTITIONS, Topic, qualified
from tailpack.labs.clients import reader

AT_ONCE: Final = 2000


class _Times(msgspec.Struct):
    intended_us: int
    done_us: int
    partition: int
    offset: int
    replica: str


class _Settled(msgspec.Struct):
    """As much of contracts.events.PaymentSettled as is needed: decoding the rest would cost the machine."""

    timeline: _Times


_decoder = msgspec.json.Decoder(_Settled)


class Timeline:
    """Every record so far, and who finished an event of which partition last."""

    def __init__(self, connection: Connection) -> None:
        topic = qualified(connection.namespace, Topic.PAYMENTS_SETTLED)
        few_fetches = {"fetch_min_bytes": 20_000, "fetch_wait_max_ms": 50}  # the broker has other work
        self._consumer = Consumer(reader(connection, isolation_level="read_committed", **few_fetches))
        self._topic = topic
        self._next = dict.fromkeys(range(PIPELINE_PARTITIONS), 0)
        self.go_on()
        self._rows: list[Row] = []
        self._last: dict[tuple[int, str], int] = {}
        self._owner: dict[int, tuple[int, str]] = {}

    def go_on(self) -> None:
        """Read on behind the last record taken in. After Ctrl-C: it may have come between a fetch and its records."""
        self._consumer.assign([TopicPartition(self._topic, number, offset) for number, offset in self._next.items()])

    def poll(self, timeout_s: float) -> None:
        """Take what arrives within `timeout_s`."""
        for record in self._consumer.consume(AT_ONCE, timeout_s):
            if record.error() is None:
                times = _decoder.decode(record.value()).timeline
                self._next[record.partition()] = record.offset() + 1
                self._add(Row(times.intended_us, times.done_us, times.partition, times.offset, times.replica))

    def _add(self, row: Row) -> None:
        self._rows.append(row)
        place = (row.partition, row.replica)
        self._last[place] = max(self._last.get(place, 0), row.done_us)
        self._owner[row.partition] = max(self._owner.get(row.partition, (0, "")), (row.done_us, row.replica))

    def __len__(self) -> int:
        return len(self._rows)

    def since(self, row: int) -> Sequence[Row]:
        """Return the records from number `row` on, as they arrived."""
        return self._rows[row:]

    def last_done_us(self, partition: int, replica: str) -> int:
        """Return when `replica` last finished an event of `partition`; 0 for never."""
        return self._last.get((partition, replica), 0)

    def owners(self) -> dict[int, str]:
        """Partition → replica that finished its newest event."""
        return {partition: replica for partition, (_, replica) in self._owner.items()}

    def replicas(self) -> set[str]:
        """Return everybody who ever finished an event."""
        return {replica for _, replica in self._last}

    def served(self) -> Served:
        """Return everything as columns."""
        return as_served(self._rows)

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()
