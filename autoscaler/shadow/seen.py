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

KEPT: Final = 900
BUSY_S: Final = 2.0
"""A member whose lag, just after its commit, is worth more than so many seconds of its own pace was not idle before."""
SAMPLES: Final = 50
ENOUGH: Final = 3
DEADLINE_S: Final = 5.0
STALE_S: Final = 15.0
"""Members that were reported so long ago say nothing of now."""


class MemberReader:
    """Asks again at each look once the last question is answered."""

    def __init__(self, connection: Connection, group: str, topic: str) -> None:
        self._admin = AdminClient(client_config(connection))
        self._group = group
        self._topic = topic
        self._asked: Future[Any] | None = None
        self._known: dict[str, frozenset[int]] | None = None
        self._known_s = 0.0
        self.trouble = ""
        """Why they are not known now; empty: they are, or are being asked for."""

    def look(self) -> dict[str, frozenset[int]] | None:
        """Return member → its partitions of the topic, as last told; None where nothing was told lately."""
        self._admin.poll(0)
        if self._asked is not None and self._asked.done():
            self._take(self._asked)
            self._asked = None
        if self._asked is None:
            self._asked = self._admin.describe_consumer_groups([self._group], request_timeout=DEADLINE_S)[self._group]
        return self._known if monotonic_s() - self._known_s < STALE_S else None

    def _take(self, answer: "Future[Any]") -> None:
        try:
            members = answer.result(0).members
        except KafkaException as failed:
            self.trouble = f"{self._group}: {failed.args[0].str()}"
            return
        self._known = {
            one.member_id: frozenset(
                place.partition for place in one.assignment.topic_partitions if place.topic == self._topic
            )
            for one in members
        }
        self._known_s, self.trouble = monotonic_s(), "" if members else f"{self._group} has no members"


class LagClock:
    """Since when the oldest event waits that the group has not committed, by when the topic was so long."""

    def __init__(self) -> None:
        self._at_s: deque[float] = deque(maxlen=KEPT)
        self._ends: deque[Floats] = deque(maxlen=KEPT)

    def note(self, at_s: float, ends: Floats) -> None:
        """Take in where the partitions end now. Where there are more of them than before, it begins anew."""
        if self._ends and len(self._ends[-1]) != len(ends):
            self._at_s.clear()
            self._ends.clear()
        self._at_s.append(at_s)
        self._ends.append(ends.copy())

    def worst_s(self, done: Floats) -> float:
        """Return the age of the oldest waiting event in seconds; at least so much where that is before all readings."""
        ends, at_s = np.array(self._ends), np.array(self._at_s)
        behind = [number for number, up_to in enumerate(done.tolist()) if up_to < ends[-1, number] - 0.5]
        return max((float(at_s[-1] - np.interp(done[one], ends[:, one], at_s)) for one in behind), default=0.0)


class CommittedRates:
    """μ of one member, learned from commits alone: what it commits between two commits while it is never idle.

    Who is idle commits what arrives, and that says nothing. told: events/s that an operator says; 0: learn.
    """

    def __init__(self, told: float) -> None:
        self._told = told
        self._last: dict[str, tuple[frozenset[int], float, float]] = {}
        """Member → its partitions, and when it was last seen to commit, and up to where in sum, while it was behind."""
        self._samples: deque[float] = deque(maxlen=SAMPLES)

    @property
    def service_rate(self) -> float | None:
        """Events/s of a typical member; None before enough was seen."""
        if self._told:
            return self._told
        return median(self._samples) if len(self._samples) >= ENOUGH else None

    def note(self, at_s: float, owned: Mapping[str, frozenset[int]], done: Floats, lags: Floats) -> None:
        """Take in one reading. owned: member → its partitions. done: committed, of each partition. lags: of each."""
        for member, partitions in owned.items():
            places = [one for one in partitions if one < len(done)]
            up_to, behind = float(done[places].sum()), float(lags[places].sum())
            before = self._last.get(member)
            if before is None or before[0] != partitions or up_to < before[2]:
                self._last[member] = (partitions, at_s, up_to)  # its first commit says only from when on to count
            elif up_to > before[2]:
                pace = (up_to - before[2]) / (at_s - before[1])
                self._last[member] = (partitions, at_s, up_to)
                if behind > BUSY_S * pace:
                    self._samples.append(pace)
        self._last = {member: known for member, known in self._last.items() if member in owned}
