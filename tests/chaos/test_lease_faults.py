"""A removed member that does not know of its removal starts no event that its successor serves."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiokafka.coordinator.protocol import ConsumerProtocol
from plan_consumers import Playground, running, until

from services.consumer import Event, Listeners, Options, PlanConsumer

pytestmark = pytest.mark.kafka

OPTIONS = Options(session_s=2.0, heartbeat_s=0.3)
PAUSE_S = 0.01


class Served:
    """Records (replica, partition, offset) of served events, in order."""

    def __init__(self, ground: Playground) -> None:
        self.ground = ground
        self.events: list[tuple[str, int, int]] = []

    def replica(self, name: str, **more: Any) -> PlanConsumer:
        async def handle(event: Event) -> None:
            self.events.append((name, event.partition, event.offset))
            await asyncio.sleep(PAUSE_S / 2)

        return PlanConsumer(name, self.ground.connection, self.ground.topics, handle, options=OPTIONS, **more)

    def by(self, name: str, partition: int = 0) -> list[int]:
        return [offset for who, where, offset in self.events if (who, where) == (name, partition)]

    @asynccontextmanager
    async def fed(self) -> AsyncIterator[None]:
        """Produce events of partition 0 until the context ends."""

        async def feed() -> None:
            while True:
                await asyncio.to_thread(self.ground.put, 0, "event")
                await asyncio.sleep(PAUSE_S)

        feeding = asyncio.ensure_future(feed())
        try:
            yield
        finally:
            feeding.cancel()


@pytest.fixture
def served(kafka: str, namespace: str) -> Served:
    return Served(Playground(kafka, namespace, 2))


def test_a_member_cut_off_during_a_join_serves_no_longer_than_its_session(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its requests to the group are lost, but events still arrive."""

    async def story() -> None:
        a, b = served.replica("a"), served.replica("b")
        async with served.fed(), running(a, b):
            served.ground.plan({0: "a", 1: "b"})
            await until(lambda: a.partitions == (0,) and b.partitions == (1,) and served.by("a"), "both serve")
            group = a._clients.coordinator
            client, healed = group._client, asyncio.Event()
            send = client.send

            async def cut(node: int, request: Any, **how: Any) -> Any:
                if type(request).__name__.startswith(("JoinGroup", "Heartbeat", "OffsetCommit")):
                    await healed.wait()
                return await send(node, request, **how)

            monkeypatch.setattr(client, "send", cut)
            cut_at = len(served.by("a"))
            served.ground.plan({0: "b", 1: "a"})
            await until(lambda: served.by("b"), "the group continues without it")
            last, first = served.by("a")[-1], len(served.by("a"))
            assert last >= served.by("b")[0] - 1, "no event is left out"
            assert first > cut_at, "it served while it was a member"
            await until(lambda: len(served.by("b")) > 50, "its successor serves")
            assert len(served.by("a")) == first, "it started no event of its successor"
            healed.set()
            await until(lambda: a.partitions == (1,), "it is a member again")

    asyncio.run(story())


def test_a_rebalance_that_waits_for_a_slow_member_does_not_interrupt_other_partitions(served: Served) -> None:
    async def story() -> None:
        counts: list[int] = []

        async def slow(partitions: Any) -> None:
            await asyncio.sleep(1.5 * OPTIONS.session_s)
            counts.append(len(served.by("a")))
            await asyncio.sleep(OPTIONS.session_s / 2)
            counts.append(len(served.by("a")))

        a, b = served.replica("a"), served.replica("b", listeners=Listeners(on_partitions_released=slow))
        async with served.fed(), running(a, b):
            served.ground.plan({0: "a", 1: "b"})
            await until(lambda: a.partitions == (0,) and b.partitions == (1,) and served.by("a"), "both serve")
            counts.clear()
            served.ground.plan({0: "a", 1: "a"})
            await until(lambda: a.partitions == (0, 1), "the rebalance is over")
        first, then = counts
        assert then > first, "a served during a rebalance longer than a session"

    asyncio.run(story())


def test_a_member_frozen_during_an_assignment_proves_its_membership_before_it_serves(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After it wakes up, the generation of its assignment has ended."""
    frozen, stop = threading.Event(), threading.Event()

    async def sleepy() -> None:
        a, stopped = served.replica("a"), asyncio.Event()
        running_a = asyncio.ensure_future(a.run(stopped))
        await until(lambda: hasattr(a, "_prober"), "it has started")
        group = a._clients.coordinator
        complete = group._on_join_complete

        async def asleep(*assignment: Any) -> None:
            if ConsumerProtocol.ASSIGNMENT.decode(assignment[3]).assignment and not frozen.is_set():
                frozen.set()
                time.sleep(2 * OPTIONS.session_s)  # noqa: ASYNC251  # the whole process stands still, as after SIGSTOP
            await complete(*assignment)

        monkeypatch.setattr(group, "_on_join_complete", asleep)
        await asyncio.to_thread(stop.wait)
        stopped.set()
        await running_a

    async def story() -> None:
        b = served.replica("b")
        thread = threading.Thread(target=lambda: asyncio.run(sleepy()))
        async with served.fed(), running(b):
            served.ground.plan({0: "b", 1: "b"})
            await until(lambda: b.partitions == (0, 1), "b serves all")
            thread.start()
            await until(lambda: len(served.ground.member_ids()) == 2, "a is a member")
            served.ground.plan({0: "a", 1: "b"})
            await until(frozen.is_set, "a is frozen when it is given partition 0")
            before = len(served.by("b"))
            await until(lambda: len(served.by("b")) > before + 50, "b has taken over")
            await until(lambda: len(served.by("a")) > 50, "a is awake, and a member again")
            stop.set()
            await asyncio.to_thread(thread.join)

    asyncio.run(story())
    offsets = [offset for _, partition, offset in served.events if partition == 0]
    assert offsets == list(range(len(offsets))), "every event once, in order"
