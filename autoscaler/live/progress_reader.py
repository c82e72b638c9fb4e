"""Follows the progress topic: the newest report of each replica, its late events, and by which plan it serves."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from autoscaler.live.kafka import reader_config
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.plan import PlanRecord
from contracts.progress import Progress, Rebalance, decode_progress
from contracts.topics import Topic, qualified
from contracts.validation import DECODE_ERRORS
from contracts.waiting import WaitTimeoutError, until

STALE_AFTER_S: Final = 2.0
"""Reports come every 250 ms; eight missing ones are no accident."""
LONGEST_PAUSE_S: Final = 60.0
"""Between two repetitions of a plan that a member does not take: each one costs the group a rebalance."""
_TAIL: Final = 2000
"""Reports to read back at the start: two minutes of four replicas. Older ones say nothing about the present."""
_AT_ONCE: Final = 1000
_ASK_AGAIN_S: Final = 0.1
_AWAY_S: Final = 1.0
"""A reader that has not listened for so long cannot say that others were silent: it was busy, or frozen."""


class ProgressReader:
    """Polled, never waiting: librdkafka fetches in the background, `poll` takes what has arrived."""

    def __init__(
        self, connection: Connection, *, deadline_s: float = 10.0, clock: Callable[[], float] = monotonic_s
    ) -> None:
        """Start reading a little before the end. Raises KafkaException when the topic cannot be reached in time."""
        place = TopicPartition(qualified(connection.namespace, Topic.PROGRESS), 0)
        self._clock = clock
        self._newest: dict[str, Progress] = {}
        self._heard_s: dict[str, float] = {}
        """When the newest report of each replica arrived, by the time that was spent listening."""
        self._polled_s = clock()
        self._away_s = 0.0
        self._rounds: list[Rebalance] = []
        self._lateness = Lateness(clock)
        self._consumer = Consumer(reader_config(connection, fetch_wait_max_ms=250))
        low, high = self._watermarks(place, deadline_s)
        self._consumer.assign([TopicPartition(place.topic, 0, max(low, high - _TAIL))])
        self._unread_below = high
        with suppress(WaitTimeoutError):  # decisions shall not rest on half the past
            until(
                lambda: self._unread_below == 0 or self._take(timeout_s=0.05),
                deadline_s,
                "the end of the topic",
                poll_s=0,
            )

    def _watermarks(self, place: TopicPartition, deadline_s: float) -> tuple[int, int]:
        """Ask for first and next offset, again while the brokers are still finding a leader for a new topic."""
        failures: list[KafkaException] = []

        def asked() -> tuple[int, int] | None:
            try:
                return self._consumer.get_watermark_offsets(place, timeout=deadline_s)  # type: ignore[no-any-return]
            except KafkaException as failed:
                failures.append(failed)
                return None

        try:
            return until(asked, deadline_s, "a leader of the topic", _ASK_AGAIN_S) or (0, 0)
        except WaitTimeoutError:
            raise failures[-1] from None

    def poll(self) -> Mapping[str, Progress]:
        """Take what has arrived; return the newest report of each replica that ever reported."""
        self._take(timeout_s=0)
        return MappingProxyType(self._newest)

    def take_rebalances(self) -> tuple[Rebalance, ...]:
        """Return the rebalances that were reported since the last call, of all replicas."""
        taken, self._rounds = tuple(self._rounds), []
        return taken

    def take_late_events(self) -> dict[str, int]:
        """Return replica → events finished too late since the last call, of all that have reported since."""
        return self._lateness.take()

    def newest(self, replica: str) -> Progress | None:
        """Return the newest report of `replica`, however old."""
        return self._newest.get(replica)

    def age_s(self, replica: str) -> float:
        """Return for how long `replica` has been silent, in seconds; infinite if it never reported.

        Counted from the arrival of its newest report, while the reader listened: other clocks' stamps say nothing here.
        """
        heard_s = self._heard_s.get(replica)
        return float("inf") if heard_s is None else self._listened_s() - heard_s

    def highest_epoch(self) -> int:
        """Return the newest plan epoch that any replica has read; 0 without reports."""
        return max((report.epoch for report in self._newest.values()), default=0)

    def assigned_epochs(self) -> dict[str, int]:
        """Return replica → plan that its assignment was made from, of those whose newest report is not stale."""
        return {report.replica: report.assigned_epoch for report in self._fresh()}

    def pages(self) -> list[str]:
        """Return HOST:PORT of the metrics of each replica that has reported lately. May be called by another thread."""
        return sorted(report.pages for report in self._fresh() if report.pages)

    def close(self) -> None:
        """Leave the brokers."""
        self._consumer.close()

    def _fresh(self) -> list[Progress]:
        return [report for name, report in dict(self._newest).items() if self.age_s(name) <= STALE_AFTER_S]

    def _listened_s(self) -> float:
        return self._clock() - self._away_s

    def _take(self, timeout_s: float) -> bool:
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
                report = decode_progress(message.value() or b"")
            except DECODE_ERRORS:
                continue  # it is no progress report
            self._rounds += report.recent_rebalances
            self._lateness.hear(report)
            self._newest[report.replica] = report
            self._heard_s[report.replica] = self._listened_s()
        self._polled_s = self._clock()
        return self._unread_below == 0


class Lateness:
    """Late events as replicas report them, from one observation to the next.

    It takes in every report: by the next observation a name may be another process, or a replica may have left.
    """

    def __init__(self, clock: Callable[[], float] = monotonic_s) -> None:
        self._clock = clock
        self._heard: dict[str, tuple[str, int]] = {}
        self._new: dict[str, int] = {}
        self._observed_s: float | None = None

    def hear(self, report: Progress) -> None:
        """Take in one report."""
        if report.late is None:
            return
        incarnation, before = self._heard.get(report.replica, ("", 0))
        if incarnation != report.incarnation:
            # One that has worked for no longer than since the last observation began since then.
            is_new = self._observed_s is not None and report.busy_us / 1e6 <= self._clock() - self._observed_s
            before = 0 if is_new else report.late
        self._heard[report.replica] = report.incarnation, report.late
        self._new[report.replica] = self._new.get(report.replica, 0) + max(0, report.late - before)

    def take(self) -> dict[str, int]:
        """Return replica → late events since the last call, of all that have reported since, whether they still run.

        At first none are new: they were late before the first observation.
        """
        new, self._new = self._new, {}
        if self._observed_s is None:
            new = dict.fromkeys(new, 0)
        self._observed_s = self._clock()
        return new


class Uptake:
    """Whether members take the newest plan: each of their reports names the plan of its assignment.

    within_s: for so long a member may stay on an older plan. took: called with the seconds from the moment a plan was
    written until every member served by it.
    """

    def __init__(self, within_s: float, clock: Callable[[], float], took: Callable[[float], None]) -> None:
        self._within_s = within_s
        self._clock = clock
        self._took = took
        self._epoch = 0
        self._since_s: float | None = None
        """When the newest plan was written; None once all have taken it, and for one that was found."""
        self._behind: dict[str, tuple[int, float]] = {}
        """Member → the older plan it serves by, and since when."""
        self._pause_s = within_s
        self._repeat_at_s = 0.0
        self.late: tuple[str, ...] = ()

    def look(self, plan: PlanRecord | None, epochs: Mapping[str, int]) -> None:
        """Take in the reports. epochs: member → plan of its assignment; a silent member is no evidence."""
        if plan is None:
            return
        self._epoch, now_s = plan.epoch, self._clock()
        behind = {name: epoch for name in plan.replicas if (epoch := epochs.get(name, plan.epoch)) < plan.epoch}
        self._behind = {
            name: known if (known := self._behind.get(name, (epoch, now_s)))[0] == epoch else (epoch, now_s)
            for name, epoch in behind.items()
        }
        self.late = tuple(name for name, (_, since_s) in self._behind.items() if now_s - since_s >= self._within_s)
        if not self.late:
            self._pause_s, self._repeat_at_s = self._within_s, 0.0
        if self._since_s is not None and not behind and epochs.keys() >= set(plan.replicas):
            self._took(now_s - self._since_s)
            self._since_s = None

    @property
    def repeat_is_due(self) -> bool:
        """Whether the plan should be written again now."""
        return bool(self.late) and self._clock() >= self._repeat_at_s

    def written(self, plan: PlanRecord) -> None:
        """A plan was written just now. While a member is late, the next repetition waits twice as long."""
        self._epoch, self._since_s = plan.epoch, self._clock()
        if self.late:
            self._repeat_at_s = self._clock() + self._pause_s
            self._pause_s = min(2 * self._pause_s, max(LONGEST_PAUSE_S, self._within_s))

    def why_late(self) -> str:
        """Return which members are late; empty when none is."""
        stays = ", ".join(f"{name} (serves by {self._behind[name][0]})" for name in self.late)
        return f"plan {self._epoch} is not taken within {self._within_s:g} s by {stays}" if stays else ""
