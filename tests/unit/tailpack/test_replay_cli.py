"""`tailpack replay`, as somebody at a terminal or a script meets it."""

import functools
import json

import command_line
import pytest
import recorded_runs

from contracts.validation import InvalidSettingsError
from tailpack.errors import TailpackError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / recorded_runs.RUN
    return recorded_runs.write_folder(place, *recorded_runs.known_world(duration_s=100))


run = functools.partial(command_line.run, "replay")


def test_both_sides_stand_beside_each_other_and_the_picture_in_the_folder(folder):
    result = run(folder)
    assert result.exit_code == 0
    assert "algorithm-2" in result.stdout
    assert "within 0.5 points" in result.stdout
    assert "within 3 %" in result.stdout
    assert "age of commits" in result.stdout
    assert "live-simulated.svg" in result.stderr
    assert (folder / "live-simulated.svg").read_text().startswith("<?xml")


def test_as_json_it_prints_one_object_and_nothing_else(folder):
    found = json.loads(run(folder, "--json").stdout)
    assert {"live", "simulated", "differences", "within", "measured"} <= set(found)
    assert set(found["within"]) == {"in_sla", "replica_minutes"}
    assert set(found["live"]) == set(found["simulated"])
    assert {"in_sla", "p50_s", "p99_s", "p999_s", "max_s", "replica_minutes"} <= set(found["live"])


def test_another_policy_is_not_judged_against_the_live_one(folder):
    shown = run(folder, "--policy", "static").stdout
    assert "simulated static" in " ".join(shown.split())
    assert "3 %" not in shown.split("measured in the run")[0]


def test_a_policy_that_nobody_knows_is_named(folder):
    with pytest.raises(InvalidSettingsError, match="'fortune-teller' is unknown"):
        run(folder, "--policy", "fortune-teller")


def test_what_its_events_could_have_cost_at_least(folder):
    found = json.loads(command_line.run("optimum", folder, "--json").stdout)
    live = json.loads(run(folder, "--json").stdout)["live"]
    assert found["events"] == live["events"]
    assert found["lower"] <= found["optimum_replica_minutes"] <= found["replica_minutes"] == live["replica_minutes"]
    assert (found["late"], found["simulated_in_sla"]) == (0, 1.0)
    assert found["regret"] == pytest.approx(found["replica_minutes"] / found["optimum_replica_minutes"] - 1)


def test_what_another_scenario_would_come_to_with_the_times_of_a_run(folder):
    plain = json.loads(command_line.run("simulate", "w3", "--policy", "tail-aware", "--no-optimum", "--json").stdout)
    shown = command_line.run("simulate", "w3", "--policy", "tail-aware", "--times", folder, "--json")
    found = json.loads(shown.stdout)
    assert "age of commits" in shown.stderr
    assert found["events"] == plain["events"]
    assert found["phase_s"] == pytest.approx(0.104), "of the run's own ticks"
    assert {"regret", "plan_changes", "moved"} <= set(found)
    assert found["replica_minutes"] > plain["replica_minutes"], "starts take time now, and stops are paid"


def test_a_forecast_keeps_no_events(folder, tmp_path):
    with pytest.raises(TailpackError, match="--out: a forecast"):
        command_line.run("simulate", "w3", "--times", folder, "--out", tmp_path / "run")
