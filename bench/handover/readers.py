"""What an experiment reads while it runs, joining no group: events finished, reports of replicas, offsets committed."""

import time
from collections.abc import Iterable, Mapping
from typing import Final

import msgspec
import numpy as np
from confluent_kafka import Consumer, KafkaException, TopicPartition

from autoscaler.live.kafka import reader
from autoscaler.live.progress_reader import ProgressReader
from bench.handover.evidence import UNKNOWN, IntArray, Row, Settled
from contracts.connection import Connection
from contracts.progress import Progress
from contracts.topics import PIPELINE_PARTITIONS, Group, Topic, qualified

NO_ENDS: Final = {"enable.partition.eof": False}
"""Nobody asks where a topic ends: to be told each time would only cost the machine."""
COMMITS_EVERY_S: Final = 0.3
COMMITS_DEADLINE_S: Final = 0.5


class TimelineReader:
    """Every event finished so far, and who finished an event of which partition last."""

    def __init__(self, connection: Connection) -> None:
        few_fetches = {"fetch_min_bytes": 20_000, "fetch_wait_max_ms": 50}  # the broker has other work
        self._consumer = Consumer(reader(connection, isolation_level="read_committed", **few_fetches) | NO_ENDS)
        topic = qualified(connection.namespace, Topic.PAYMENTS_SETTLED)
        self._consumer.assign([TopicPartition(topic, number, 0) for number in range(PIPELINE_PARTITIONS)])
        self._decoder = msgspec.json.Decoder(Settled)
        self._last: dict[tuple[int, str], int] = {}
        self._owner: dict[int, tuple[int, str]] = {}
        self.rows: list[Row] = []

    def poll(self, timeout_s: float) -> None:
        """Take what arrives within `timeout_s`."""
        for record in self._consumer.consume(2000, timeout_s):
            if record.error() is None:
                self._add(self._decoder.decode(record.value()).timeline)

    def _add(self, row: Row) -> None:
        self.rows.append(row)
        place = (row.partition, row.replica)
        self._last[place] = max(self._last.get(place, 0), row.done_us)
        self._owner[row.partition] = max(self._owner.get(row.partition, (0, "")), (row.done_us, row.replica))

    def last_done_us(self, partition: int, replica: str) -> int:
        """Return when `replica` last finished an event of `partition`; 0 for never."""
        return self._last.get((partition, replica), 0)

    def owners(self) -> dict[int, str]:
        """Partition → replica that finished its newest event."""
        return {partition: replica for partition, (_, replica) in self._owner.items()}

    def replicas(self) -> set[str]:
        """Return everybody who ever finished an event."""
        return {replica for _, replica in self._last}

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()


class Reports:
    """What replicas tell of themselves, and every round that one of them told of."""

    def __init__(self, connection: Connection) -> None:
        self._reader = ProgressReader(connection)
        self.newest: Mapping[str, Progress] = {}
        self.first_us: dict[str, int] = {}
        """When each reported for the first time: connected and about to join."""

    def poll(self) -> None:
        """Take what has arrived."""
        self.newest = self._reader.poll()
        for name, report in self.newest.items():
            self.first_us.setdefault(name, report.at_us)

    def owners(self, among: Iterable[str]) -> dict[int, str]:
        """Partition → replica, by the newest reports of those named: what is dead says nothing any more."""
        mine = [self.newest[name] for name in among if name in self.newest]
        return {partition: report.replica for report in mine for partition in report.partitions}

    def close(self) -> None:
        """Leave the broker."""
        self._reader.close()


class CommitReader:
    """Samples the group's committed offsets, to see that none ever goes back.

    By a consumer that never joins: an admin request whose connection drops can end the process.
    """

    def __init__(self, connection: Connection, partitions: int) -> None:
        group = {"group.id": qualified(connection.namespace, Group.PAYMENT)}
        self._consumer = Consumer(reader(connection) | NO_ENDS | group)
        topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._places = [TopicPartition(topic, number) for number in range(partitions)]
        self._samples: list[list[int]] = []
        self._due_s = 0.0

    def poll(self) -> None:
        """Take a sample, if it is time again. No answer: no sample."""
        if time.monotonic() < self._due_s:
            return
        self._due_s = time.monotonic() + COMMITS_EVERY_S
        try:
            found = self._consumer.committed(self._places, timeout=COMMITS_DEADLINE_S)
        except KafkaException:
            return  # a coordinator on the move; the next sample is compared with the last one
        self._samples.append([UNKNOWN if one.error or one.offset < 0 else one.offset for one in found])

    def samples(self) -> IntArray:
        """Return all of it, shape (samples, partitions)."""
        return np.array(self._samples, dtype=np.int64).reshape(-1, len(self._places))

    def close(self) -> None:
        """Leave the broker."""
        self._consumer.close()
