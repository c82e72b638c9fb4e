"""The autoscaler as a process: start, pages, exit and restart. Replicas are stubs."""

import signal
import statistics
import urllib.error
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from kafka_helpers import admin, create_topics, wait_for
from live_autoscaler import Autoscaler, alive

from contracts.journal import ReplicaChange
from contracts.topics import Topic, qualified

pytestmark = pytest.mark.kafka


@pytest.fixture
def autoscaler(kafka: str, namespace: str, tmp_path: Path) -> Iterator[Autoscaler]:
    create_topics(kafka, namespace, 4)
    with Autoscaler(kafka, namespace, tmp_path / "state") as running:
        running.wait_for_plan(1)
        yield running


def test_the_first_plan_the_pages_and_a_clean_exit(autoscaler: Autoscaler) -> None:
    (plan,) = autoscaler.plans()
    assert plan.replicas == ("payment-0", "payment-1")
    assert plan.assignment == {0: "payment-0", 1: "payment-1", 2: "payment-0", 3: "payment-1"}
    wait_for(lambda: len(autoscaler.get("/decisions?limit=100")) >= 3, "three ticks")
    assert autoscaler.get("/healthz")["status"] == "ok"
    assert autoscaler.get("/plan")["in_force"]["epoch"] == 1
    newest, before, first = autoscaler.get("/decisions?limit=3")
    assert newest["tick"] == before["tick"] + 1 == first["tick"] + 2

    def in_time() -> bool:
        phases = [each["at_us"] / 1e6 % 1 for each in autoscaler.get("/decisions?limit=3")]
        return 0.05 < statistics.median(phases) < 0.6  # on a busy machine one of them may be late, or more at first

    wait_for(in_time, "ticks fall a tenth of a second after whole seconds")
    with pytest.raises(urllib.error.HTTPError, match="400") as refused:
        autoscaler.get("/decisions?limit=0")
    refused.value.close()

    autoscaler.signal(signal.SIGINT)
    assert autoscaler.ended() == (0, "")
    assert autoscaler.pids() == {}
    for replica in plan.replicas:
        changes = [one.change.value for one in autoscaler.changes(replica)]
        assert changes == ["requested", "started", "ready", "left"]


def test_replicas_that_a_controller_left_behind_are_stopped_by_stop_replicas(autoscaler: Autoscaler) -> None:
    left = autoscaler.pids()
    refused, output = autoscaler.stop_replicas()
    assert (refused, len(output.splitlines())) == (2, 1)
    assert "another autoscaler runs on" in output
    autoscaler.signal(signal.SIGTERM)
    assert autoscaler.ended() == (0, "")
    assert all(alive(pid) for pid in left.values())
    assert autoscaler.stop_replicas() == (0, "autoscaler: stopped payment-0, payment-1\n")
    assert not any(alive(pid) for pid in left.values())
    assert autoscaler.pids() == {}
    assert autoscaler.stop_replicas() == (0, "autoscaler: stopped no replica\n")


def test_without_a_journal_the_controller_continues_and_reports_the_problem(autoscaler: Autoscaler) -> None:
    topic = qualified(autoscaler.namespace, Topic.JOURNAL)
    client = admin(autoscaler.kafka)
    client.delete_topics([topic])[topic].result(60)
    psutil.Process(autoscaler.pids()["payment-1"]).kill()
    assert autoscaler.wait_for_plan(2)[1].replicas == ("payment-0",)
    why = wait_for(lambda: trouble(autoscaler, "journal"), "the trouble on the health page")
    assert "no broker has acknowledged a record for" in why
    create_topics(autoscaler.kafka, autoscaler.namespace, 4)
    wait_for(lambda: autoscaler.get("/healthz")["status"] == "ok", "the end of the trouble")
    wait_for(lambda: any(tick.partitions for tick in autoscaler.ticks()), "a tick with partitions")


def test_a_killed_replica_is_evicted_and_replaced(autoscaler: Autoscaler) -> None:
    autoscaler.wait_for_tick(lambda tick: tick.partitions, "an observation")
    victim = autoscaler.pids()["payment-1"]
    psutil.Process(victim).kill()
    repaired = autoscaler.wait_for_plan(2)[1]
    assert repaired.replicas == ("payment-0",)
    assert set((repaired.assignment or {}).values()) == {"payment-0"}
    (eviction,) = repaired.evictions
    assert eviction.replica == "payment-1"
    assert eviction.member_id == f"member-payment-1-{eviction.incarnation}"
    whole = autoscaler.wait_for_plan(3)[2]
    assert whole.replicas == ("payment-0", "payment-1")
    assert whole.assignment == autoscaler.plans()[0].assignment
    assert autoscaler.pids()["payment-1"] != victim
    changes = autoscaler.changes("payment-1")
    died = next(one for one in changes if one.change is ReplicaChange.DIED)
    assert died.detail == "killed by SIGKILL"
    again = [one for one in changes if one.change is ReplicaChange.STARTED][1]
    assert died.at_us <= autoscaler.written()[1].at_us < again.at_us, (
        "the remaining replicas get a plan before another replica starts"
    )


def test_a_plan_that_a_member_does_not_adopt_is_reported_and_written_again(
    kafka: str, namespace: str, tmp_path: Path
) -> None:
    create_topics(kafka, namespace, 4)
    deaf = {"STUB_DEAF_TO": "payment-1:2", "TAILPACK_TAKEN_WITHIN_S": "2"}
    with Autoscaler(kafka, namespace, tmp_path / "state", more=deaf) as autoscaler:
        autoscaler.wait_for_plan(2)
        why = wait_for(lambda: trouble(autoscaler, "plans"), "the trouble on the health page")
        assert "was not adopted within 2 s by payment-1 (serves by plan 0)" in why
        plans = autoscaler.wait_for_plan(3)
        assert [plan.epoch for plan in plans] == [1, 2, 3]
        assert plans[0].assignment == plans[1].assignment == plans[2].assignment
        wait_for(lambda: autoscaler.get("/healthz")["status"] == "ok", "the end of the trouble")
        assert [one.action for one in autoscaler.written()] == ["start", "repeat", "repeat"]


def test_a_second_controller_makes_the_first_exit(autoscaler: Autoscaler, tmp_path: Path) -> None:
    before = autoscaler.pids()
    with Autoscaler(autoscaler.kafka, autoscaler.namespace, tmp_path / "other") as second:
        wait_for(lambda: second.pids().keys() == before.keys(), "the second one's replicas")
        psutil.Process(before["payment-1"]).kill()  # the first one must write a plan now, and may not
        code, output = autoscaler.ended()
        assert code == 3
        assert len(output.splitlines()) == 1
        assert "another autoscaler writes" in output
        assert alive(before["payment-0"]), "its replicas stay"


def trouble(autoscaler: Autoscaler, where: str) -> str | None:
    """Return this problem as the health page reports it; a busy machine may have others."""
    problem: str | None = None
    with suppress(urllib.error.HTTPError):  # before the first tick
        problem = autoscaler.get("/healthz").get("problems", {}).get(where)
    return problem


def test_without_a_broker_the_controller_prints_one_line(tmp_path: Path) -> None:
    alone = Autoscaler("127.0.0.1:1", "nobody", tmp_path / "state")
    alone.start()
    code, output = alone.ended()
    assert code == 4
    assert output.startswith("autoscaler: Kafka at 127.0.0.1:1 cannot be reached (")
    assert len(output.splitlines()) == 1
