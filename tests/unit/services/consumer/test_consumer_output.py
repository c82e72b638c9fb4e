"""An output without an acknowledgement ends the replica. Its event is not committed, so it is served again."""

import asyncio

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.errors import KafkaTimeoutError

from services.consumer.output import ACK_TIMEOUT_S, Output


def test_an_output_without_an_acknowledgement_ends_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> int:
        sent: list[asyncio.Future[None]] = []
        checks, pause = 0, asyncio.sleep

        async def send(*_: object, **__: object) -> "asyncio.Future[None]":
            sent.append(asyncio.get_running_loop().create_future())
            return sent[-1]

        async def check(_: float) -> None:
            nonlocal checks
            checks += 1
            if checks == 50:
                await output.send("settled", None, b"two")
            if checks == 100:
                sent[0].set_result(None)
            await pause(0)

        monkeypatch.setattr(AIOKafkaProducer, "send", send)
        monkeypatch.setattr(asyncio, "sleep", check)
        output = Output({"bootstrap_servers": "127.0.0.1:1"}, asyncio.get_running_loop().create_future())
        await output.send("settled", None, b"one")
        with pytest.raises(KafkaTimeoutError, match="not acknowledged within 120 s"):
            await output.watch()
        await output.producer.stop()
        return checks

    assert asyncio.run(run()) == 50 + ACK_TIMEOUT_S
