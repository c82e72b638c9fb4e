"""The progress topic becomes unreadable while an autoscaler runs: no replica is stopped, and the load still counts."""

from pathlib import Path

import pytest
from kafka_helpers import admin, create_topics, produce, wait_for
from live_autoscaler import PARTITIONS, Autoscaler

from autoscaler.live.silence import HUNG_AFTER_S
from contracts.journal import ReplicaChange
from contracts.topics import Topic, qualified

pytestmark = [pytest.mark.kafka, pytest.mark.long]
TWO = {"TAILPACK_MIN_REPLICAS": "2"}


def test_no_replica_is_killed_without_the_progress_topic_and_the_group_can_grow(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    create_topics(kafka, namespace, PARTITIONS)
    name = qualified(namespace, Topic.PROGRESS)
    client = admin(kafka)  # kept: its answers are lost with it
    with Autoscaler(kafka, namespace, tmp_path / "state", policy="algorithm-2", more=TWO) as autoscaler:
        autoscaler.wait_for_plan(1)
        autoscaler.wait_for_tick(lambda tick: tick.partitions, "an observation")
        before = autoscaler.pids()
        client.delete_topics([name])[name].result(60)
        wait_for(lambda: "reports" in autoscaler.get("/healthz").get("problems", {}), "it says that nobody reports")
        assert autoscaler.get("/healthz")["status"] == "degraded"
        dark = autoscaler.ticks()[-1].tick
        autoscaler.wait_for_tick(
            lambda tick: tick.tick > dark + HUNG_AFTER_S + 3, "longer than a hung one may be silent"
        )
        assert autoscaler.pids() == before

        for partition in range(PARTITIONS):
            produce(kafka, namespace, Topic.PAYMENTS_REQUESTED, [b"{}"] * 500, partition=partition)
        wait_for(
            lambda: max(len(plan.replicas) for plan in autoscaler.plans()) == PARTITIONS, "as many as the lag asks for"
        )
        ever = {replica for plan in autoscaler.plans() for replica in plan.replicas}
        assert ever >= before.keys()  # with the lag gone, any of them may be drained again: that is no death
        changes = {one.change for replica in ever for one in autoscaler.changes(replica)}
        assert not changes & {ReplicaChange.DIED, ReplicaChange.START_FAILED}
