"""One replica's server on librdkafka: one event at a time, on a running deadline, its output sent before it counts."""

import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from contracts.connection import Connection
from contracts.progress import PROGRESS_INTERVAL_S
from contracts.topics import Topic, qualified
from services.comparators import clients
from services.comparators.duties import Duties
from services.comparators.output import Output
from services.comparators.payment import Work, event_of
from services.comparators.tally import Tally
from services.payment.settings import ReplicaSettings

DRAIN_S: Final = 2.0
"""How long outputs are waited for before partitions are given away."""
IDLE_WAIT_S: Final = 0.05
"""A poll ends as soon as something is there; a signal is noticed after it."""


class Server:
    """Serves events, writes their outputs, and reports. Runtimes differ in how they get events and confirm them."""

    def __init__(self, settings: ReplicaSettings, connection: Connection) -> None:
        self.output = Output(clients.producer(connection, settings))
        self.tally = Tally(settings.replica)
        self.duties = Duties()
        self.duties.add(PROGRESS_INTERVAL_S, self.report)
        self._work = Work(settings, time.monotonic)
        self._namespace = connection.namespace
        self._progress_topic = qualified(connection.namespace, Topic.PROGRESS)

    def serve(self, message: Any, received_us: int, acknowledged: Callable[[], None], *, idle: bool) -> None:
        """Serve one event. `acknowledged` is called, during a later event or wait, once its output is written.

        idle: nothing was waiting when the last one ended. Raises ServiceError when an output failed for good.
        """
        self.duties.wait_until(self._work.begin(message.key(), idle=idle))
        event = event_of(
            message.topic(),
            message.partition(),
            message.offset(),
            key=message.key(),
            value=message.value(),
            timestamp_us=message.timestamp()[1] * 1000,
            received_us=received_us,
        )
        outgoing, took_s = self._work.finish(event)
        self.tally.served(event.partition, event.offset, took_s)
        self.output.send(qualified(self._namespace, outgoing.topic), outgoing.key, outgoing.value, acknowledged)
        self.output.serve()

    def idle_wait_s(self) -> float:
        """Run what is due, take acknowledgements; return how long to wait for an event."""
        self.output.serve()
        return min(IDLE_WAIT_S, self.duties.run_due())

    def report(self) -> None:
        """Publish progress now."""
        report = self.tally.report(self._work.busy_s)
        self.output.send(self._progress_topic, report.replica.encode(), msgspec.json.encode(report))

    def end(self) -> None:
        """Publish the last report."""
        self.tally.stopping = True
        self.report()
        self.output.drain(DRAIN_S)
