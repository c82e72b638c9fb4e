"""What a replica on librdkafka writes: idempotent, acknowledged by all in-sync copies, sent without lingering."""

import logging
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaError, Producer

from services.common.errors import ServiceError

log = logging.getLogger(__name__)


class Output:
    """A producer whose acknowledgements arrive in `serve` and `drain`, on the caller's thread."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._failed: KafkaError | None = None
        self._producer = Producer(options, logger=log)

    def send(
        self, topic: str, key: bytes | None, value: bytes, acknowledged: Callable[[], None] = lambda: None
    ) -> None:
        """Hand one record to the producer; `acknowledged` is called once the broker has it."""

        def delivered(error: KafkaError | None, _: Any) -> None:
            if error is None:
                acknowledged()
            else:
                self._failed = error

        self._producer.produce(topic, value=value, key=key, on_delivery=delivered)

    def serve(self) -> None:
        """Take acknowledgements that have arrived. Raises ServiceError when an output failed for good."""
        self._producer.poll(0)
        if self._failed is not None:
            raise ServiceError(f"an output was not written ({self._failed.str()}); restart me once Kafka is well")

    def drain(self, deadline_s: float) -> bool:
        """Wait until everything sent is acknowledged; return False after `deadline_s` seconds."""
        return int(self._producer.flush(deadline_s)) == 0
