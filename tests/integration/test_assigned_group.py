"""Brokers with tailpack's assignor follow the plans of a Planner. Consumers of librdkafka and of Java are unchanged."""

import random
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from foreign_group import ForeignGroup
from kafka_helpers import wait_for

from autoscaler.live.foreign.members import Replicas
from autoscaler.live.foreign.planner import Planner
from autoscaler.live.settings import AutoscalerSettings
from contracts.connection import Connection
from contracts.plan import PlanRecord
from tailpack.local.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
NAMES = ("shop-0", "shop-1", "shop-2")


@pytest.fixture(scope="module")
def planned_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap address of a broker with the assignor."""
    broker = Broker(tmp_path_factory.mktemp("planned"), is_planned=True)
    try:
        yield broker.start()
    finally:
        broker.kill()


def plan(epoch: int, assignment: dict[int, str]) -> PlanRecord:
    return PlanRecord(epoch=epoch, at_us=1, replicas=(*{*assignment.values()},), assignment=assignment, reason="test")


@contextmanager
def planning(group: ForeignGroup, session_s: float = 6.0) -> Iterator[Planner]:
    settings = AutoscalerSettings(
        policy="static", state_dir="unused", consumers="assigned", topic=group.topic, group=group.name,
        heartbeat_s=0.1, session_s=session_s, replica_command="unused",
    )  # fmt: skip
    lines: list[str] = []
    planner = Planner(Connection(bootstrap_servers=group.kafka), settings, lines.append)
    planner.start()
    try:
        yield planner
        assert not lines
    finally:
        planner.close(leave=False)


def carried_out(planner: Planner, group: ForeignGroup, record: PlanRecord, names: tuple[str, ...] = NAMES) -> bool:
    planner.carry_out(record, Replicas(dict.fromkeys(names, "")))
    wait_for(lambda: planner.view.epoch == record.epoch, f"plan {record.epoch}", every_s=0.01)
    return bool(wait_for(lambda: group.owners() == record.assignment, f"owners by plan {record.epoch}", every_s=0.02))


@pytest.mark.parametrize("client", ["librdkafka", "java"])
def test_brokers_follow_fifty_plans_and_consumers_serve_each_event_once(client, planned_kafka, namespace, tmp_path):
    draw = random.Random(1)
    with ForeignGroup(planned_kafka, namespace, tmp_path / "group", client, "consumer") as group:
        group.start(*NAMES)
        with planning(group) as planner:
            wait_for(lambda: len(planner.view.members) == len(NAMES), "all members")
            group.load()
            assignment = dict.fromkeys(range(group.partitions), NAMES[0])
            for epoch in range(1, 51):
                moved = draw.sample(range(group.partitions), 3 if epoch % 10 else group.partitions)
                assignment |= {number: draw.choice(NAMES) for number in moved}
                assert carried_out(planner, group, plan(epoch, dict(assignment)))
                assert not planner.problem
        repeated = [event for event, count in Counter(group.served()).items() if count > 1]
        assert group.events_after_revocation() == 0
        assert not repeated, "each client commits when its partitions are revoked"
