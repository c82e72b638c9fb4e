"""What a group shows from outside: who its members are, how far behind it is in seconds, and what they can serve."""

from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future
from statistics import median
from typing import Any, Final

import numpy as np
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from numpy.typing import NDArray

from autoscaler.live.kafka import client_config
from contracts.clock import monotonic_s
from contracts.connection import Connection

Floats = NDArray[np.float64]

MAX_READINGS: Final = 900
MIN_BUSY_LAG_S: Final = 2.0
"""A member whose lag, just after its commit, is worth more than so many seconds of its own pace was not idle before."""
MAX_SAMPLES: Final = 50
MIN_SAMPLES: Final = 3
DEADLINE_S: Final = 5.0
STALE_AFTER_S: Final = 15.0
"""Members that were reported so long ago say nothing of now."""


class MemberReader:
    """Asks again at each look once the last question is answered."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._admin = AdminClient(client_config(connection))
        self._group = group
        self._topic = topic
        self._request: Future[Any] | None = None
        self._members: dict[str, frozenset[int]] | None = None
        self._answered_s = 0.0
        self.problem = ""
        """Why they are not known now; empty: they are, or are being asked for."""

    def read(self) -> dict[str, frozenset[int]] | None:
        """Return member → its partitions of the topic, as last told; None where nothing was told lately."""
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
        self._members = {
            one.member_id: frozenset(
                place.partition for place in one.assignment.topic_partitions if place.topic == self._topic
            )
            for one in members
        }
        self._answered_s, self.problem = monotonic_s(), "" if members else f"{self._group} has no members"


class LagClock:
    """Since when the oldest event waits that the group has not committed, by when the topic was so long."""

    def __init__(self) -> None:
        self._at_s: deque[float] = deque(maxlen=MAX_READINGS)
        self._ends: deque[Floats] = deque(maxlen=MAX_READINGS)

    def observe(self, at_s: float, ends: Floats) -> None:
        """Take in where the partitions end now. Where there are more of them than before, it begins anew."""
        if self._ends and len(self._ends[-1]) != len(ends):
            self._at_s.clear()
            self._ends.clear()
        self._at_s.append(at_s)
        self._ends.append(ends.copy())

    def oldest_age_s(self, committed: Floats) -> float:
        """Return the age of the oldest waiting event in seconds; at least so much where that is before all readings."""
        ends, at_s = np.array(self._ends), np.array(self._at_s)
        behind = [number for number, up_to in enumerate(committed.tolist()) if up_to < ends[-1, number] - 0.5]
        return max((float(at_s[-1] - np.interp(committed[one], ends[:, one], at_s)) for one in behind), default=0.0)


class CommittedRates:
    """μ of one member, learned from commits alone: what it commits between two commits while it is never idle.

    Who is idle commits what arrives, and that says nothing. told: events/s that an operator says; 0: learn.
    """

    def __init__(self, configured_rate: float) -> None:
        self._configured_rate = configured_rate
        self._last: dict[str, tuple[frozenset[int], float, float]] = {}
        """Member → its partitions, and when it was last seen to commit, and up to where in sum, while it was behind."""
        self._samples: deque[float] = deque(maxlen=MAX_SAMPLES)

    @property
    def service_rate(self) -> float | None:
        """Events/s of a typical member; None before enough was seen."""
        if self._configured_rate:
            return self._configured_rate
        return median(self._samples) if len(self._samples) >= MIN_SAMPLES else None

    def observe(self, at_s: float, owned: Mapping[str, frozenset[int]], committed: Floats, lags: Floats) -> None:
        """Take in one reading. owned: member → its partitions. done: committed, of each partition. lags: of each."""
        for member, partitions in owned.items():
            places = [one for one in partitions if one < len(committed)]
            up_to, behind = float(committed[places].sum()), float(lags[places].sum())
            before = self._last.get(member)
            if before is None or before[0] != partitions or up_to < before[2]:
                self._last[member] = (partitions, at_s, up_to)  # its first commit says only from when on to count
            elif up_to > before[2]:
                pace = (up_to - before[2]) / (at_s - before[1])
                self._last[member] = (partitions, at_s, up_to)
                if behind > MIN_BUSY_LAG_S * pace:
                    self._samples.append(pace)
        self._last = {member: known for member, known in self._last.items() if member in owned}
