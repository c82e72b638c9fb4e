"""How long a replica that leaves waits for Kafka."""

import asyncio

import pytest
from aiokafka.errors import KafkaConnectionError

from services.consumer.clients import MAX_SILENT_CHECKS, run_unless, wait_for_silence

CHECK_INTERVAL_S = 0.002


class Cluster:
    """Brokers that answer, refuse or hang, and the number of pings of each."""

    def __init__(self, **brokers: str) -> None:
        self.brokers = brokers
        self.pings = dict.fromkeys(brokers, 0)

    def nodes(self) -> list[str]:
        return list(self.brokers)

    async def ask(self, node: str) -> None:
        self.pings[node] += 1
        if self.brokers[node] == "refuses":
            raise KafkaConnectionError(node)
        while self.brokers[node] == "hangs":  # noqa: ASYNC110  # a story may wake it up
            await asyncio.sleep(CHECK_INTERVAL_S / 4)

    async def silence(self) -> None:
        await wait_for_silence(self.nodes, self.ask, pause_s=CHECK_INTERVAL_S)  # type: ignore[arg-type]


@pytest.mark.parametrize("brokers", [{"a": "refuses"}, {"a": "hangs"}, {"a": "refuses", "b": "hangs"}, {}])
async def test_silence_is_detected_if_no_broker_answers(brokers):
    await Cluster(**brokers).silence()


@pytest.mark.parametrize("others", ["refuses", "hangs"])
async def test_one_broker_that_answers_ends_the_silence(others):
    cluster = Cluster(a=others, b="answers", c=others)
    silence = asyncio.ensure_future(cluster.silence())
    while cluster.pings["b"] < 3 * MAX_SILENT_CHECKS:  # noqa: ASYNC110
        await asyncio.sleep(CHECK_INTERVAL_S)
    assert not silence.done()
    silence.cancel()


async def test_silence_cancels_a_leave_that_waits_for_kafka():
    cut: list[str] = []

    async def leave() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cut.append("short")

    assert not await run_unless(leave(), Cluster(a="refuses").silence(), 5.0)
    assert cut == ["short"]


async def test_a_leave_ends_at_its_deadline_while_a_broker_answers():
    with pytest.raises(TimeoutError):
        await run_unless(asyncio.Event().wait(), Cluster(a="answers").silence(), 0.02)  # type: ignore[arg-type]
