"""Shipment and Notification on the plan-following consumer decide what the same stages on Faust decide."""

import asyncio

import msgspec
import pytest
from services_stack import settled, shipment

from contracts.connection import Connection
from contracts.topics import Group, Topic
from contracts.validation import InvalidSettingsError
from services.common.faust_app import ServiceSettings
from services.common.records import Decide, Effect, Incoming, Refusal
from services.common.service import Service
from services.consumer import Event, Refused
from services.notification import __main__ as notification_app
from services.notification import replica as notification
from services.payment.replica import ReplicaSettings
from services.plan_stage import PlanStage
from services.shipment import __main__ as shipment_app
from services.shipment import replica as shipment_replica

DONE_US = 1_700_000_000_000_000
CONNECTION = Connection(bootstrap_servers="127.0.0.1:1", namespace="run.behind")
STAGES = {
    Group.SHIPMENT: (shipment_app, shipment_replica.RULES, Topic.SHIPMENTS_SCHEDULED),
    Group.NOTIFICATION: (notification_app, notification.RULES, Topic.NOTIFICATIONS_SENT),
}
RECORDS = (
    settled("o-1", accepted=True),
    settled("o-2", accepted=False),
    shipment("o-3"),
    None,
    b"no JSON",
    b'{"v": 99}',
    msgspec.json.encode({"v": 1, "order_id": 7}),
)


def stage(group: Group, topic: str) -> PlanStage:
    _, rules, writes = STAGES[group]
    return PlanStage(group, rules, writes, ReplicaSettings(replica=f"{group}-0", topic=topic), CONNECTION)


@pytest.fixture
def on_faust(tmp_path, monkeypatch) -> dict[tuple[Group, Topic], Decide]:
    """(Stage, topic) → what its Faust app decides on a record of it."""
    found: dict[tuple[Group, Topic], Decide] = {}
    monkeypatch.setattr(
        Service, "consume", lambda self, topic, decide: found.update({(Group(self.name), topic): decide})
    )

    async def build() -> None:
        for app, _, _ in STAGES.values():
            monkeypatch.setattr(app, "now_us", lambda: DONE_US)
            app.build(CONNECTION, ServiceSettings(data_dir=str(tmp_path)))

    asyncio.run(build())
    return found


def told(stage: PlanStage, value: bytes | None) -> list[tuple[str, ...] | tuple[bytes, bytes]]:
    """Why the record is refused, or what is written because of it."""
    try:
        made = stage._rule(Event("t", 0, 0, b"key", value, (), 0, received_us=0, epoch=0), "r", DONE_US)
    except Refused as error:
        return [error.reasons]
    return [] if made is None else [(made.order_id.encode(), msgspec.json.encode(made))]


def test_each_topic_has_the_same_rules_as_on_faust(on_faust):
    assert set(on_faust) == {(group, topic) for group, (_, rules, _) in STAGES.items() for topic in rules}
    kinds = set()
    for (group, topic), decide in on_faust.items():
        for offset, value in enumerate(RECORDS):
            theirs = list(decide(Incoming(topic, 0, offset, -1, b"key", value, {})))
            ours = told(stage(group, f"mine.{topic}"), value)
            assert ours == [one.reasons if isinstance(one, Refusal) else (one.key, one.value) for one in theirs]
            kinds |= {(group, topic, type(one)) for one in theirs}
    assert kinds == {(*where, kind) for where in on_faust for kind in (Effect, Refusal)}


@pytest.mark.parametrize("topic", ["", "mine.orders.placed", "mine.nopayments.settled"])
def test_another_topic_is_refused_with_those_it_can_read(topic):
    with pytest.raises(InvalidSettingsError, match=r"must be a topic shipments\.scheduled or payments\.settled"):
        stage(Group.NOTIFICATION, topic)
