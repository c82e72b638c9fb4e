"""Memberships keep their group when rights are missing, answers are lost, or a plan is too long."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka.errors import KafkaConnectionError
from foreign_group import settings_of

from autoscaler.live.foreign import inspection, planner, wire
from autoscaler.live.foreign.members import Replicas
from autoscaler.live.foreign.planner import Planner
from autoscaler.live.foreign.wire import PLANNER
from contracts.connection import Connection
from contracts.plan import PlanRecord
from contracts.preflight import PreflightError

CONNECTION, TOPIC = Connection(bootstrap_servers="kafka:9092"), "orders"


class Group:
    """A coordinator with one consumer of KIP-848, which forgets what it is told while `is_deaf`."""

    group, node, epoch, is_deaf = "shop", 1, 0, False
    rack: str | None = None
    sent: tuple[Any, ...] = ()

    async def count_partitions(self, *_: Any) -> dict[str, int]:
        return {TOPIC: 2}

    async def send(self, kind: Any, *values: Any) -> Any:
        if kind is wire.DESCRIBE_ASSIGNED:
            places = ([(bytes(16), TOPIC, [0, 1], {})],)
            consumer = ("a", None, None, 1, "shop-0", "", [TOPIC], None, places, places)
            carrier = (PLANNER, None, self.rack, 1, PLANNER, "", ["other"], None, ([],), ([],))
            members = [consumer, *([carrier] if self.rack is not None else [])]
            return SimpleNamespace(groups=[(0, None, "shop", "Stable", 1, 1, "planned", members)])
        self.sent += (values[3:6:2],)
        if self.is_deaf:
            raise KafkaConnectionError("lost")
        self.rack, self.epoch = values[3] or self.rack, self.epoch + 1
        return SimpleNamespace(error_code=0, message="", epoch=self.epoch)


@pytest.fixture
def planned() -> Any:
    group, one = Group(), Planner(CONNECTION, settings_of(TOPIC, "shop"))
    one._coordinator = group  # type: ignore[assignment]
    record = PlanRecord(epoch=1, at_us=1, replicas=("shop-0",), assignment=dict.fromkeys((0, 1), "shop-0"), reason="")
    one._given = record, Replicas({"shop-0": ""})

    def step() -> None:
        with pytest.raises(KafkaConnectionError) if group.is_deaf else nullcontext():
            one._loop.run_until_complete(one._step())

    step()
    yield group, one, step
    one._loop.close()


def test_a_publication_is_repeated_unchanged_and_many_lost_ones_do_not_fence_the_planner(planned):
    group, one, step = planned
    group.is_deaf, one._owners = True, {}
    step()
    step()
    assert group.sent[-1] == group.sent[-2]
    for one._owners in [{}] * 12:
        step()
    group.is_deaf = False
    step()
    assert (one.is_fenced, group.rack) == (False, one._racks[-1])


def test_a_plan_that_is_too_long_keeps_the_membership(planned, monkeypatch):
    group, one, step = planned
    monkeypatch.setattr(planner, "LONGEST", 10)
    one._owners, one._beat_s = {}, 0.0
    step()
    assert (group.sent[-1], one.problem[:30]) == ((None, None), "too many members or partitions")


def test_a_group_that_looks_empty_and_cannot_be_described_is_refused(monkeypatch):
    monkeypatch.setattr(inspection, "_read", lambda *_: asyncio.sleep(0, (0, "shop", "Dead", "", "", [])))
    monkeypatch.setattr(inspection, "LOADING_S", 0.0)
    monkeypatch.setattr(inspection, "describe_group", lambda *_: None)
    with pytest.raises(PreflightError, match="group shop cannot be described; allow DESCRIBE on it and on each topic"):
        inspection.inspect(CONNECTION, settings_of(TOPIC, "shop", consumers="auto"))
