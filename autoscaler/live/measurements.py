"""Measures a group from outside: its members, and the service rate of a member."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from statistics import median
from typing import Any, Final

import numpy as np
from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from numpy.typing import NDArray

from autoscaler.live.offsets import OffsetReader
from autoscaler.ports import NotReadyError
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.plan import PLANNER
from contracts.preflight import client_config
from contracts.waiting import Stop

Floats = NDArray[np.float64]

MIN_BUSY_LAG_S: Final = 2.0
"""A member counts as busy between two commits if its lag after both exceeds this many seconds of its own rate."""
MAX_SAMPLES: Final = 50
MIN_SAMPLES: Final = 3
DEADLINE_S: Final = 5.0
STALE_AFTER_S: Final = 15.0
"""Age at which a member list is too old to use."""
RATE_INTERVAL_S: Final = 0.5  # between two readings of the offsets


class MemberReader:
    """Reads the members of a group in the background. Each read starts a new request once the last one is answered."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._admin = AdminClient(client_config(connection))
        self._group, self._topic, self.name = group, topic, f"{group} on {topic}"
        self._request: Future[Any] | None = None
        self._members: dict[str, frozenset[int]] | None = None
        self._answered_s = 0.0
        self.problem = ""
        """Why the members are unknown; empty: they are known, or a request is running."""

    def read(self) -> dict[str, frozenset[int]] | None:
        """Return member → its partitions of the topic; None: no recent answer."""
        self._admin.poll(0)
        if self._request is not None and self._request.done():
            self._read_answer(self._request)
            self._request = None
        if self._request is None:
            self._request = self._admin.describe_consumer_groups([self._group], request_timeout=DEADLINE_S)[self._group]
        return self._members if monotonic_s() - self._answered_s < STALE_AFTER_S else None

    def _read_answer(self, answer: "Future[Any]") -> None:
        try:
            members = answer.result(0).members
        except KafkaException as failed:
            self.problem = f"{self._group}: {failed.args[0].str()}"
            return
        members = [one for one in members if one.client_id != PLANNER]  # it has no partitions, and serves none
        self._members = readers_of(self._topic, {m.member_id: m.assignment.topic_partitions for m in members})
        missing = f"{self._group} has no members that read {self._topic}"
        self._answered_s, self.problem = monotonic_s(), "" if self._members else missing


def readers_of(topic: str, places: Mapping[str, Sequence[TopicPartition]]) -> dict[str, frozenset[int]]:
    """Return member → its partitions of `topic`. Idle members count unless all others read only other topics."""
    own = {member: frozenset(at.partition for at in held if at.topic == topic) for member, held in places.items()}
    idle_count = any(own.values()) or not any(places.values())
    return {member: read for member, read in own.items() if read or (idle_count and not places[member])}


class CommittedRates:
    """Learns a member's service rate (μ) from commits while it is busy. An idle member commits as events arrive.

    on_busy: called with a busy member, its committed events, and the seconds in which it served them.
    """

    def __init__(self, on_busy: Callable[[str, float, float], None] = lambda *_: None) -> None:
        self._on_busy = on_busy
        self._last: dict[str, tuple[frozenset[int], float, float, float]] = {}
        """Member → its partitions, time of its last commit, and sums of its committed offsets and lags then."""
        self._samples: deque[float] = deque(maxlen=MAX_SAMPLES)
        self.commit_intervals_s: deque[float] = deque([np.inf] * MIN_SAMPLES, maxlen=MAX_SAMPLES)
        """Times between two commits of a member; infinite until enough are known."""

    @property
    def service_rate(self) -> float | None:
        """Service rate of a typical member, events/s; None: fewer than three samples."""
        return median(self._samples) if len(self._samples) >= MIN_SAMPLES else None

    def observe(self, at_s: float, owned: Mapping[str, frozenset[int]], committed: Floats, lags: Floats) -> None:
        """Add one reading. owned: member → its partitions. committed, lags: by partition, events."""
        for member, partitions in owned.items():
            known = [partition for partition in partitions if partition < len(committed)]
            total, lag = float(committed[known].sum()), float(lags[known].sum())
            before = self._last.get(member)
            if before is None or before[0] != partitions or total != before[2]:
                self._last[member] = (partitions, at_s, total, lag)  # the first commit only starts the clock
            if before is not None and before[0] == partitions and total > before[2]:
                self.commit_intervals_s.append(at_s - before[1])
                rate = (total - before[2]) / (at_s - before[1])
                if min(lag, before[3]) > MIN_BUSY_LAG_S * rate:
                    self._samples.append(rate)
                    self._on_busy(member, total - before[2], at_s - before[1])
        self._last = {member: commit for member, commit in self._last.items() if member in owned}


def observe_rate(
    connection: Connection, topic: str, group: str, seconds: float, stop: Stop
) -> tuple[float | None, str]:
    """Return the service rate of a busy member (events/s), and why it is unknown: None, and the reason.

    The group is observed for `seconds`, or until `stop` is set. Nothing is written, joined or committed.
    """
    config = client_config(connection, group_id=group, enable_auto_commit=False)
    offsets = OffsetReader(lambda level: Consumer(config | {"isolation.level": level}), topic=topic, is_foreign=True)
    members, rates = MemberReader(connection, group, topic), CommittedRates()
    until_s, problem = monotonic_s() + seconds, ""
    try:
        while monotonic_s() < until_s and not stop.is_set():
            try:
                at_s, found = offsets.read()
            except NotReadyError as error:
                problem = str(error)
            else:
                places = [(one.end, one.committed) for one in found]
                known = {number for number, place in enumerate(places) if None not in place}
                ends, committed = np.array([(end or 0, done or 0) for end, done in places], dtype=np.float64).T
                owned = {member: read & known for member, read in (members.read() or {}).items()}
                rates.observe(at_s, owned, committed, ends - committed)
                problem = "" if known else f"{group} has no committed offset of {topic}"
            stop.wait(RATE_INTERVAL_S)
    finally:
        offsets.close()
    idle = f"no member of {group} was behind for several commits in {seconds:g} s"
    return rates.service_rate, "" if rates.service_rate else problem or members.problem or idle
