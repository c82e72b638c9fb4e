"""Every benchmark, run as a command: the keys of its JSON, plausible values, and no process left behind."""

import json
import os
import uuid
from typing import Any

import psutil
import pytest
from tailpack_command import tailpack

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(300)]
LONG = pytest.mark.long
NO_FAULTS = {"lost": 0, "order_violations": 0, "offset_regressions": 0, "unfinished": 0, "problem": ""}


def bench(*words: str, status: tuple[int, ...] = (0,)) -> dict[str, Any]:
    ours = {"STARTED_BY": uuid.uuid4().hex}  # which children inherit
    done = tailpack("dev", "bench", *words, "--json", deadline_s=280, environ=os.environ | ours)
    assert done.returncode in status, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    assert found["rows"]
    running = [
        one
        for one in psutil.process_iter(["environ", "cmdline"])
        if (one.info["environ"] or {}).items() >= ours.items()
    ]
    assert running == [], "no process is left behind"
    return found


def test_handover_accounts_for_every_event_while_partitions_move() -> None:
    few = ("--replicas", "2", "--partitions", "4", "--rate", "60", "--heartbeat", "1", "--handovers", "3")
    found = bench("handover", *few, status=(0, 1))  # 1: a busy machine made the load late
    assert found["handovers"] >= 3
    assert {one["kind"] for one in found["kinds"]} == {"move 1", "move 2"}, (
        "with two replicas two partitions are swapped"
    )
    assert found.items() >= (NO_FAULTS | {"duplicates": 0, "problem": found["problem"]}).items()
    assert 0 < found["moved_p99_s"] <= found["moved_max_s"]
    assert isinstance(found["unmoved_extra_s"], float)


@LONG
def test_other_runtimes_take_the_steps_that_they_support() -> None:
    found = bench("handover", "--quick", "--runtime", "kip848", "--handovers", "4", "--heartbeat", "0.5", status=(0, 1))
    assert {one["kind"] for one in found["kinds"]} <= {"sigterm", "start"}
    assert (found["lost"], found["handovers"] >= 4) == (0, True)


@LONG
@pytest.mark.parametrize("consumers", ["led", "assigned"])
def test_consumers_of_java_and_librdkafka_are_planned_in_one_table(consumers: str) -> None:
    names = [f"{consumers}-java", f"{consumers}-librdkafka"]
    how = ("--quick", "--runtime", ",".join(names), "--heartbeat", "300ms", "--handovers", "4")
    found = bench("handover", *how, status=(0, 1))
    assert [row["runtime"] for row in found["rows"]] == names
    for row in found["rows"]:
        assert (row["lost"], row["duplicates"], row["handovers"] >= 1) == (0, 0, True)
        assert 0 <= row["ownerless_p50_s"] <= row["taken_p99_s"]


@LONG
def test_failover_distinguishes_known_from_unknown_deaths() -> None:
    found = bench("failover", "--quick", status=(0, 1))
    assert found.items() >= (NO_FAULTS | {"problem": found["problem"]}).items()
    assert found["known_death_max_s"] < 5 < found["unknown_death_max_s"], "the session of an unknown death runs out"
    assert found["sigterms"] >= 1


@pytest.mark.parametrize(
    "stage", ["payment", pytest.param("order", marks=LONG), "shipment", pytest.param("notification", marks=LONG)]
)
def test_a_stage_serves_its_backlog(stage: str) -> None:
    found = bench("stage", stage, "--records", "400", "--partitions", "2", "--instances", "2")
    assert (found["stage"], found["instances"], found["orders"]) == (stage, 2, 400)
    assert found["orders_per_s"] > 0
    assert found["cores"] > 0
    if stage == "payment":
        assert found["orders_per_s"] < 1.2 * 2 / 0.005, "5 ms for an event; commits are a tenth of the time apart"


@LONG
def test_the_cores_of_each_process_of_the_demo_are_measured() -> None:
    found = bench("stage", "demo", "--quick", "--rate", "5")
    cores = {name: value for name, value in found.items() if name.endswith("_cores")}
    assert len(cores) == 8
    assert all(value > 0 for value in cores.values())
    assert found["cores"] == pytest.approx(sum(cores.values()), abs=0.01)
    assert 0.02 < found["end_to_end_p50_s"] <= found["end_to_end_p99_s"], "Payment alone takes 20 ms"


@LONG
def test_the_controller_is_measured_with_a_small_group() -> None:
    found = bench("scale", "--quick", "--sizes", "4x8")
    assert (found["members"], found["partitions"], found["problem"]) == (4, 8, "")
    assert all(found[name] > 0 for name in found if name.endswith(("_s", "_cores", "_day")))


def test_the_time_of_decisions_is_measured() -> None:
    found = bench("decide", "--quick")
    assert (found["partitions"], found["replicas"]) == (100, 20)
    assert all(0 < row["algorithm-2_ms"] < 1000 for row in found["rows"])


@LONG
@pytest.mark.spark
def test_the_report_counts_every_event() -> None:
    found = bench("report", "--events", "20000")
    assert found["events"] == 20_000
    assert found["wall_s"] > 0
    assert 0.02 < found["peak_rss_gib"] < 8
