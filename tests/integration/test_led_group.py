"""Unchanged consumers of a real Kafka obey the plans of a Leader: librdkafka, Java, Go and Node."""

import os
import random
import signal
from collections import Counter
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import NewTopic
from foreign_group import NAMES, ForeignGroup, carried_out, leading, plan, planned, rebalances, settings_of
from kafka_helpers import DEADLINE_S, admin, wait_for

from autoscaler.live.foreign.inspection import inspect
from autoscaler.live.foreign.members import Replicas
from contracts.connection import Connection
from contracts.journal import ReplicaChange
from contracts.preflight import PreflightError

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


@pytest.mark.parametrize(
    ("kind", "plans"),
    [
        *((f"{client} cooperative-sticky", 30) for client in ("librdkafka", "java")),
        *(
            pytest.param(f"{client} range", 200, marks=pytest.mark.long)
            for client in ("librdkafka", "java", "franz-go")
        ),
        *(pytest.param(kind, 50, marks=pytest.mark.long) for kind in ("sarama range", "kafkajs RoundRobinAssigner")),
    ],
)
def test_unchanged_consumers_obey_every_plan_and_serve_each_event_once(kind, plans, kafka, namespace, tmp_path):
    client, assignor = kind.split()
    draw, group = random.Random(1), ForeignGroup(kafka, namespace, tmp_path / "group", client, assignor)
    with group, leading(group, led_protocols=(assignor,)) as leader:
        wait_for(lambda: leader.view.leads, "the leadership of the empty group")
        group.start(*NAMES)
        wait_for(lambda: len(leader.view.members) == len(NAMES), "all members")
        group.load()
        assignment = dict.fromkeys(range(group.partitions), NAMES[0])
        for epoch in range(1, plans + 1):
            moved = draw.sample(range(group.partitions), 3 if epoch % 10 else group.partitions)
            assignment |= {number: draw.choice(NAMES) for number in moved}
            assert carried_out(leader, group, plan(epoch, dict(assignment)))
        assert leader.view.protocol == assignor
        repeated = [event for event, count in Counter(group.served()).items() if count > 1]
        assert group.events_after_revocation() == 0
        assert not repeated, "each client commits when its partitions are revoked"


def test_a_started_replica_gets_its_partitions_in_the_rebalance_that_admits_it(kafka, namespace, tmp_path, monkeypatch):
    monkeypatch.setattr("autoscaler.live.foreign.leader.PLAN_WAIT_S", DEADLINE_S)
    with ForeignGroup(kafka, namespace, tmp_path / "group", "librdkafka") as group, leading(group) as leader:
        group.start(NAMES[0])
        wait_for(lambda: leader.view.members, "the first member")
        assert carried_out(leader, group, plan(1, dict.fromkeys(range(group.partitions), NAMES[0])))
        before = leader.view.generation
        group.start(NAMES[1])
        wait_for(lambda: len(leader.view.members) == 2, "the second member", every_s=0.01)
        assert carried_out(leader, group, plan(2, {number: NAMES[number % 2] for number in range(group.partitions)}))
        assert leader.view.generation == before + 1


@pytest.fixture(params=["led", "assigned"])
def planned_group(request: pytest.FixtureRequest, namespace: str, tmp_path: Path) -> tuple[ForeignGroup, str]:
    """A group whose consumers the autoscaler starts, and its setting `consumers`."""
    brokers, assignor = {"led": ("kafka", "range"), "assigned": ("planned_kafka", "consumer")}[request.param]
    group = ForeignGroup(request.getfixturevalue(brokers), f"{namespace}-shop", tmp_path / "group", assignor=assignor)
    return group, request.param


def test_the_autoscaler_scales_plain_consumers_up_under_load_and_drains_them_after_it(planned_group, namespace):
    policy = {"POLICY": "tail-aware", "INITIAL_REPLICAS": "1", "POLICY_OPTIONS": '{"keep_s": 0}'}
    group, consumers = planned_group
    group.work_s = 0.005  # one serves less than the load
    with group, planned(group, namespace, consumers, **policy) as auto:
        auto.wait_for_plan(1, deadline_s=120)
        group.load()
        wait_for(lambda: len(set(group.owners().values())) > 1, "a second consumer that owns partitions")
        served = group.served()
        wait_for(lambda: len(auto.pids()) == 1, "the end of the others")
        wait_for(lambda: group.owners(auto.pids()) == auto.plans()[-1].assignment, "owners by the last plan")
        assert max(Counter(served).values()) == 1
        assert group.events_after_revocation() == 0
        ended = [changes[-2:] for name in NAMES if name not in auto.pids() and (changes := auto.changes(name))]
        last_changes = {tuple(one.change for one in changes) for changes in ended}
        assert last_changes == {(ReplicaChange.DRAINED, ReplicaChange.LEFT)}
        auto.signal(signal.SIGINT)
        assert auto.ended()[0] == 0


def test_a_death_is_handled_at_once_and_a_restart_of_the_autoscaler_disturbs_nobody(planned_group, namespace):
    group, consumers = planned_group
    group.session_ms = 240_000
    session = {"SESSION_S": "60"} if consumers == "assigned" else {}
    with group, planned(group, namespace, consumers, **session) as auto:
        auto.wait_for_plan(1, deadline_s=120)
        wait_for(lambda: group.owners(auto.pids()) == auto.plans()[-1].assignment, "owners by the first plan")
        group.load()
        dead = auto.pids()["shop-1"]
        os.kill(dead, signal.SIGKILL)
        # Without a LeaveGroup in its name, the group would wait for the session of four minutes.
        wait_for(lambda: auto.pids().get("shop-1") not in (None, dead), "its replacement")
        wait_for(lambda: set(group.owners(auto.pids()).values()) == {"shop-0", "shop-1"}, "both own partitions again")
        wait_for(lambda: group.owners(auto.pids()) == auto.plans()[-1].assignment, "owners by the last plan")

        auto.signal(signal.SIGKILL)
        auto.ended()
        before = rebalances(group)
        auto.start()
        auto.wait_for_tick(lambda tick: tick.partitions, "a decision of the next autoscaler")
        assert auto.changes("shop-0")[-1].change is ReplicaChange.READY
        assert rebalances(group) == before, "it joined under the same id within its session"
        group.served()
        assert group.events_after_revocation() == 0


def test_while_it_only_observes_the_group_keeps_its_owners_and_gives_those_of_a_dead_replica_to_others(
    planned_group, namespace
):
    group, consumers = planned_group
    with group, planned(group, namespace, consumers, SESSION_S="6", MEMBER_RATE="1000") as auto:
        auto.wait_for_plan(1, deadline_s=120)
        in_force = lambda: group.owners(auto.pids()) == auto.plans()[-1].assignment  # noqa: E731
        wait_for(in_force, "owners by the first plan")
        group.load()
        before, ticks = rebalances(group), len(auto.ticks())
        auto.command("pause", "--act", "off", "--for", "1h")
        auto.acting("Off")
        wait_for(lambda: len(auto.ticks()) > ticks + 10, "a time longer than the session")
        assert (in_force(), rebalances(group)) == (True, before)
        observed = {tick.action for tick in auto.ticks()[ticks:]}
        assert observed == {"no-change"}, "the leader does not count as a replica"
        os.kill(auto.pids()["shop-1"], signal.SIGKILL)
        left = {"shop-0": auto.pids()["shop-0"]}
        wait_for(lambda: len(group.owners(left)) == group.partitions, "one that has all partitions")
        auto.command("resume", "--act", "on")
        auto.acting("On")
        wait_for(lambda: {*group.owners(auto.pids()).values()} == {"shop-0", "shop-1"} and in_force(), "the plan")
        assert auto.pids()["shop-0"] == left["shop-0"]
        group.served()
        assert group.events_after_revocation() == 0


@pytest.mark.parametrize("take_over", ["wait", "kick"])
def test_a_group_outlives_the_planner_and_is_taken_over_only_if_configured(kafka, namespace, tmp_path, take_over):
    lines: list[str] = []
    with ForeignGroup(kafka, namespace, tmp_path / "group", "librdkafka") as group:
        with leading(group) as leader:
            group.start(*NAMES[:2])
            wait_for(lambda: len(leader.view.members) == 2, "both members")
            group.load()
            assert carried_out(leader, group, plan(1, dict.fromkeys(range(group.partitions), NAMES[0])))
        group.start(NAMES[2])  # while the group still waits for the planner, until its session ends
        wait_for(lambda: len(set(group.owners().values())) == len(NAMES), "their own assignor goes on with all three")
        wanted = plan(2, {number: NAMES[number % 2] for number in range(group.partitions)})
        with leading(group, take_over, lines) as leader:
            leader.carry_out(wanted, Replicas(dict.fromkeys(NAMES, "")))
            wait_for(lambda: leader.view.seen_s, "the first rebalance")
            if take_over == "kick":
                assert carried_out(leader, group, wanted)
                assert lines
            else:
                wait_for(lambda: "plans are not followed" in leader.problem, "the reason why it waits")
                leader.problem = "a failure that has ended"
                wait_for(lambda: "plans are not followed" in leader.problem, "the reason why it still waits")
                assert not leader.view.leads
                group.stop(*NAMES)
                wait_for(lambda: leader.view.leads, "the leadership once all have left")
                group.start(*NAMES)
                assert carried_out(leader, group, wanted)
            group.served()
            assert group.events_after_revocation() == 0


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"group.protocol": "consumer"}, "group.protocol=classic"),
        ({"partition.assignment.strategy": "roundrobin"}, "its assignor is roundrobin; add it to led_protocols"),
    ],
)
def test_a_group_that_cannot_be_led_is_left_alone(kafka, namespace, options, reason):
    client = admin(kafka)
    client.create_topics([NewTopic(namespace, 2, 1)])[namespace].result(DEADLINE_S)
    member = Consumer({"bootstrap.servers": kafka, "group.id": namespace} | options)
    member.subscribe([namespace])
    try:
        wait_for(lambda: member.poll(0.1) or member.assignment(), "its assignment")
        with pytest.raises(PreflightError, match=reason) as refused:
            inspect(Connection(bootstrap_servers=kafka), settings_of(namespace, namespace))
        assert len(str(refused.value).splitlines()) == 1
        assert member.assignment()
    finally:
        member.close()
