"""Observations of an experiment: served events, steps and committed offsets. Times are µs since 1970."""

import time
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from confluent_kafka import Consumer, KafkaException, TopicPartition

from autoscaler.live.progress_reader import ProgressReader
from contracts.connection import Connection
from contracts.preflight import client_config
from contracts.progress import Progress
from contracts.topics import PIPELINE_PARTITIONS, Group, Topic, qualified

IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
Events = npt.NDArray[np.void]
"""Array of finished events with the columns of FINISHED, sorted by `done_us`."""
FINISHED: Final = np.dtype(
    [("intended_us", "i8"), ("done_us", "i8"), ("partition", "i8"), ("offset", "i8"), ("replica", "U32")]
)
UNKNOWN: Final = -1
"""Stands for a committed offset that did not exist or that the broker did not return."""
COMMITS_EVERY_S, ANSWER_S = 0.3, 0.5


class Row(msgspec.Struct, frozen=True, gc=False):
    """The needed fields of a timeline. Decoding all fields would cost too much CPU."""

    intended_us: int
    done_us: int
    partition: int
    offset: int
    replica: str


class Settled(msgspec.Struct, frozen=True, gc=False):
    """The only field that is needed of a record in payments.settled."""

    timeline: Row


def in_order(rows: Iterable[Row]) -> Events:
    """Return the rows as an array in order of `done_us`."""
    events = np.array([msgspec.structs.astuple(row) for row in rows], dtype=FINISHED)
    return events[np.argsort(events["done_us"], kind="stable")]


def first_completions(served: Events) -> Events:
    """Return the first completion of each event, without duplicates."""
    _, first = np.unique(np.stack((served["partition"], served["offset"])), axis=1, return_index=True)
    return served[np.sort(first)]


@dataclass(frozen=True, slots=True)
class Step:
    """One change made to the group while it served."""

    kind: str
    at_us: int
    """Time at which the plan was written, the signal was sent or the process was started."""
    until_us: int
    """End of the step; later events do not belong to it."""
    moves: Mapping[int, str] | None = None
    """Moves of the plan: partition → new owner. None: the step has no plan, so that moves are found in the events."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """All observations of one experiment."""

    ends: IntArray
    """Number of events in the broker, by partition."""
    served: Events
    steps: tuple[Step, ...]
    quiet: tuple[tuple[int, int], ...]
    """Periods (from, to) without steps."""
    committed: IntArray
    """Committed offsets over time, shape (samples, partitions). UNKNOWN stands for a missing offset."""
    claims: tuple["Claim", ...] = ()
    """Reported partitions, by time."""


class Claim(NamedTuple):
    """Partitions that a replica owns from `at_us` on, by its own report."""

    at_us: int
    replica: str
    partitions: frozenset[int]


class Observer:
    """Reads finished events, progress reports and committed offsets, without joining a group."""

    def __init__(self, connection: Connection, partitions: int, stack: ExitStack) -> None:
        config = client_config(connection, group_id=qualified(connection.namespace, Group.PAYMENT))
        few_fetches = {"fetch.min.bytes": 20_000, "fetch.wait.max.ms": 50}  # save CPU of the broker
        self._timeline = Consumer(config | {"enable.auto.commit": False} | few_fetches)
        settled = qualified(connection.namespace, Topic.PAYMENTS_SETTLED)
        self._timeline.assign([TopicPartition(settled, number, 0) for number in range(PIPELINE_PARTITIONS)])
        self._progress = ProgressReader(connection)
        self._progress.is_ours = self._note  # it is called for every report
        self.claims: dict[str, list[Claim]] = {}
        """Replica → its partitions over time, with an entry for each change."""
        self._commits = Consumer(config | {"enable.auto.commit": False})
        for each in (self._timeline, self._progress, self._commits):
            stack.callback(each.close)
        topic = qualified(connection.namespace, Topic.PAYMENTS_REQUESTED)
        self._places = [TopicPartition(topic, number) for number in range(partitions)]
        self._due_s, self._decoder = 0.0, msgspec.json.Decoder(Settled)
        self._last: dict[tuple[int, str], int] = {}
        self.rows: list[Row] = []
        self.committed: list[list[int]] = []
        self.reports: Mapping[str, Progress] = {}
        self.first_us: dict[str, int] = {}
        """Replica → time of its first report, which it sends after connecting and before joining the group."""

    def poll(self, timeout_s: float) -> None:
        """Read what arrives within `timeout_s`."""
        for record in self._timeline.consume(2000, timeout_s):
            if record.error() is None:
                row = self._decoder.decode(record.value()).timeline
                self.rows.append(row)
                place = (row.partition, row.replica)
                self._last[place] = max(self._last.get(place, 0), row.done_us)
        self.reports = self._progress.poll()
        for name, report in self.reports.items():
            self.first_us.setdefault(name, report.at_us)
        if time.monotonic() >= self._due_s:
            self._due_s = time.monotonic() + COMMITS_EVERY_S
            try:
                found = self._commits.committed(self._places, timeout=ANSWER_S)
            except KafkaException:
                return  # the coordinator is moving; skip this sample
            self.committed.append([UNKNOWN if place.error or place.offset < 0 else place.offset for place in found])

    def _note(self, report: Progress) -> bool:
        claims = self.claims.setdefault(report.replica, [Claim(0, report.replica, frozenset())])
        if claims[-1].partitions != (partitions := frozenset(report.partitions)) and report.at_us > claims[-1].at_us:
            claims.append(Claim(report.at_us, report.replica, partitions))
        return True

    def ends(self) -> IntArray:
        """Return the present end offset of each partition: its number of events so far. Raises KafkaException."""
        marks = (self._commits.get_watermark_offsets(place, timeout=10 * ANSWER_S) for place in self._places)
        return np.array([high for _, high in marks])

    def last_done_us(self, partition: int, replica: str) -> int:
        """Return the time at which `replica` last finished an event of `partition`; 0: never."""
        return self._last.get((partition, replica), 0)

    def owners(self) -> dict[int, str]:
        """Return partition → replica that finished its newest event."""
        return dict(sorted(self._last, key=lambda place: self._last[place]))

    def reported_owners(self, among: Iterable[str]) -> dict[int, str]:
        """Return partition → owner, according to the newest reports of these replicas."""
        reports = [self.reports[name] for name in among if name in self.reports]
        return {partition: report.replica for report in reports for partition in report.partitions}
