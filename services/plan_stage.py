"""One replica of a stage that follows plans. For each event it waits the service time, decides, and writes the output.

It has no state. A repeated record gives the same output again, with the same id. There are no repeats if every group
has `guarantee = exactly_once`. Its output topics are in the namespace of its input topic.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import msgspec
import uvloop

from contracts import logs
from contracts.connection import Connection, read_settings
from contracts.events import NotificationSent, PaymentSettled, ShipmentScheduled
from contracts.settings import shared_fields
from contracts.topics import Group, Topic
from contracts.validation import InvalidSettingsError
from services.common import traces
from services.common.records import Refusal, ServiceError, decoder, encode
from services.consumer import Event, Options, PlanConsumer, Refused, ReplicaError
from services.consumer.environment import topics_of
from services.consumer.metrics import LATENCY, Buckets
from services.payment.replica import ReplicaSettings, Server, ServiceTimes

Output = PaymentSettled | ShipmentScheduled | NotificationSent | None
Rule = Callable[[Event, str, int], Output]
"""Returns the output for an event, the replica's name and the end of service (µs since the epoch). Raises Refused."""


def typed_rule(kind: type[msgspec.Struct], decide: Callable[[Any, int], Output]) -> Rule:
    """Return a rule that applies `decide` to records of one kind and refuses all others."""
    decode = decoder(kind)

    def rule(event: Event, _replica: str, done_us: int) -> Output:
        record = decode(event.value)
        if isinstance(record, Refusal):
            raise Refused(*record.reasons)
        return decide(record, done_us)

    return rule


class PlanStage:
    """A replica. rules: input topic without its namespace → rule. writes: output topic without its namespace.

    latency_of: returns the latency of an output, seconds. None: the consumer measures from the event's timestamp.
    Raises InvalidSettingsError if the configured topic has no rule.
    """

    def __init__(
        self,
        stage: Group,
        rules: Mapping[Topic, Rule],
        writes: Topic,
        settings: ReplicaSettings,
        connection: Connection,
        *,
        latency_of: Callable[[Any], float] | None = None,
    ) -> None:
        read = settings.topic_in(connection.namespace)
        topic = next((name for name in rules if f".{read}".endswith(f".{name}")), None)
        if topic is None:
            raise InvalidSettingsError([f"TAILPACK_TOPIC = {read!r}: must end in {' or '.join(rules)}"])
        namespace = read.removesuffix(topic)
        self._rule = rules[topic]
        self._replica = settings.replica
        self._target = namespace + writes
        self._server = Server(ServiceTimes(settings))
        self._latency_of = latency_of
        others = {read: max(1, settings.payment_partitions), self._target: 1}
        options = Options(**shared_fields(settings, Options))
        self._latencies = Buckets(LATENCY, options.latency_target_s)
        self.consumer = PlanConsumer(
            settings.replica,
            connection,
            topics_of(connection, settings, dead_letters=namespace + Topic.DEAD_LETTERS, stage=stage, others=others),
            self.handle,
            options=options,
            busy_s=lambda: self._server.deadlines.busy_s,
            latencies=self._latencies if latency_of else None,
        )

    async def handle(self, event: Event) -> "asyncio.Future[None] | None":
        """Serve one event. The returned future is done when the broker has the output."""
        done_us = await self._server.serve(event.received_us, event.key)
        output = self._rule(event, self._replica, done_us)
        if output is None:
            return None
        if self._latency_of:
            self._latencies.observe(self._latency_of(output))
        return await self.consumer.send(self._target, output.order_id.encode(), encode(output))


S = TypeVar("S", bound=ReplicaSettings)


def main(make: Callable[[ReplicaSettings, Connection], PlanStage], stage: str) -> int:
    """Run a replica. Return its exit status, as `run_replica`."""
    return run_replica(ReplicaSettings, lambda *configured: uvloop.run(make(*configured).consumer.run()), stage)


def run_replica(kind: type[S], run: Callable[[S, Connection], None], stage: str) -> int:
    """Run a replica. Return its exit status: 0 stopped by a signal, 1 failed, 2 bad settings."""
    name = os.environ.get("TAILPACK_REPLICA") or stage
    log = logging.getLogger(name)
    try:
        logs.configure(name, os.environ)
        connection, settings = read_settings(os.environ, kind)
        traces.configure(name, os.environ)
        run(settings, connection)
    except InvalidSettingsError as error:
        for problem in error.problems:
            log.error(problem)
        return 2
    except (ReplicaError, ServiceError) as error:
        log.error(error)
        return 1
    finally:
        traces.stop()
    return 0
