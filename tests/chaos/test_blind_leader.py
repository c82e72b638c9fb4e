"""If the group's leader cannot read the plan topic, another member leads, and the plan is carried out."""

import asyncio

import pytest
from plan_consumers import Playground, running, until

from services.consumer import Event, PlanConsumer

pytestmark = pytest.mark.kafka


def test_plans_are_carried_out_even_if_the_leader_cannot_read_them(
    kafka: str, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ground = Playground(kafka, namespace, 2)

    async def handle(event: Event) -> None: ...

    async def read_nothing() -> None:
        await asyncio.sleep(0.01)

    async def story() -> None:
        a, b = (PlanConsumer(name, ground.connection, ground.topics, handle) for name in "ab")
        async with running(a):
            await until(lambda: a.partitions == (0, 1), "a, the first, leads")
            monkeypatch.setattr(a._clients.plans, "_poll", read_nothing)
            async with running(b):
                await until(lambda: (a.partitions, b.partitions) == ((0,), (1,)), "they share the partitions")
                ground.plan({0: "b", 1: "a"})
                await until(lambda: (a.partitions, b.partitions) == ((1,), (0,)), "the first plan is taken")
                ground.plan({0: "a", 1: "b"})
                await until(lambda: (a.partitions, b.partitions) == ((0,), (1,)), "the second plan is taken")

    asyncio.run(story())
