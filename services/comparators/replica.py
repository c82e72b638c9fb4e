"""The payment work of a replica (rules, records and pace of `services.payment`), and its progress."""

import os
import secrets
import socket
import time
from collections.abc import Iterable
from typing import Final

from contracts.clock import now_us
from contracts.progress import Progress, ReplicaState
from contracts.topics import Group, Topic
from services.common.records import encode
from services.consumer import Event
from services.consumer.server import encode_dead_letter, service_times
from services.payment.domain import settled_payment
from services.payment.replica import ReplicaSettings, ServerDeadlines, ServiceTimes

NO_PLAN: Final = 0  # epoch of an assignment that no plan made
UNKNOWN_GENERATION: Final = -1  # librdkafka does not return its member's generation


class Replica:
    """One server of one event at a time. `begin` an event, wait until the monotonic time it returns, `finish` it."""

    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._times = ServiceTimes(settings)
        self._pace = ServerDeadlines()
        self._begun_s = 0.0
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"
        self._owned: dict[int, int | None] = {}
        """Partition → next offset to serve, once one is known."""
        self._service_s: list[float] = []
        self._processed = self._rebalances = 0
        self._state = ReplicaState.WARM
        self.member_id = ""

    def begin(self, key: bytes | None, *, idle: bool) -> float:
        """Start one event; return when its service ends. idle: nothing was waiting when the last event ended."""
        self._begun_s = time.monotonic()
        return self._pace.begin(self._begun_s, self._times.of(key, now_us()), idle=idle)

    def finish(self, event: Event) -> tuple[Topic, bytes | None, bytes]:
        """End the event's service now; return topic (without the namespace), key and value of what to write."""
        written: tuple[Topic, bytes | None, bytes]
        try:
            made = settled_payment(event, self._settings.replica, now_us())
            written = Topic.PAYMENTS_SETTLED, made.order_id.encode(), encode(made)
        except Exception as error:  # whatever the record was, the next event is served
            written = (Topic.DEAD_LETTERS, *encode_dead_letter(Group.PAYMENT, event, error, now_us()))
        self._processed += 1
        self._service_s.append(time.monotonic() - self._begun_s)
        if event.partition in self._owned:
            self._owned[event.partition] = event.offset + 1
        return written

    def add_partitions(self, partitions: Iterable[int]) -> None:
        """Note partitions added to the assignment."""
        self._rebalances += 1
        self._owned |= dict.fromkeys(partitions)
        if self._owned:
            self._state = ReplicaState.MEMBER

    def remove_partitions(self, partitions: Iterable[int]) -> None:
        """Note partitions removed from the assignment."""
        self._rebalances += 1
        for partition in partitions:
            self._owned.pop(partition, None)

    def report(self, *, stopping: bool = False) -> Progress:
        """Return the report of this moment; service times begin again with the next one."""
        service_s, self._service_s = self._service_s, []
        return Progress(
            replica=self._settings.replica,
            incarnation=self._incarnation,
            pid=os.getpid(),
            member_id=self.member_id,
            generation=UNKNOWN_GENERATION,
            epoch=NO_PLAN,
            assigned_epoch=NO_PLAN,
            state=ReplicaState.STOPPING if stopping else self._state,
            partitions=tuple(sorted(self._owned)),
            positions={partition: offset for partition, offset in self._owned.items() if offset is not None},
            processed=self._processed,
            busy_us=round(self._pace.busy_s * 1e6),
            rebalances=self._rebalances,
            at_us=now_us(),
            service=service_times(service_s),
            host=socket.gethostname(),
        )
