"""A simulated environment with known times writes the folder of a live run; replay measures these times again."""

import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest
import recorded_runs
from small_report import small_run

from bench import BenchError
from bench.replay import (
    OTHER_POLICIES,
    Replay,
    measure,
    read_run,
    replay,
    scenario_of,
    simulate_again,
    simulate_other_policies,
)
from contracts.validation import InvalidSettingsError
from report.run_info import RunInfo


@pytest.fixture(scope="module")
def world():
    return recorded_runs.known_world()


@pytest.fixture(scope="module")
def folder(world, tmp_path_factory):
    return recorded_runs.write_folder(tmp_path_factory.mktemp("runs") / recorded_runs.RUN, *world)


def test_the_events_are_read_in_order_whatever_their_files(world, folder) -> None:
    served, events = read_run(folder).served, world[1].events
    assert (np.lexsort((served["handed_us"], served["partition"])) == np.arange(len(events))).all()
    assert np.array_equal(np.sort(served["done_us"]), np.sort(events.done_us))
    assert np.array_equal(np.sort(served["done_us"] - served["intended_us"]), np.sort(world[1].latency_us + 7_000))


def test_measuring_finds_the_times_of_the_world(folder) -> None:
    found = measure(read_run(folder))
    assert found.service_rate == pytest.approx(200)
    assert found.pause_s == pytest.approx(0.03, abs=1e-6)
    assert found.pauses >= 5
    assert found.startup_s == pytest.approx(0.4)
    assert found.tick_offset_s == pytest.approx(0.104)
    assert found.initial_replicas == 1


def test_with_the_times_of_the_world_almost_every_event_has_its_latency_again(folder) -> None:
    """Events were handed over 7 ms before the world had them, which a replay does not know."""
    recorded = read_run(folder)
    run, _ = simulate_again(recorded, scenario_of(recorded.info, measure(recorded), {}))
    sent_in_order = np.argsort(recorded.served["handed_us"], kind="stable")
    live_us = (recorded.served["done_us"] - recorded.served["intended_us"])[sent_in_order]
    assert np.quantile(np.abs(live_us - run.latency_us - 7_000), 0.9) < 30_000
    assert len(run.changes) == pytest.approx(len(recorded.journal.plans) - 1, abs=3)


def test_with_measured_times_both_sides_are_within_the_bounds(folder) -> None:
    both = replay(folder)
    assert both.live["events"] == both.simulated["events"]
    assert both.within == {"in_sla": True, "replica_minutes": True}
    assert both.live["scale_ups"] > 0
    assert both.differences["max_s"] == round(both.simulated["max_s"] - both.live["max_s"], 6)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda folder: (folder / "run.json").unlink(), "run.json is missing"),
        (lambda folder: change(folder, interrupted=True), "interrupted"),
        (lambda folder: recorded_runs.write_columns(folder / "journal.parquet", {"other": ["x"]}), "entry"),
    ],
)
def test_a_run_that_cannot_be_simulated_again_raises_one_line(folder, tmp_path, spoil, problem) -> None:
    broken = shutil.copytree(folder, tmp_path / "run")
    spoil(broken)
    with pytest.raises(InvalidSettingsError, match=problem) as wrong:
        replay(broken)
    assert len(wrong.value.problems) == 1
    assert "\n" not in wrong.value.problems[0]


def change(folder, **values):
    msgspec.structs.replace(RunInfo.load(folder), **values).save(folder)


def test_other_policies_are_simulated_on_the_events_of_a_live_or_simulated_run(folder: Path, tmp_path: Path) -> None:
    found = simulate_other_policies(folder)
    assert [one.policy for one in found] == [policy for policy in OTHER_POLICIES if policy != "algorithm-2"]
    assert found[1].replica_minutes == max(one.replica_minutes for one in found), "overprovisioned"
    so_far = Replay(folder).so_far({"autoscaler.policy": "keda-hpa"})
    end = found[2].in_sla, found[2].replica_minutes
    assert (so_far.in_time[-1], so_far.replica_minutes[-1]) == pytest.approx(end, abs=0.01)
    assert (len(so_far.in_time), so_far.step_s) == (150, 2)
    assert so_far.replica_minutes == sorted(so_far.replica_minutes)
    late = shutil.copytree(folder, tmp_path / "late")
    msgspec.structs.replace(RunInfo.load(folder), duration_s=100.5).save(late)
    again = Replay(late).run({})
    assert (len(again[2]), again[2][-1]) == (101, again[1].events), "later events count in the last second"
    done = subprocess.run(
        [sys.executable, "-m", "bench.replay", "nowhere"], capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, list(msgspec.json.decode(done.stdout.splitlines()[-1]))) == (1, ["error"])
    info = msgspec.structs.replace(RunInfo.load(folder), world="simulated")
    info.save(tmp_path)
    assert len(simulate_other_policies(tmp_path)) == 3
    msgspec.structs.replace(info, events_scheduled=7).save(tmp_path)
    for unknown, why in ((tmp_path, "run.json"), (tmp_path / "nowhere", "nowhere")):
        with pytest.raises(BenchError, match=why):
            simulate_other_policies(unknown)
    with pytest.raises(BenchError):
        simulate_other_policies(small_run(tmp_path / "half"))
