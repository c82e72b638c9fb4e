"""What the replicas of every runtime share: the payment work, its progress, and when to stop.

Rules, records, timeline and pace are those of `services.payment`.
"""

import os
import secrets
import signal
import socket
import time
from collections.abc import Iterable
from typing import Final

from contracts.clock import now_us
from contracts.progress import Progress, ReplicaState
from contracts.topics import Group, Topic
from services.consumer import Event
from services.consumer.dead_letters import letter
from services.consumer.server import service_times
from services.payment.app import settle
from services.payment.pace import Pace, ServiceTimes
from services.payment.settings import ReplicaSettings

NO_PLAN: Final = 0
"""Epoch of an assignment that no plan made."""
UNKNOWN_GENERATION: Final = -1
"""librdkafka does not tell its member's generation."""
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """SIGTERM and SIGINT as a flag: what is under way is finished first. Make it in the main thread."""

    def __init__(self) -> None:
        self.requested = False
        for number in SIGNALS:
            signal.signal(number, self._request)

    def _request(self, *_: object) -> None:
        self.requested = True


class Replica:
    """One server of one event at a time, and what it tells of itself.

    `begin` an event, wait until the time it returns (monotonic), `finish` it. The runtime says which partitions come
    and go.
    """

    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._times = ServiceTimes(settings)
        self._pace = Pace()
        self._begun_s = 0.0
        self.member_id = ""
        self.generation = UNKNOWN_GENERATION
        self.stopping = False
        self.ready = False
        """Whether it has had a part of the group's work."""
        self.processed = 0
        self.rebalances = 0
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"
        self._owned: set[int] = set()
        self._positions: dict[int, int] = {}
        self._service_s: list[float] = []

    def begin(self, key: bytes | None, *, idle: bool) -> float:
        """Start one event; return when its service ends. idle: nothing was waiting when the last event ended."""
        self._begun_s = time.monotonic()
        return self._pace.begin(self._begun_s, self._times.of(key, now_us()), idle=idle)

    def finish(self, event: Event) -> tuple[Topic, bytes | None, bytes]:
        """End the event's service now; return topic (without the namespace), key and value of what to write."""
        written: tuple[Topic, bytes | None, bytes]
        try:
            written = (Topic.PAYMENTS_SETTLED, *settle(event, self._settings.replica, now_us()))
        except Exception as wrong:  # whatever came, the next event is served
            written = (Topic.DEAD_LETTERS, *letter(Group.PAYMENT, event, wrong, now_us()))
        self.served(event.partition, event.offset, time.monotonic() - self._begun_s)
        return written

    def taken(self, partitions: Iterable[int]) -> None:
        """Note partitions added to the assignment."""
        self._owned.update(partitions)
        self.ready = self.ready or bool(self._owned)

    def given_up(self, partitions: Iterable[int]) -> None:
        """Note partitions taken out of the assignment."""
        for partition in partitions:
            self._owned.discard(partition)
            self._positions.pop(partition, None)

    def served(self, partition: int, offset: int, took_s: float) -> None:
        """Note one event served."""
        self.processed += 1
        self._service_s.append(took_s)
        if partition in self._owned:
            self._positions[partition] = offset + 1

    def report(self) -> Progress:
        """Return the report of this moment; service times begin anew with the next one."""
        service_s, self._service_s = self._service_s, []
        state = ReplicaState.MEMBER if self.ready else ReplicaState.WARM
        return Progress(
            replica=self._settings.replica,
            incarnation=self._incarnation,
            pid=os.getpid(),
            member_id=self.member_id,
            generation=self.generation,
            epoch=NO_PLAN,
            assigned_epoch=NO_PLAN,
            state=ReplicaState.STOPPING if self.stopping else state,
            partitions=tuple(sorted(self._owned)),
            positions=dict(self._positions),
            processed=self.processed,
            busy_us=round(self._pace.busy_s * 1e6),
            rebalances=self.rebalances,
            at_us=now_us(),
            service=service_times(service_s),
            host=socket.gethostname(),
        )
