"""Send orders to their topic and by HTTP, and record the accepted orders."""

import http.client
import json
import random
import threading
import time
from typing import Any, Final

from confluent_kafka import KafkaError, Message, Producer

from chaos_suite.world import World

RATE: Final = 25.0
"""Orders/s to the topic. First one half of the partitions gets most of them, then the other half, and so on."""
TURN_S: Final = 2.0
BY_HTTP_S: Final = 0.3
"""Pause between two orders by HTTP, s."""
REPEAT_S: Final = 0.2
HTTP_S: Final = 2.0
FLUSH_S: Final = 30.0
CODECS: Final = ("gzip", "snappy", "lz4", "zstd")


class Load:
    """Sends orders from two threads until `finish`.

    accepted: order id → monotonic time (s) at which it was acknowledged, or answered with 202. An order that was not
    accepted may also have its effects, but only once. Copy the dictionary before iterating over it.
    partition_of: order id → payment partition, for orders written to the topic.
    """

    def __init__(self, world: World, run: str, seed: int, *, is_compressed: bool = False) -> None:
        self._world = world
        self._run = run
        self._chance = random.Random(seed)
        self._codec = self._chance.choice(CODECS) if is_compressed else "none"
        self.accepted: dict[str, float] = {}
        self.partition_of: dict[str, int] = {}
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=target, daemon=True) for target in (self._send, self._post)]
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """Wait until the brokers have answered all requests, or do not answer any more."""
        self._stop.set()
        for thread in self._threads:
            thread.join(FLUSH_S + HTTP_S)

    def _order(self) -> dict[str, Any]:
        return {
            "v": 1, "customer": f"customer-{self._chance.randrange(100):05d}", "merchant": "books", "country": "DE",
            "currency": "EUR", "amount_minor": 1000 + self._chance.randrange(60_000), "card_number": "4111111111111111",
        }  # fmt: skip

    def _send(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._world.bootstrap_servers, "enable.idempotence": True, "linger.ms": 2,
                "compression.type": self._codec, "message.timeout.ms": int(FLUSH_S * 1000),
                "socket.timeout.ms": 3000, "log_level": 0,
            }
        )  # fmt: skip  # no message times out within a schedule, so no order has an unknown fate
        due_s = began_s = time.monotonic()
        number = 0
        while not self._stop.wait(max(0.0, due_s - time.monotonic())):
            order_id = f"{self._run}-{number}"
            partition = self.partition_of[order_id] = self._partition(time.monotonic() - began_s)
            at = str(time.time_ns() // 1000).encode()
            producer.produce(
                f"{self._world.namespace}.orders.placed",
                json.dumps(self._order() | {"order_id": order_id}),
                key=order_id,
                headers=[("intended_at", at), ("placed_at", at), ("partition", str(partition).encode())],
                on_delivery=self._answered,
            )
            producer.poll(0)
            number += 1
            due_s += 1 / RATE
        producer.flush(FLUSH_S)

    def _partition(self, elapsed_s: float) -> int:
        half = self._world.partitions // 2
        hot = range(half) if elapsed_s // TURN_S % 2 else range(half, self._world.partitions)
        return self._chance.choice(hot if self._chance.random() < 0.8 else range(self._world.partitions))

    def _answered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.accepted[message.key().decode()] = time.monotonic()

    def _post(self) -> None:
        number = 0
        while not self._stop.wait(BY_HTTP_S):
            body, key = json.dumps(self._order()), f"{self._run}-http-{number}"
            number += 1
            while not self._placed(body, key) and not self._stop.wait(REPEAT_S):
                pass  # a customer repeats an order without an answer under the same key

    def _placed(self, body: str, key: str) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self._world.order_port, timeout=HTTP_S)
        try:
            connection.request("POST", "/orders", body, {"Idempotency-Key": key, "Content-Type": "application/json"})
            answer = connection.getresponse()
            text = answer.read()
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()
        if answer.status == 202:
            self.accepted[json.loads(text)["order_id"]] = time.monotonic()
        return answer.status == 202
