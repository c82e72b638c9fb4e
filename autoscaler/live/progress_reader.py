"""Follows the progress topic: the newest report of each replica."""

import time
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

import msgspec
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from autoscaler.live.kafka import reader
from autoscaler.live.lateness import Lateness
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.progress import Progress, Round
from contracts.topics import Topic, qualified
from contracts.validation import UNDECODABLE

STALE_AFTER_S: Final = 2.0
"""Reports come every 250 ms; eight missing ones are no accident."""
_TAIL: Final = 2000
"""Reports to read back at the start: two minutes of four replicas. Older ones say nothing about the present."""
_AT_ONCE: Final = 1000
_ASK_AGAIN_S: Final = 0.1
_AWAY_S: Final = 1.0
"""Who has not listened for so long cannot say that others were silent: it was busy, or frozen."""

_decoder = msgspec.json.Decoder(Progress)


class ProgressReader:
    """Polled, never waiting: librdkafka fetches in the background, `poll` takes what has arrived."""

    def __init__(
        self, connection: Connection, *, deadline_s: float = 10.0, clock: Callable[[], float] = steady_s
    ) -> None:
        """Start reading a little before the end. Raises KafkaException when the topic cannot be reached in time."""
        topic = qualified(connection.namespace, Topic.PROGRESS)
        self._clock = clock
        self._newest: dict[str, Progress] = {}
        self._heard_s: dict[str, float] = {}
        """When the newest report of each replica arrived, by the time that was spent listening."""
        self._polled_s = clock()
        self._away_s = 0.0
        self._rounds: list[Round] = []
        self._lateness = Lateness(clock)
        self._consumer = Consumer(reader(connection, fetch_wait_max_ms=250))
        low, high = self._watermarks(TopicPartition(topic, 0), deadline_s)
        self._consumer.assign([TopicPartition(topic, 0, max(low, high - _TAIL))])
        self._unread_below = high
        self._read_to_end(deadline_s)

    def _watermarks(self, place: TopicPartition, deadline_s: float) -> tuple[int, int]:
        """Ask for first and next offset, again while the brokers are still finding a leader for a new topic."""
        give_up_s = steady_s() + deadline_s
        while True:
            try:
                low, high = self._consumer.get_watermark_offsets(place, timeout=deadline_s)
                return int(low), int(high)
            except KafkaException:
                if steady_s() >= give_up_s:
                    raise
            time.sleep(_ASK_AGAIN_S)  # a broker that has just started refuses at once; do not ask in a busy loop

    def _read_to_end(self, deadline_s: float) -> None:
        """Read what is there already, so that nobody decides on half the past."""
        give_up_s = steady_s() + deadline_s
        while self._unread_below > 0 and steady_s() < give_up_s:
            self._take(timeout_s=0.05)

    def poll(self) -> Mapping[str, Progress]:
        """Take what has arrived; return the newest report of each replica that ever reported."""
        self._take(timeout_s=0)
        return MappingProxyType(self._newest)

    def take_rounds(self) -> tuple[Round, ...]:
        """Return the rebalances that were reported since the last call, of all replicas."""
        taken, self._rounds = tuple(self._rounds), []
        return taken

    def take_late(self) -> dict[str, int]:
        """Return replica → events finished too late since the last call, of all that have reported since."""
        return self._lateness.take()

    def newest(self, replica: str) -> Progress | None:
        """Return the newest report of `replica`, however old."""
        return self._newest.get(replica)

    def age_s(self, replica: str) -> float:
        """Return for how long `replica` has said nothing, in seconds; infinite if it never did.

        Counted from the arrival of its newest report, while somebody listened: stamps of other clocks say nothing here.
        """
        heard_s = self._heard_s.get(replica)
        return float("inf") if heard_s is None else self._listened_s() - heard_s

    def highest_epoch(self) -> int:
        """Return the newest plan epoch that any replica says it has read; 0 without reports."""
        return max((report.epoch for report in self._newest.values()), default=0)

    def assigned_epochs(self) -> dict[str, int]:
        """Return replica → plan that its assignment was made from, of those whose newest report is not stale."""
        fresh = (name for name in self._newest if self.age_s(name) <= STALE_AFTER_S)
        return {name: self._newest[name].assigned_epoch for name in fresh}

    def pages(self) -> list[str]:
        """Return HOST:PORT of the metrics of each replica that has reported lately. May be called by another thread."""
        fresh = [report for name, report in dict(self._newest).items() if self.age_s(name) <= STALE_AFTER_S]
        return sorted(report.pages for report in fresh if report.pages)

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()

    def _listened_s(self) -> float:
        return self._clock() - self._away_s

    def _take(self, timeout_s: float) -> None:
        passed_s = self._clock() - self._polled_s
        self._away_s += passed_s if passed_s > _AWAY_S else 0.0
        for message in self._consumer.consume(_AT_ONCE, timeout_s):
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    self._unread_below = 0
                continue  # other errors: librdkafka goes on by itself, and old reports become stale
            if message.offset() + 1 >= self._unread_below:
                self._unread_below = 0  # while replicas report all the time, the end itself is never met
            try:
                report = _decoder.decode(message.value() or b"")
            except UNDECODABLE:
                continue  # it is no progress report
            self._rounds += report.rounds
            self._lateness.hear(report)
            self._newest[report.replica] = report
            self._heard_s[report.replica] = self._listened_s()
        self._polled_s = self._clock()
