"""The newest plan, read from the plan topic by a separate thread; while the brokers are away, the last one known."""

import threading
from collections.abc import Callable
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from autoscaler.live.kafka import reader
from autoscaler.live.plan_log import decoded_plan
from contracts.clock import steady_s
from contracts.connection import Connection
from contracts.plan import PlanRecord
from contracts.topics import Topic, qualified

ASK_EVERY_S: Final = 1.0
"""How often the brokers are asked where the topic ends: silence alone does not show that they are away."""
PATIENCE_S: Final = 1.0


class PlanFollower:
    """Reads plans until closed. The newest plan stays, whatever happens to Kafka.

    news: called from the thread with each newer plan. trouble: called with why plans cannot be read; empty: they can.
    """

    def __init__(
        self,
        connection: Connection,
        *,
        news: Callable[[PlanRecord], None],
        trouble: Callable[[str], None],
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
        """The topic was read to its end at least once."""
        self.looked_s = steady_s()
        """When the thread last did something."""

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
