"""Partitions move between PlanConsumers of one process, with their state and without delay by slow events."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import follow
import pytest
from kafka_helpers import wait_for
from plan_consumers import Playground, running, until

from services.consumer import Event, Listeners, Options, PlanConsumer, Topics, plan_consumer
from services.consumer.interface import PartitionListener

pytestmark = pytest.mark.kafka

DOC = follow.DOCS / "reference" / "consumer-api.md"
GREETERS = Topics(group="greeters", events="names", plans="greeters.plans", progress="greeters.progress")
SLOW_S = 8.0
REBALANCE_TIMEOUT_S = 5.0
PAUSE_S = 0.02


def blocks(kafka: str) -> list[str]:
    """Return the Python examples of docs/reference/consumer-api.md, for this Kafka."""
    return [one.text.replace("127.0.0.1:9092", kafka) for one in follow.blocks(DOC)]


class Greeters(Playground):
    """The group of docs/reference/consumer-api.md, with its topic names."""

    topics = GREETERS  # type: ignore[assignment]


def test_the_documented_service_greets_and_stops_at_sigterm(kafka: str, tmp_path: Path) -> None:
    service, plan, _ = blocks(kafka)
    assert len([line for line in service.splitlines() if line.strip()]) <= 20
    ground = Greeters(kafka, "greeters", 3)
    subprocess.run([sys.executable, "-c", plan], timeout=60, check=True)
    (tmp_path / "service.py").write_text(service)
    output_file = tmp_path / "said"
    with output_file.open("wb") as output:
        process = subprocess.Popen([sys.executable, str(tmp_path / "service.py")], stdout=output)
    try:
        ground.put(1, "Ada")
        wait_for(output_file.read_text, "it greets")
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
    finally:
        process.kill()
    assert output_file.read_text() == "hello Ada (partition 1, offset 0)\n"
    assert ground.committed(1) == 1


class Store:
    """The store of the documentation's example."""

    def __init__(self) -> None:
        self.counts: dict[int, int] = {}

    async def read(self, partition: int) -> int:
        return self.counts.get(partition, 0)

    async def write(self, partition: int, count: int) -> None:
        self.counts[partition] = count


class Counting:
    """A replica that counts its events by partition; the documentation's listeners hand the counts over."""

    def __init__(self, ground: Playground, replica: str, store: Store) -> None:
        example = blocks(ground.kafka)[2]
        names: dict[str, Any] = {"store": store}
        exec(compile(example, str(DOC), "exec"), names)  # noqa: S102  # the example itself is what is tested
        self.counts: dict[int, int] = names["counts"]
        self.calls: list[tuple[str, list[int]]] = []
        listeners = Listeners(
            on_partitions_taken=self.recorded("taken", names["listeners"].on_partitions_taken),
            on_partitions_released=self.recorded("released", names["listeners"].on_partitions_released),
            on_partitions_lost=self.recorded("lost", names["listeners"].on_partitions_lost),
        )
        self.consumer = PlanConsumer(replica, ground.connection, ground.topics, self.count, listeners=listeners)

    async def count(self, event: Event) -> None:
        self.counts[event.partition] += 1

    def recorded(self, what: str, listener: PartitionListener) -> PartitionListener:
        async def record(partitions: Sequence[int]) -> None:
            self.calls.append((what, list(partitions)))
            await listener(partitions)

        return record


def test_state_is_handed_over_with_its_partition(kafka: str, namespace: str) -> None:
    ground, store = Playground(kafka, namespace, 2), Store()
    one, two = Counting(ground, "one", store), Counting(ground, "two", store)

    async def story() -> None:
        ground.plan({0: "one", 1: "two"})
        async with running(one.consumer, two.consumer):
            ground.put(0, *"abcde")
            await until(lambda: one.counts.get(0) == 5 and 1 in two.counts, "both serve")
            ground.plan({0: "two", 1: "two"})
            ground.put(0, *"fgh")
            await until(lambda: two.counts.get(0) == 8, "the other one counts on")
            assert 0 not in one.counts

    asyncio.run(story())
    assert ("released", [0]) in one.calls
    assert two.calls.index(("taken", [0])) > 0
    assert store.counts == {0: 8, 1: 0}


def test_an_event_longer_than_the_rebalance_time_out_delays_only_its_own_partition(kafka: str, namespace: str) -> None:
    ground = Playground(kafka, namespace, 4)
    handled: list[tuple[str, int, str]] = []
    started = asyncio.Event()
    sent = 0
    behind = dict.fromkeys((1, 2, 3), 0)

    def replica(name: str) -> PlanConsumer:
        async def handle(event: Event) -> None:
            value = (event.value or b"").decode()
            if value == "slow":
                started.set()
                await asyncio.sleep(SLOW_S)
            handled.append((name, event.partition, value))
            if event.partition in behind:
                behind[event.partition] = max(behind[event.partition], sent - int(value))

        options = Options(concurrency=2, rebalance_timeout_s=REBALANCE_TIMEOUT_S)
        return PlanConsumer(name, ground.connection, ground.topics, handle, options=options)

    async def stream() -> None:
        nonlocal sent
        for sent in range(10_000):
            for partition in behind:
                ground.producer.produce(ground.topics.events, str(sent), partition=partition)
            ground.producer.poll(0)
            await asyncio.sleep(PAUSE_S)

    async def story() -> None:
        one, two = replica("one"), replica("two")
        ground.plan({0: "one", 1: "one", 2: "two", 3: "two"})
        async with running(one, two):
            await until(lambda: one.partitions == (0, 1) and two.partitions == (2, 3), "both serve")
            load = asyncio.create_task(stream())
            ground.put(0, "slow", "next")
            await started.wait()
            ground.plan({0: "two", 1: "one", 2: "two", 3: "two"})
            await until(lambda: two.partitions == (0, 2, 3), "the partition has moved")
            await until(lambda: any(value == "next" for _, _, value in handled), "the next one is handled")
            load.cancel()

        in_0 = [(name, value) for name, partition, value in handled if partition == 0]
        assert in_0 == [("one", "slow"), ("two", "next")], "not before the event was done"
        assert max(behind.values()) < REBALANCE_TIMEOUT_S / PAUSE_S / 2, f"events that waited for another's: {behind}"
        assert max(Counter((partition, value) for _, partition, value in handled).values()) == 1, "none twice"

    asyncio.run(story())


def test_the_later_of_two_processes_with_one_name_serves_even_if_its_clock_was_set_back(
    kafka: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def handle(event: Event) -> None: ...

    async def story() -> None:
        ground = Playground(kafka, namespace, 2)
        ground.plan({0: "one", 1: "one"})
        older = PlanConsumer("one", ground.connection, ground.topics, handle)
        monkeypatch.setattr(plan_consumer, "now_us", lambda: 0)
        later = PlanConsumer("one", ground.connection, ground.topics, handle)
        async with running(older):
            await until(lambda: older.partitions == (0, 1), "the older one serves")
            async with running(later):
                await until(lambda: (older.partitions, later.partitions) == ((), (0, 1)), "the later one serves")
                ground.plan({0: "one", 1: "one"})
                await until(lambda: later._clients.assignor.last_assignment.epoch == 2, "another rebalance")
                assert (older.partitions, later.partitions) == ((), (0, 1))
            await until(lambda: older.partitions == (0, 1), "the older one serves again")

    asyncio.run(story())
