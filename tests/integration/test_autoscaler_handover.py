"""The autoscaler with real replicas, when the group changes for other reasons than a decision of the policy."""

import signal
from pathlib import Path

import msgspec
import psutil
import pytest
from confluent_kafka.admin import NewPartitions
from kafka_helpers import admin, produce, wait_for
from live_autoscaler import PARTITIONS, two_replicas
from payment_group import request
from payment_load import PaymentLoad

from contracts.events import PaymentSettled
from contracts.journal import ReplicaChange
from contracts.plan import PlanRecord
from contracts.topics import Topic, qualified

pytestmark = pytest.mark.kafka
RATE = 120.0


def assert_others_served(settled: list[PaymentSettled], without: PlanRecord, until_us: int) -> None:
    """Fail unless those whom the plan names served every partition under it, before `until_us`."""
    served = {
        one.timeline.partition
        for one in settled
        if one.timeline.epoch == without.epoch
        and one.timeline.replica in without.replicas
        and (one.timeline.done_us or 0) < until_us
    }
    assert served == set(range(PARTITIONS)), "no partition waited for the process that was being started"


def test_a_replica_stopped_by_an_operator_hands_over_its_partitions_and_is_replaced(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    with two_replicas(kafka, namespace, tmp_path) as autoscaler:
        autoscaler.wait_for_plan(1)
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            wait_for(lambda: len(load.settled()) > RATE, "a second of load served")
            victim = autoscaler.pids()["payment-1"]
            psutil.Process(victim).send_signal(signal.SIGTERM)
            without, whole = autoscaler.wait_for_plan(3)[1:3]
            served = len(load.settled())
            wait_for(lambda: len(load.settled()) > served + RATE, "another second of load served")
        wait_for(lambda: not load.unserved(), "every payment served")
        assert autoscaler.get("/plan")["rebalance_time"]["pauses_seen"] >= 2, "what replicas report of it is learned"
        assert without.replicas == ("payment-0",)
        assert whole.replicas == ("payment-0", "payment-1")
        assert without.evictions == whole.evictions == ()
        at_us = {one.change: one.at_us for one in autoscaler.changes("payment-1")}
        assert ReplicaChange.DIED not in at_us
        assert without.at_us < at_us[ReplicaChange.LEFT], "the others get a plan while it still serves"
        assert at_us[ReplicaChange.LEFT] < at_us[ReplicaChange.STARTED] < at_us[ReplicaChange.READY]
        assert autoscaler.pids()["payment-1"] != victim
        settled = load.settled()
        assert len(settled) == len(load.orders), "nothing was served twice"
        assert_others_served(settled, without, at_us[ReplicaChange.READY])

        autoscaler.signal(signal.SIGTERM)
        assert autoscaler.ended()[0] == 0


def test_the_partitions_of_a_dead_replica_wait_for_its_return(kafka: str, namespace: str, tmp_path: Path) -> None:
    with two_replicas(kafka, namespace, tmp_path, ABSENCE_GRACE_S="30") as autoscaler:
        first = autoscaler.wait_for_plan(1)[0]
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            wait_for(lambda: len(load.settled()) > RATE, "a second of load served")
            killed = autoscaler.pids()["payment-1"]
            psutil.Process(killed).kill()
            waiting = autoscaler.wait_for_plan(2)[1]
            ready = [ReplicaChange.READY] * 2
            wait_for(
                lambda: [one.change for one in autoscaler.changes("payment-1") if one.change in ready] == ready,
                "its return",
            )
            wait_for(lambda: max(one.timeline.received_us or 0 for one in of(load, 1)) > waiting.at_us, "its events")
        wait_for(lambda: not load.unserved(), "every payment served")
        assert (waiting.replicas, waiting.assignment, waiting.grace_s) == (first.replicas, first.assignment, 30.0)
        assert [one.replica for one in waiting.evictions] == ["payment-1"]
        assert len(autoscaler.plans()) == 2, "it came back in time, so nothing had to move"
        owners = {one.timeline.partition: one.timeline.replica for one in load.settled()}
        assert owners == first.assignment, "nobody else ever served its partitions"


def test_an_upgrade_of_the_controller_restarts_no_replica(kafka: str, namespace: str, tmp_path: Path) -> None:
    with two_replicas(kafka, namespace, tmp_path) as autoscaler:
        autoscaler.wait_for_plan(1)
        before = autoscaler.pids()
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            wait_for(lambda: len(load.settled()) > RATE, "a second of load served")
            takings = taken(load)
            autoscaler.signal(signal.SIGTERM)
            assert autoscaler.ended() == (0, "")
            served = len(load.settled())
            wait_for(lambda: len(load.settled()) > served + RATE, "a second of load served without a controller")
            autoscaler.start()
            autoscaler.wait_for_tick(lambda tick: tick.tick >= 2 and tick.partitions, "the next one's observations")
            assert autoscaler.pids() == before, "the same processes"
            served = len(load.settled())
            wait_for(lambda: len(load.settled()) > served + RATE, "another second of load served")
            assert len(autoscaler.plans()) == 1, "nothing was to be changed"
            assert taken(load) == takings, "no partition was given up meanwhile, so none paused"
            psutil.Process(before["payment-1"]).send_signal(signal.SIGTERM)
            without, whole = autoscaler.wait_for_plan(3)[1:3]
        wait_for(lambda: not load.unserved(), "every payment served")
        assert [plan.epoch for plan in (without, whole)] == [2, 3], "the new one goes on where the old one ended"
        assert (without.replicas, whole.replicas) == (("payment-0",), ("payment-0", "payment-1"))
        assert len(load.settled()) == len(load.orders), "nothing was served twice"


def taken(load: PaymentLoad) -> set[tuple[int | None, int | None]]:
    """Partition and generation in which its replica took it, of all that was served."""
    return {(one.timeline.partition, one.timeline.generation) for one in load.settled()}


def of(load: PaymentLoad, partition: int) -> list[PaymentSettled]:
    return [one for one in load.settled() if one.timeline.partition == partition]


def test_partitions_added_during_a_run_are_served(kafka: str, namespace: str, tmp_path: Path) -> None:
    with two_replicas(kafka, namespace, tmp_path) as autoscaler:
        first = autoscaler.wait_for_plan(1)[0]
        with PaymentLoad(kafka, namespace, rate=RATE, partitions=PARTITIONS) as load:
            wait_for(lambda: len(load.settled()) > RATE, "a second of load served")
            topic = qualified(namespace, Topic.PAYMENTS_REQUESTED)
            client = admin(kafka)  # kept: its answers are lost with it
            client.create_partitions([NewPartitions(topic, 2 * PARTITIONS)])[topic].result(10)
            plan = autoscaler.wait_for_plan(2)[1]
            for partition in range(PARTITIONS, 2 * PARTITIONS):
                events = [request(100_000 + 10 * partition + number) for number in range(10)]
                produce(
                    kafka,
                    namespace,
                    Topic.PAYMENTS_REQUESTED,
                    [msgspec.json.encode(event) for event in events],
                    partition=partition,
                )
                load.orders += [event.order_id for event in events]
            autoscaler.wait_for_tick(
                lambda tick: len(tick.partitions) == 2 * PARTITIONS, "observations of all partitions"
            )
        wait_for(lambda: not load.unserved(), "every payment served, those in the new partitions included")
        assert plan.replicas == first.replicas
        assert plan.assignment is not None
        assert first.assignment is not None
        assert first.assignment.items() <= plan.assignment.items(), "nothing that was served had to move"
        assert len(plan.assignment) == 2 * PARTITIONS
        assert {plan.assignment[new] for new in range(PARTITIONS, 2 * PARTITIONS)} == set(plan.replicas)
        served_by = {one.timeline.partition: one.timeline.replica for one in load.settled()}
        assert served_by == plan.assignment
        psutil.Process(autoscaler.pids()["payment-0"]).kill()
        assert len(autoscaler.wait_for_plan(4)[3].assignment or {}) == 2 * PARTITIONS
        assert len(load.settled()) == len(load.orders), "nothing was served twice"
