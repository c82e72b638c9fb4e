"""`tailpack simulate`, as a user at a terminal or a script sees it."""

import functools
import json

import command_line
import pytest
import recorded_runs

from contracts.validation import InvalidSettingsError
from report.run_info import RunInfo
from tailpack.errors import TailpackError

SHORT = ["--set", "duration_s=1m"]
SPACINGS = ((), ("--set", "spacing=burst"))


run = functools.partial(command_line.run, "simulate")


def figures(*words):
    return json.loads(run(*words, "--json").stdout)


def test_static_with_a_number_and_a_file_are_policies(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(
        "from autoscaler.policies.baselines import Static\n"
        "class Three(Static):\n"
        "    def __init__(self, settings):\n"
        "        super().__init__(settings, 3)\n"
    )
    three, mine = (figures("w1", "--policy", policy, *SHORT) for policy in ("static-3", f"{file}:Three"))
    assert (three["policy"], three["replica_minutes"], mine["policy"]) == ("static-3", 3.0, "static-3")
    assert figures("w1", "--policy", file, *SHORT)["replica_minutes"] == mine["replica_minutes"]
    for policy, why in (
        ("fixed-3", "did you mean static-3?"),
        ("static-0", "no replica; use static-1 or more"),
        (f"{file}:Four", "has no class Four; it has Three"),
        ("no.py", "No such"),
    ):
        with pytest.raises(InvalidSettingsError, match=why):
            run("w1", "--policy", policy)


def test_a_trace_replaces_the_events(tmp_path):
    trace = tmp_path / "mine.csv"
    trace.write_text("second,events\n0,80\n1,120\n", encoding="utf-8-sig")  # as spreadsheets write it
    even, bursts = (run("w1", "--policy", "static", "--trace", trace, "--json", *words) for words in SPACINGS)
    found = json.loads(bursts.stdout)
    assert (found["scenario"], found["events"], found["in_sla"], found["max_s"]) == ("mine.csv", 200, 0.9, 0.6)
    assert json.loads(even.stdout)["in_sla"] == 1.0, "as evenly as the counts alone say"
    assert "mine.csv: spacing of events within each second: smooth" in even.stderr
    trace.write_text("second,events\n0,80\n2,-1\n")
    with pytest.raises(InvalidSettingsError, match=r"^mine\.csv: line 3: "):
        run("w1", "--trace", str(trace))


def test_an_event_trace_sets_the_partitions_and_rejects_fewer(tmp_path):
    trace = tmp_path / "mine.csv"
    trace.write_text("at_s,partition\n0.1,0\n0.2,11\n")
    assert "12 partitions" in run("w1", "--trace", trace).stderr
    with pytest.raises(InvalidSettingsError, match=r"12 partitions .*--set partitions=5"):
        run("w1", "--trace", trace, "--set", "partitions=5")


def test_a_run_written_to_a_folder_has_the_same_figures(tmp_path):
    trace = tmp_path / "mine.csv"
    trace.write_text("second,p0,p1\n0,80,0\n1,120,7\n")
    words = ("w1", "--policy", "static", "--trace", trace)
    kept = run(*words, "--json", "--out", tmp_path / "my run")
    found, info = json.loads(kept.stdout), RunInfo.load(tmp_path / "my run")
    assert found == figures(*words) | {name: found[name] for name in ("wall_s", "policy_s")}
    assert (info.run, info.world, info.topology) == ("my run", "simulated", "payment-only")
    assert (info.payment_partitions, info.duration_s, info.events_scheduled) == (2, 2.0, 207)
    assert (info.scenario["payment"]["partitions"], info.scenario["load"]["split"]) == (2, "table")
    assert f"tailpack report '{tmp_path / 'my run'}'" in kept.stderr
    with pytest.raises(TailpackError, match="my run already holds a run"):
        run(*words, "--out", tmp_path / "my run")


def test_the_optimum_is_computed_on_request_and_by_its_own_command(tmp_path):
    trace = tmp_path / "mine.csv"
    trace.write_text("second,events\n" + "".join(f"{second},{100 + 60 * (second % 3)}\n" for second in range(12)))
    here = figures("w1", "--trace", trace, "--optimum")
    alone = json.loads(command_line.run("optimum", trace, "--json").stdout)
    assert here["optimum_replica_minutes"] == alone["optimum_replica_minutes"] == alone["simulated_replica_minutes"]
    assert here["optimum_lower"] == alone["lower"] <= alone["lower_none_late"] <= alone["optimum_replica_minutes"]
    assert alone["gap"] == pytest.approx(alone["optimum_replica_minutes"] / alone["lower"] - 1)
    random = run("w1", "--trace", trace, "--set", "startup_s=gke", "--optimum")
    assert "no optimum: start-up times are random" in random.stderr


@pytest.mark.parametrize("words", [("simulate", "smoke"), ("compare", "smoke", "--policy", "static")])
def test_faults_that_are_live_only_are_named(words: tuple[str, ...], tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = command_line.run(*words, "--set", 'faults=["poison 3-4 1", "burst 3-4 2"]')
    assert "smoke: load.faults: poison: " in result.stderr


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs") / recorded_runs.RUN
    return recorded_runs.write_folder(place, *recorded_runs.known_world(duration_s=100))


def test_a_finished_run_is_simulated_and_compared_with_its_live_figures(live):
    shown = run("--from", live).stdout
    for text in ("algorithm-2", "within 0.5 points", "within 3 %", "pause of a moved partition"):
        assert text in shown
    found = figures("--from", live)
    assert {"live", "simulated", "differences", "within", "measured"} <= set(found)
    assert set(found["live"]) == set(found["simulated"])


def test_a_scenario_or_a_run_is_simulated_not_both(live):
    for words, why in (
        (("w1", "--from", live), "--from RUN_DIR cannot be combined with SCENARIO"),
        ((), "for example w1"),
    ):
        with pytest.raises(TailpackError, match=why):
            run(*words)
