"""tailpack scaler, python -m autoscaler.keda: answer KEDA with the newest plan, until SIGTERM or SIGINT.

A separate process next to the autoscaler: it reads the plan topic alone, so it answers while the autoscaler is away or
is replaced, as the replicas go on by the last plan.
"""

import asyncio
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from autoscaler.keda.scaler import Scaler, listening
from autoscaler.keda.settings import ANSWERED, EPOCH, PLANNED, KedaSettings
from autoscaler.live.kafka import reader
from autoscaler.live.metrics import Shown
from autoscaler.live.plan_log import decoded_plan
from autoscaler.live.troubles import Troubles, refuse
from autoscaler.live.web import Source, serving
from contracts import logs
from contracts.clock import steady_s
from contracts.connection import Connection, read_settings
from contracts.pages import PortTakenError
from contracts.plan import PlanRecord
from contracts.topics import Topic, qualified
from contracts.validation import InvalidSettingsError

log = logging.getLogger("keda")
ASK_EVERY_S: Final = 1.0
"""How often the brokers are asked where the topic ends: silence alone does not show that they are away."""
PATIENCE_S: Final = 1.0
STUCK_S = 10.0
"""The health page answers 503 when the thread has not looked at the plan topic for this duration."""


def main(config: Path | None = None) -> int:
    """Run until SIGTERM or SIGINT. config: a TOML file; the environment goes first. Returns the exit code."""
    try:
        logs.configure(log.name, os.environ)
        connection, settings = read_settings(os.environ, KedaSettings, config)
        asyncio.run(_run(connection, settings))
    except InvalidSettingsError as wrong:
        return refuse(log, wrong.problems)
    except KafkaException as wrong:  # the client refuses its settings; unreachable brokers are waited for
        return refuse(log, [wrong.args[0].str()])
    except PortTakenError as taken:
        return refuse(log, [str(taken)])
    return 0


async def _run(connection: Connection, settings: KedaSettings) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    shown = Shown((EPOCH, PLANNED, ANSWERED))
    troubles = Troubles(log.warning)

    def news(plan: PlanRecord) -> None:
        shown[EPOCH].set(plan.epoch)
        shown[PLANNED].set(plan.count)
        loop.call_soon_threadsafe(scaler.changed)

    follower = PlanFollower(connection, news=news, trouble=partial(troubles.tell, "plans"))
    scaler = Scaler(lambda: follower.newest if follower.complete else None, settings.hpa_tolerance, shown[ANSWERED].set)
    source = Source(
        last_tick=lambda: (int(follower.complete), steady_s() - follower.looked_s),
        plan=lambda: {"in_force": follower.newest},
        registry=shown.registry,
        tick_limit_s=STUCK_S,
        troubles=lambda: troubles.now,
    )
    server, port = listening(scaler, settings.grpc_host, settings.grpc_port)
    with serving(source, settings) as begin:
        try:
            follower.start()
            begin()
            await server.start()
            log.info(f"KEDA is answered on port {port}")
            await stop.wait()
        finally:
            await server.stop(grace=0)
            follower.close()


class PlanFollower:
    """Reads plans until closed. The newest plan stays, whatever happens to Kafka.

    news: called from the thread with each newer plan. trouble: called with why plans cannot be read; empty: they can.
    """

    def __init__(
        self, connection: Connection, *, news: Callable[[PlanRecord], None], trouble: Callable[[str], None]
    ) -> None:
        self._place = TopicPartition(qualified(connection.namespace, Topic.PLANS), 0, 0)
        self._where = f"{self._place.topic} on {connection.bootstrap_servers}"
        self._consumer = Consumer(reader(connection, isolation_level="read_committed", fetch_wait_max_ms=250))
        self._news = news
        self._trouble = trouble
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="plans", daemon=True)
        self.newest: PlanRecord | None = None
        self.complete = False
        self.looked_s = steady_s()

    def start(self) -> None:
        """Begin to read."""
        self._consumer.assign([self._place])
        self._thread.start()

    def close(self) -> None:
        """Stop reading."""
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join()
        self._consumer.close()

    def _run(self) -> None:
        ask_s = steady_s()
        while not self._closing.is_set():
            self.looked_s = steady_s()
            message = self._consumer.poll(0.1)
            if message is not None and message.error() is None:
                self._take(message.value())
            elif message is not None and message.error().code() == KafkaError._PARTITION_EOF:
                self.complete = True  # other errors: librdkafka goes on by itself, and `_ask` says so
            if steady_s() >= ask_s:
                self._ask()
                ask_s = steady_s() + ASK_EVERY_S

    def _take(self, value: bytes | None) -> None:
        plan = decoded_plan(value)
        if plan is not None and (self.newest is None or plan.epoch > self.newest.epoch):
            self.newest = plan
            self._news(plan)

    def _ask(self) -> None:
        try:
            self._consumer.get_watermark_offsets(self._place, timeout=PATIENCE_S)
        except KafkaException as away:
            known = "none is known" if self.newest is None else f"plan {self.newest.epoch} stays in force"
            self._trouble(f"{self._where} cannot be read: {away.args[0].str()}; {known}")
        else:
            self._trouble("")


if __name__ == "__main__":
    sys.exit(main())
