"""The work of a Payment replica (rules, records and service times of `services.payment`) and its progress reports."""

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

NO_PLAN: Final = 0  # epoch of an assignment without a plan
UNKNOWN_GENERATION: Final = -1  # librdkafka does not expose the generation


class Replica:
    """A server of one event at a time: `begin` it, wait until the returned monotonic time, then `finish` it."""

    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._times = ServiceTimes(settings)
        self._deadlines = ServerDeadlines()
        self._begun_s = 0.0
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"
        self._owned: dict[int, int | None] = {}
        """Partition → next offset to serve; None until the first event."""
        self._service_s: list[float] = []
        self._processed = self._rebalances = 0
        self._state = ReplicaState.WARM
        self.member_id = ""

    def begin(self, key: bytes | None, *, idle: bool) -> float:
        """Start one event and return the end of its service. idle: no event was waiting when the last one ended."""
        self._begun_s = time.monotonic()
        return self._deadlines.begin(self._begun_s, self._times.service_time_s(key, now_us()), idle=idle)

    def finish(self, event: Event) -> tuple[Topic, bytes | None, bytes]:
        """End the event's service. Return topic (without the namespace), key and value of the output."""
        output: tuple[Topic, bytes | None, bytes]
        try:
            settled = settled_payment(event, self._settings.replica, now_us())
            output = Topic.PAYMENTS_SETTLED, settled.order_id.encode(), encode(settled)
        except Exception as error:  # no record may stop the replica
            output = (Topic.DEAD_LETTERS, *encode_dead_letter(Group.PAYMENT, event, error, now_us()))
        self._processed += 1
        self._service_s.append(time.monotonic() - self._begun_s)
        if event.partition in self._owned:
            self._owned[event.partition] = event.offset + 1
        return output

    def add_partitions(self, partitions: Iterable[int]) -> None:
        """Add partitions to the assignment."""
        self._rebalances += 1
        self._owned |= dict.fromkeys(partitions)
        if self._owned:
            self._state = ReplicaState.MEMBER

    def remove_partitions(self, partitions: Iterable[int]) -> None:
        """Remove partitions from the assignment."""
        self._rebalances += 1
        for partition in partitions:
            self._owned.pop(partition, None)

    def report(self, *, stopping: bool = False) -> Progress:
        """Return the current report. Service times are those since the last report."""
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
            busy_us=round(self._deadlines.busy_s * 1e6),
            rebalances=self._rebalances,
            at_us=now_us(),
            service=service_times(service_s),
            host=socket.gethostname(),
        )
