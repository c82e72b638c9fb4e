"""Brokers with tailpack's assignor follow the plans of a Planner. Consumers of librdkafka and of Java are unchanged."""

import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import ResourceType
from foreign_group import NAMES, ForeignGroup, carried_out, plan, rebalances, settings_of
from kafka_helpers import DEADLINE_S, admin, wait_for
from secured_broker import secured_kafka

from autoscaler.live.foreign import packed
from autoscaler.live.foreign.inspection import inspect
from autoscaler.live.foreign.members import Replicas
from autoscaler.live.foreign.planner import Planner
from contracts.clock import monotonic_s
from contracts.connection import Connection
from contracts.preflight import PreflightError
from contracts.topics import ScaledGroup
from tailpack.local import acls
from tailpack.local.broker import Broker, Node
from tailpack.local.jars import java, kafka_jars

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]


@contextmanager
def planning(group: ForeignGroup, session_s: float = 6.0, connection: Connection | None = None) -> Iterator[Planner]:
    settings = settings_of(group.topic, group.name, consumers="assigned", heartbeat_s=0.1, session_s=session_s)
    lines: list[str] = []
    planner = Planner(connection or Connection(bootstrap_servers=group.kafka), settings, lines.append)
    planner.start()
    try:
        yield planner
        assert not lines
    finally:
        planner.close(leave=False)


@pytest.mark.long
@pytest.mark.parametrize(("client", "plans"), [("librdkafka", 200), ("java", 200), ("franz-go", 50)])
def test_brokers_follow_every_plan_and_consumers_serve_every_event(client, plans, planned_kafka, namespace, tmp_path):
    draw = random.Random(1)
    with ForeignGroup(planned_kafka, namespace, tmp_path / "group", client, "consumer") as group:
        group.start(*NAMES)
        with planning(group) as planner:
            wait_for(lambda: len(planner.view.members) == len(NAMES), "all members")
            assignment = dict.fromkeys(range(group.partitions), NAMES[0])
            assert carried_out(planner, group, plan(1, dict(assignment)))
            group.load()
            for epoch in range(2, plans + 2):
                moved = draw.sample(range(group.partitions), 3 if epoch % 10 else group.partitions)
                assignment |= {number: draw.choice(NAMES) for number in moved}
                assert carried_out(planner, group, plan(epoch, dict(assignment)))
                assert not planner.problem
        group.served()
        assert group.events_after_revocation() == 0


def test_a_restart_of_the_planner_moves_nothing_and_after_its_death_the_brokers_spread_evenly(
    planned_kafka, namespace, tmp_path
):
    with ForeignGroup(planned_kafka, namespace, tmp_path / "group", "librdkafka", "consumer") as group:
        group.start(*NAMES[:2])
        lopsided = plan(1, {number: NAMES[number == 0] for number in range(group.partitions)})
        with planning(group, session_s=30) as planner:
            assert carried_out(planner, group, lopsided)
            before, generation = rebalances(group), planner.view.generation
        with planning(group) as planner:  # its session of 6 s holds from its first heartbeat on
            assert carried_out(planner, group, lopsided)
            assert (rebalances(group), planner.view.generation) == (before, generation)
            with planning(group) as standby:
                standby.carry_out(plan(2, dict.fromkeys(range(group.partitions), NAMES[0])), Replicas({NAMES[0]: ""}))
                wait_for(lambda: planner.is_fenced, "the older planner notices the newer one")
        group.start(NAMES[2])
        counts = [group.partitions // len(NAMES)] * len(NAMES)
        wait_for(lambda: [*Counter(group.owners().values()).values()] == counts, "an even spread without a planner")
        with planning(group) as planner:
            assert carried_out(planner, group, plan(3, lopsided.assignment or {}))
        assert group.events_after_revocation() == 0


def test_a_plan_too_long_for_one_rack_id_is_carried_by_several_members(planned_kafka, namespace, tmp_path, monkeypatch):
    group = ForeignGroup(planned_kafka, namespace, tmp_path / "group", "librdkafka", "consumer", partitions=100)
    with group, planning(group) as planner:
        group.start(*NAMES)
        wait_for(lambda: len(planner.view.members) == len(NAMES), "all members")
        draw = random.Random(1)
        for epoch, longest in enumerate([164, 1000, 1000, 172] * 3, start=1):
            monkeypatch.setattr(packed, "LONGEST", longest)
            record = plan(epoch, {number: draw.choice(NAMES) for number in range(group.partitions)})
            assert carried_out(planner, group, record)
            assert (len(planner._newest) == 1) == (longest == 1000)
        before, generation = rebalances(group), planner.view.generation
        with planning(group) as standby:
            assert carried_out(standby, group, record)
            assert (rebalances(group), standby.view.generation) == (before, generation)


def test_a_proved_death_is_handled_at_once_and_an_unplanned_consumer_gets_nothing(planned_kafka, namespace, tmp_path):
    group = ForeignGroup(planned_kafka, namespace, tmp_path / "group", "librdkafka", "consumer")
    with group, planning(group, session_s=60) as planner:
        group.start(*NAMES)
        wait_for(lambda: len(planner.view.members) == len(NAMES), "all members")
        record = plan(1, {number: NAMES[number % 3] for number in range(group.partitions)})
        assert carried_out(planner, group, record)
        group.processes["shop-1"].kill()
        group.processes.pop("shop-1").wait(DEADLINE_S)
        planner.remove([one for one in planner.view.members if one.client_id == "shop-1"])
        wait_for(lambda: {*group.owners()} == {*range(group.partitions)}, "owners long before its session ends")
        group.start("stranger")
        wait_for(lambda: len(planner.view.members) == len(NAMES), "the new member")
        rest = plan(2, {number: NAMES[2 * (number % 2)] for number in range(group.partitions)})
        assert carried_out(planner, group, rest, ("shop-0", "shop-2"))
        assert "stranger" not in group.owners().values()


def test_a_broker_without_the_assignor_is_reported_in_one_line(kafka, namespace, tmp_path):
    with ForeignGroup(kafka, namespace, tmp_path / "group", "librdkafka", "consumer") as group:
        group.start(*NAMES[:2])
        wait_for(lambda: len(set(group.owners().values())) == 2, "both own partitions")
        with planning(group) as planner:
            planner.carry_out(plan(1, dict.fromkeys(range(group.partitions), NAMES[0])), Replicas({NAMES[0]: ""}))
            wait_for(lambda: "'uniform' ignored the plan; install the assignor" in planner.problem, "the problem")
            assert len(planner.problem.splitlines()) == 1
        with pytest.raises(PreflightError, match="no broker has the assignor of tailpack; install it"):
            inspect(Connection(bootstrap_servers=kafka), settings_of(group.topic, group.name, consumers="auto"))


def test_a_plan_that_an_assignor_of_another_version_cannot_read_moves_nothing(
    planned_kafka, namespace, tmp_path, monkeypatch
):
    monkeypatch.setattr(packed, "PREFIX", "tailpack-plan:2:")
    with ForeignGroup(planned_kafka, namespace, tmp_path / "group", "librdkafka", "consumer") as group:
        group.start(*NAMES[:2])
        wait_for(lambda: len(set(group.owners().values())) == 2, "both own partitions")
        before = rebalances(group)
        with planning(group) as planner:
            planner.carry_out(plan(1, dict.fromkeys(range(group.partitions), NAMES[0])), Replicas({NAMES[0]: ""}))
            wait_for(lambda: "install the assignor of this version there" in planner.problem, "the problem")
            assert len(planner.problem.splitlines()) == 1
        assert rebalances(group) == before


@pytest.mark.long
def test_brokers_without_kip_848_are_refused_in_one_line(private_broker, namespace):
    address = private_broker.address()
    tool = [java(), "-cp", f"{kafka_jars()}/*", "org.apache.kafka.tools.FeatureCommand", "--bootstrap-server"]
    subprocess.run([*tool, address, "downgrade", "--feature", "group.version=0"], check=True, timeout=DEADLINE_S)
    connection, settings = (
        Connection(bootstrap_servers=address),
        settings_of(namespace, namespace, consumers="assigned"),
    )
    with pytest.raises(PreflightError, match=r"consumers = assigned needs Kafka 4\.0") as refused:
        wait_for(lambda: inspect(connection, settings), "a coordinator and its answer")
    assert len(str(refused.value).splitlines()) == 1


@pytest.mark.parametrize(("assignor", "consumers"), [("consumer", "assigned"), ("range", "led")])
def test_auto_finds_out_how_a_group_can_be_planned(planned_kafka, namespace, tmp_path, assignor, consumers):
    connection = Connection(bootstrap_servers=planned_kafka)
    with ForeignGroup(planned_kafka, namespace, tmp_path / "group", "librdkafka", assignor) as group:
        group.start(NAMES[0])
        wait_for(group.owners, "its partitions")
        chosen, line = inspect(connection, settings_of(group.topic, group.name, consumers="auto"))
        assert (chosen, len(line.splitlines())) == (consumers, 1)
        with pytest.raises(PreflightError, match=r"KIP-848|use the classic protocol; set consumers = led"):
            inspect(
                connection,
                settings_of(group.topic, group.name, consumers="led" if chosen == "assigned" else "assigned"),
            )


@pytest.mark.long
def test_the_printed_rights_suffice_over_tls_and_a_missing_one_is_named(tmp_path):
    with secured_kafka(tmp_path / "secured", prefix="other-", is_planned=True) as secured:
        secured.add_user("planner")
        login, plain = str(secured.client_properties(user="planner")), Connection(bootstrap_servers=secured.plain)
        group = ForeignGroup(secured.plain, "assigned-shop", tmp_path / "group", "librdkafka", "consumer")
        scaled = ScaledGroup(topic=group.topic, group=group.name)
        rights = acls.of_group("assigned", scaled, consumers="assigned")["autoscaler"]
        connection = Connection(bootstrap_servers=secured.address, client_properties=login)
        with group, ExitStack() as stack:
            group.start(*NAMES)
            wait_for(group.owners, "its partitions")
            acls.create(plain, {"planner": [right for right in rights if right.kind is ResourceType.GROUP]}, {})
            with pytest.raises(PreflightError, match="allow DESCRIBE on the topics of the group"):
                inspect(connection, settings_of(group.topic, group.name, consumers="auto"))
            acls.create(plain, {"planner": [right for right in rights if right.name != "tailpack-plan-"]}, {})
            planner = stack.enter_context(planning(group, connection=connection))
            wait_for(lambda: len(planner.view.members) == len(NAMES), "all members")
            wanted = plan(1, {number: NAMES[number % 3] for number in range(group.partitions)})
            planner.carry_out(wanted, Replicas(dict.fromkeys(NAMES, "")))
            wait_for(lambda: "on the prefix tailpack-plan-" in planner.problem, "the missing right")
            acls.create(plain, {"planner": rights}, {})
            assert carried_out(planner, group, wanted)


@pytest.fixture
def planned_cluster(tmp_path: Path) -> Iterator[Broker]:
    """Three brokers with the assignor, for a test that kills them."""
    cluster = Broker(tmp_path / "kafka", brokers=3, is_planned=True)
    cluster.start()
    try:
        yield cluster
    finally:
        for number in cluster.nodes:
            cluster.kill(number)


@pytest.mark.long
def test_another_coordinator_moves_nothing_and_one_without_the_assignor_is_named(planned_cluster, namespace, tmp_path):
    def described() -> int | None:
        client = admin(addresses)  # an older client asks the former coordinator for ever
        with suppress(KafkaException):
            return int(client.describe_consumer_groups([group.name])[group.name].result(DEADLINE_S).coordinator.id)
        return None

    def coordinator() -> int:
        return wait_for(described, "a coordinator")

    def without_assignor(number: int) -> None:
        planned_cluster.kill(number)
        planned_cluster.nodes[number] = Node(planned_cluster.nodes[number].folder)
        planned_cluster.start()

    addresses = ",".join(planned_cluster.addresses.values())
    group = ForeignGroup(addresses, namespace, tmp_path / "group", "librdkafka", "consumer")
    with group, planning(group, session_s=60) as planner:
        group.start(*NAMES)
        wait_for(lambda: len(planner.view.members) == len(NAMES), "all members")
        assert carried_out(planner, group, plan(1, dict.fromkeys(range(group.partitions), NAMES[0])))
        group.load()
        before, generation, first = rebalances(group), planner.view.generation, coordinator()
        planned_cluster.kill(first)
        killed_s = monotonic_s()
        wait_for(lambda: planner.view.seen_s > killed_s and not planner.problem, "another coordinator")
        assert (rebalances(group), planner.view.generation) == (before, generation)
        assert carried_out(planner, group, plan(2, {number: NAMES[number % 2] for number in range(group.partitions)}))
        without_assignor(first)
        second = coordinator()
        without_assignor(next(number for number in planned_cluster.nodes if number not in (first, second)))
        planned_cluster.kill(second)
        planner.carry_out(plan(3, dict.fromkeys(range(group.partitions), NAMES[2])), Replicas({NAMES[2]: ""}))
        wait_for(lambda: "ignored the plan; install the assignor of this version there" in planner.problem, "problem")
        group.served()
        assert group.events_after_revocation() == 0
