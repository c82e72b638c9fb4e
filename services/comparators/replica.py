"""What the replicas of every runtime share: the payment work, its progress, and when to stop.

Rules, records, timeline and pace are those of `services.payment`.
"""

import os
import secrets
import signal
import time
from collections.abc import Iterable
from typing import Final

from contracts.clock import now_us
from contracts.progress import Progress, ReplicaState
from services.consumer import Event
from services.consumer.server import service_times
from services.payment.app import Outgoing, settle
from services.payment.pace import Pace
from services.payment.settings import ReplicaSettings

NO_PLAN: Final = 0
"""Epoch of an assignment that no plan made."""
UNKNOWN_GENERATION: Final = -1
"""librdkafka does not tell its member's generation."""
SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)


class Stop:
    """SIGTERM and SIGINT as a flag: what is under way is finished first."""

    def __init__(self) -> None:
        self.requested = False

    def listen(self) -> "Stop":
        """Take the signals from now on. Call it from the main thread."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: self.request())
        return self

    def request(self) -> None:
        """Ask to stop."""
        self.requested = True


class Work:
    """One server of one replica. `begin` an event, wait until the time it returns (monotonic), `finish` it."""

    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._pace = Pace()
        self._begun_s = 0.0

    @property
    def busy_s(self) -> float:
        """Time spent serving since the start."""
        return self._pace.busy_s

    def begin(self, key: bytes | None, *, idle: bool) -> float:
        """Start one event; return when its service ends. idle: nothing was waiting when the last event ended."""
        self._begun_s = time.monotonic()
        return self._pace.begin(self._begun_s, self._settings.service_time_of(key), idle=idle)

    def finish(self, event: Event) -> tuple[Outgoing, float]:
        """End the event's service now; return what to write and how long the event took (s)."""
        return settle(event, self._settings.replica, now_us()), time.monotonic() - self._begun_s


class Tally:
    """Counters of one incarnation. The runtime says what it owns and serves, `report` tells it all."""

    def __init__(self, replica: str) -> None:
        self.replica = replica
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

    @property
    def state(self) -> ReplicaState:
        """WARM until the first assignment, MEMBER from then on, STOPPING at the end."""
        if self.stopping:
            return ReplicaState.STOPPING
        return ReplicaState.MEMBER if self.ready else ReplicaState.WARM

    @property
    def owned(self) -> tuple[int, ...]:
        """Partitions of the present assignment, in order."""
        return tuple(sorted(self._owned))

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

    def report(self, busy_s: float) -> Progress:
        """Return the report of this moment; service times begin anew with the next one."""
        service_s, self._service_s = self._service_s, []
        return Progress(
            replica=self.replica,
            incarnation=self._incarnation,
            pid=os.getpid(),
            member_id=self.member_id,
            generation=self.generation,
            epoch=NO_PLAN,
            assigned_epoch=NO_PLAN,
            state=self.state,
            partitions=self.owned,
            positions=dict(self._positions),
            processed=self.processed,
            busy_us=round(busy_s * 1e6),
            rebalances=self.rebalances,
            at_us=now_us(),
            service=service_times(service_s),
        )
