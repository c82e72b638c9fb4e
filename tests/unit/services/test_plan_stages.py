"""Shipment and Notification decide the same on the plan-following consumer and on Faust."""

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
    """Return (stage, topic) → decision of its Faust app."""
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


def outcome(stage: PlanStage, value: bytes | None) -> list[tuple[str, ...] | tuple[bytes, bytes]]:
    """Return the reasons of a refusal, or key and value of the output."""
    try:
        output = stage._rule(Event("t", 0, 0, b"key", value, (), 0, received_us=0, epoch=0), "r", DONE_US)
    except Refused as error:
        return [error.reasons]
    return [] if output is None else [(output.order_id.encode(), msgspec.json.encode(output))]


def test_each_topic_has_the_same_rules_as_on_faust(on_faust):
    assert set(on_faust) == {(group, topic) for group, (_, rules, _) in STAGES.items() for topic in rules}
    kinds = set()
    for (group, topic), decide in on_faust.items():
        for offset, value in enumerate(RECORDS):
            theirs = list(decide(Incoming(topic, 0, offset, -1, b"key", value, {})))
            ours = outcome(stage(group, f"mine.{topic}"), value)
            assert ours == [each.reasons if isinstance(each, Refusal) else (each.key, each.value) for each in theirs]
            kinds |= {(group, topic, type(each)) for each in theirs}
    assert kinds == {(*where, kind) for where in on_faust for kind in (Effect, Refusal)}


@pytest.mark.parametrize("topic", ["", "mine.orders.placed", "mine.nopayments.settled"])
def test_an_unreadable_topic_is_refused_and_the_readable_ones_are_named(topic):
    with pytest.raises(InvalidSettingsError, match=r"must end in shipments\.scheduled or payments\.settled"):
        stage(Group.NOTIFICATION, topic)
