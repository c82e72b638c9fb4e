"""`tailpack simulate`, as somebody at a terminal or a script meets it."""

import functools
import json

import command_line
import pytest

from contracts.validation import InvalidSettingsError
from report.run_info import RunInfo
from tailpack.errors import TailpackError

SHORT = ["--set", "duration_s=60"]
SPACINGS = ((), ("--set", "spacing=burst"))


run = functools.partial(command_line.run, "simulate")


def test_as_json_it_prints_one_object_and_nothing_else():
    result = run("w1", "--policy", "algorithm-2", "--seed", "7", "--json", *SHORT)
    found = json.loads(result.stdout)
    assert result.exit_code == 0
    assert list(found)[:9] == ["scenario", "policy", "seed", "events", "in_sla", "p50_s", "p99_s", "p999_s", "max_s"]
    assert {"replica_minutes", "packing_replica_minutes", "scale_ups", "scale_downs", "wall_s", "regret"} <= set(found)
    assert {"reassignments", "moved_partitions", "policy_s", "lost", "duplicates"} <= set(found)
    assert (found["scenario"], found["policy"], found["seed"]) == ("w1", "algorithm-2", 7)


def test_a_trace_of_ones_own(tmp_path):
    trace = tmp_path / "mine.csv"
    trace.write_text("second,events\n0,80\n1,120\n", encoding="utf-8-sig")  # as spreadsheets write it
    even, bursts = (run("w1", "--policy", "static", "--trace", trace, "--json", *words) for words in SPACINGS)
    found = json.loads(bursts.stdout)
    assert (found["scenario"], found["events"], found["in_sla"], found["max_s"]) == ("mine.csv", 200, 0.9, 0.6)
    assert json.loads(even.stdout)["in_sla"] == 1.0, "as evenly as the counts alone say"
    assert "mine.csv: events smooth within each second" in even.stderr


def test_a_wrong_trace_is_one_message_with_the_lines(tmp_path):
    trace = tmp_path / "mine.csv"
    trace.write_text("second,events\n0,80\n2,-1\n")
    with pytest.raises(InvalidSettingsError) as wrong:
        run("w1", "--trace", str(trace))
    assert wrong.value.problems == ["mine.csv: line 3: second 2 is where 1 belongs; one row for each second"]


@pytest.mark.parametrize(
    "change",
    [
        "split=random", "spacing=poisson", "rebalance_time_s=2", "startup_s=gke", "decision_interval_s=30",
        "heartbeat_s=3", "delivery=share", "load.spacing=smooth", "simulation.poll_events=50", "policy.f_up=0.8",
    ],
)  # fmt: skip
def test_every_part_of_the_question_can_be_set(change):
    assert run("w1", "--set", change, *SHORT, "--json").exit_code == 0


def test_the_run_can_be_kept_and_the_figures_stay_the_same(tmp_path):
    result = run("w1", *SHORT, "--json", "--out", str(tmp_path / "my run"))
    figures, info = json.loads(result.stdout), RunInfo.load(tmp_path / "my run")
    assert figures == json.loads(run("w1", *SHORT, "--json").stdout) | {
        name: figures[name] for name in ("wall_s", "policy_s")
    }
    assert (info.run, info.world, info.topology) == ("my run", "simulated", "payment-only")
    assert info.events_scheduled == figures["events"]
    assert f"tailpack report '{tmp_path / 'my run'}'" in result.stderr
    with pytest.raises(TailpackError, match="my run holds a run already; choose another name"):
        run("w1", *SHORT, "--out", tmp_path / "my run")


def test_a_kept_run_says_what_was_really_sent(tmp_path):
    trace = tmp_path / "mine.csv"
    trace.write_text("second,p0,p1\n0,80,0\n1,120,7\n")
    run("w1", "--policy", "static", "--trace", str(trace), "--out", str(tmp_path / "run"))
    info = RunInfo.load(tmp_path / "run")
    assert (info.payment_partitions, info.duration_s, info.events_scheduled) == (2, 2.0, 207)
    assert (info.scenario["payment"]["partitions"], info.scenario["load"]["split"]) == (2, "table")


def test_the_optimum_stands_beside_a_result_and_can_be_asked_for_alone(tmp_path):
    beside = json.loads(run("w1", "--json", *SHORT).stdout)
    alone = json.loads(command_line.run("optimum", "w1", "--json", *SHORT).stdout)
    assert beside["optimum_replica_minutes"] == alone["optimum_replica_minutes"] == alone["simulated_replica_minutes"]
    assert beside["optimum_lower"] == alone["lower"] <= alone["lower_none_late"] <= alone["optimum_replica_minutes"]
    assert {"method", "wall_s"} <= set(alone)
    assert {"plan_changes", "moved", "phase_s", "regret"} <= set(beside)
    assert alone["gap"] == pytest.approx(alone["optimum_replica_minutes"] / alone["lower"] - 1)
    without = json.loads(run("w1", "--no-optimum", "--json", *SHORT).stdout)
    assert (without["optimum_replica_minutes"], without["optimum_lower"], without["regret"]) == (None, None, None)
    trace = tmp_path / "mine.csv"
    trace.write_text("at_s,partition\n0.1,0\n0.2,1\n")
    assert json.loads(command_line.run("optimum", trace, "--json").stdout)["events"] == 2


@pytest.mark.parametrize("words", [("simulate", "smoke", "--no-optimum"), ("compare", "smoke", "--policy", "static")])
def test_faults_that_are_live_only_are_said(words: tuple[str, ...], tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = command_line.run(*words, "--set", 'faults=["poison 3-4 1", "burst 3-4 2"]')
    assert "smoke: load.faults: poison: live only" in result.stderr


def test_where_no_optimum_is_known_it_is_said_and_the_result_stands():
    result = run("w1", "--set", "startup_s=gke", "--json", *SHORT)
    assert json.loads(result.stdout)["optimum_lower"] is None
    assert "no optimum beside it: start-ups are random" in result.stderr


def test_no_regret_without_an_optimum_or_where_the_promise_is_broken():
    """A replica of one event a second keeps nothing; and the cheapest policy breaks what the optimum keeps."""
    result = run("w1", "--set", "service_time_s=0.4", "--json", *SHORT)
    assert "no optimum beside it: no schedule was found that keeps the promise" in result.stderr
    assert (json.loads(result.stdout)["optimum_replica_minutes"], json.loads(result.stdout)["regret"]) == (None, None)
    broken = json.loads(run("w1", "--policy", "static", "--set", "service_time_s=0.02", "--json", *SHORT).stdout)
    assert broken["in_sla"] < 0.999
    assert broken["optimum_replica_minutes"] is not None
    assert broken["regret"] is None


def test_a_large_load_is_not_waited_for():
    result = run("zipf-100", "--policy", "static", "--json")
    assert "no optimum beside it: 270,450 events of 100 partitions take minutes" in result.stderr
    assert json.loads(result.stdout)["optimum_replica_minutes"] is None
    result = run("w1", "--policy", "static", "--json", "--set", "rebalance_time_s=2")
    assert "no optimum beside it: handovers longer than a tick take minutes" in result.stderr


def test_a_chain_shows_every_stage_and_the_whole(tmp_path):
    words = ("chain", "--set", "duration_s=30", "--set", "stages.shipment.branching=2")
    shown, found = run(*words).stdout, json.loads(run(*words, "--json").stdout)
    for name in ("chain, as one, seed 1", "payment", "shipment", "end to end"):
        assert name in shown
    assert found["stages"][1]["events"] == 2 * found["events"]
    with pytest.raises(TailpackError, match="has stages"):
        run(*words, "--out", tmp_path / "run")
