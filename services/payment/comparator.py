"""Client options, work and reports of a Payment replica on librdkafka's consumer. `tailpack.comparators` runs it.

Rules, records and service times are those of `services.payment`. There are no plans.
"""

import logging
import os
import secrets
import socket
import time
from collections.abc import Iterable
from typing import Any, Final

from contracts.clock import now_us
from contracts.connection import Connection
from contracts.progress import Progress, ReplicaState
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.topics import AUTO_OFFSET_RESET, Group, Topic, qualified
from services.common.records import encode
from services.consumer import Event
from services.consumer.server import encode_dead_letter
from services.payment.domain import settled_payment
from services.payment.replica import ReplicaSettings, ServerDeadlines, ServiceTimes

log = logging.getLogger(__name__)

NO_PLAN: Final = 0  # epoch of an assignment without a plan
UNKNOWN_GENERATION: Final = -1  # librdkafka does not expose the generation

ANSWER_S: Final = 10.0
SHARED: Final = {"retry.backoff.ms": 20, "reconnect.backoff.ms": 20, "reconnect.backoff.max.ms": 1000}
OUTPUT: Final = {
    "enable.idempotence": True,
    "linger.ms": 0,
    "message.timeout.ms": 120_000,  # longest wait of an output for a leader; its input is not committed
}
INPUT: Final = {
    "enable.auto.offset.store": False,  # an event's offset is stored, and then committed, once its output is written
    "auto.offset.reset": AUTO_OFFSET_RESET,
    "fetch.wait.max.ms": 50,  # a pending fetch at a handover delays the first fetch of the new owner this long
    "max.poll.interval.ms": 24 * 3600 * 1000,  # a slow event must not end the membership
    # 2.5 s of work at 5 ms. With the default, 100,000, a replica fetches events that another replica will serve.
    "queued.min.messages": 500,
    # Pause before the next fetch when the queue is full. The default, 1000, would empty such a short queue.
    "fetch.queue.backoff.ms": 10,
    "fetch.error.backoff.ms": 20,
    # librdkafka's threads sleep up to a second: after an incremental rebalance they do not fetch the partitions
    # that did not move (0.9 s measured). A metadata refresh wakes them.
    "topic.metadata.refresh.interval.ms": 100,
}


def consumer_options(connection: Connection, settings: ReplicaSettings, runtime: RebalanceProtocol) -> dict[str, Any]:
    """Return the options of the consumer, chosen for low latency."""
    options = connection.librdkafka() | SHARED | INPUT
    options |= {"client.id": settings.replica, "group.id": qualified(connection.namespace, Group.PAYMENT)}
    options["auto.commit.interval.ms"] = round(settings.commit_interval_s * 1000)
    if runtime is RebalanceProtocol.KIP848:
        return options | {"group.protocol": "consumer"}
    return options | {
        "partition.assignment.strategy": "range" if runtime in ("range", "led-eager") else "cooperative-sticky",
        "heartbeat.interval.ms": round(settings.heartbeat_s * 1000),
        "session.timeout.ms": round(settings.session_s * 1000),
    }


class Replica:
    """Serves one event at a time. Call `begin`, wait until the returned monotonic time, then call `finish`."""

    def __init__(self, settings: ReplicaSettings) -> None:
        self._settings = settings
        self._times = ServiceTimes(settings)
        self._deadlines = ServerDeadlines()
        self._incarnation = f"{now_us():016d}-{secrets.token_hex(4)}"
        self._owned: dict[int, int | None] = {}
        """Partition → next offset to serve; None until the first event."""
        self._processed = self._rebalances = 0
        self._state = ReplicaState.WARM
        self.member_id = ""

    def begin(self, key: bytes | None, *, idle: bool) -> float:
        """Start one event and return the end of its service. idle: no event was waiting when the last one ended."""
        return self._deadlines.begin(time.monotonic(), self._times.service_time_s(key, now_us()), idle=idle)

    def finish(self, event: Event) -> tuple[Topic, bytes | None, bytes]:
        """End the event's service. Return topic (without the namespace), key and value of the output."""
        output: tuple[Topic, bytes | None, bytes]
        try:
            settled = settled_payment(event, self._settings.replica, now_us())
            output = Topic.PAYMENTS_SETTLED, settled.order_id.encode(), encode(settled)
        except Exception as error:  # no record may stop the replica
            output = (Topic.DEAD_LETTERS, *encode_dead_letter(Group.PAYMENT, event, error, now_us()))
        self._processed += 1
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
        """Return the current report."""
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
            host=socket.gethostname(),
        )
