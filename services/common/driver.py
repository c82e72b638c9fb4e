"""Faust's Kafka driver with the three settings that it does not let one choose."""

from typing import Any, Final

import aiokafka
import faust
from faust.tables.manager import TableManager
from faust.transport.drivers.aiokafka import AIOKafkaConsumerThread, Consumer, Producer, Transport

FETCH_WAIT_MS: Final = 50
"""Longest wait of one fetch, ms. A partition that was just read has to wait until the fetch for the others returns,
so Faust's 1500 ms would add up to that much latency at low rates; 50 ms costs twenty small requests a second."""


class _ConsumerThread(AIOKafkaConsumerThread):  # type: ignore[misc]
    def _create_worker_consumer(self, transport: Any) -> aiokafka.AIOKafkaConsumer:
        consumer = super()._create_worker_consumer(transport)
        consumer._fetch_max_wait_ms = FETCH_WAIT_MS  # read when the consumer starts, which is after this
        return consumer


class _Consumer(Consumer):  # type: ignore[misc]
    def _new_consumer_thread(self) -> _ConsumerThread:
        return _ConsumerThread(self, loop=self.loop, beacon=self.beacon)


class _Producer(Producer):  # type: ignore[misc]
    def _settings_extra(self) -> dict[str, Any]:
        # Without idempotence a send that is repeated because its answer was lost writes the record twice.
        return {"acks": "all", "enable_idempotence": True}


class KafkaTransport(Transport):  # type: ignore[misc]
    """aiokafka with short fetches and an idempotent producer."""

    Consumer = _Consumer
    Producer = _Producer


class PromptTableManager(TableManager):  # type: ignore[misc]
    """Tables without the second that Faust sleeps for agents still to be declared: ours are all declared by then."""

    async def on_start(self) -> None:
        """Register the changelogs and start recovery."""
        await self._update_channels()
        await self.recovery.start()


class RawSchema(faust.Schema):  # type: ignore[misc]
    """Keys and values stay bytes: decoding is the domain's, and a bad record must reach it to become a dead letter."""

    def compile(self, app: Any, **_: Any) -> Any:
        """Return the function that turns a message into an event."""

        async def decode(message: Any, *, propagate: bool = False) -> Any:
            return app.create_event(message.key, message.value, message.headers, message)

        return decode
