"""A world whose times are known leaves the folder of a live run: measuring finds the times, replaying finds the run."""

import shutil
from dataclasses import fields, replace

import msgspec
import numpy as np
import pytest
import recorded_runs

from bench.replay.measured import measure, ticks_of
from bench.replay.recorded import Served, read_run
from bench.replay.replay import replay, simulated_figures
from bench.replay.world import scenario_of, simulated
from contracts.journal import TickRecord
from contracts.validation import InvalidSettingsError
from report.run_info import RunInfo


@pytest.fixture(scope="module")
def world():
    return recorded_runs.known_world()


@pytest.fixture(scope="module")
def folder(world, tmp_path_factory):
    return recorded_runs.write_folder(tmp_path_factory.mktemp("runs") / recorded_runs.RUN, *world)


def test_the_events_come_back_in_order_whatever_their_parts(world, folder) -> None:
    served, events = read_run(folder).served, world[1].events
    assert len(served) == len(events)
    assert (np.lexsort((served.handed_us, served.partition)) == np.arange(len(served))).all()
    assert np.array_equal(np.sort(served.done_us), np.sort(events.done_us))
    assert np.array_equal(np.sort(served.done_us - served.intended_us), np.sort(world[1].latency_us + 7_000))


def test_measuring_finds_the_times_of_the_world(folder) -> None:
    found = measure(read_run(folder))
    assert found.service_rate == pytest.approx(200)
    assert found.transit_s == 0.007
    assert found.pause_s == pytest.approx(0.03, abs=1e-6)
    assert found.pauses >= 5
    assert found.startup_s == pytest.approx(0.4)
    assert found.tick_offset_s == pytest.approx(0.104)
    assert found.initial_replicas == 1


def test_the_age_of_commits_is_found_although_lag_is_whole_events(folder) -> None:
    """The journal's lag counts from when the broker has an event, which here is 7 ms after it was handed over."""
    assert measure(read_run(folder)).commit_age_s == pytest.approx(0.056, abs=0.005)


def test_with_the_very_times_of_the_world_every_event_has_its_latency_again(folder) -> None:
    recorded = read_run(folder)
    run, latency_us = again(
        recorded, commit_age_s=0.056, commit_interval_s=0.0, service_rate=200.0, notice_s=0.0, stop_s=0.0
    )
    assert np.array_equal(latency_us, recorded.served.done_us - recorded.served.intended_us)
    assert len(run.changes) == len(recorded.plans) - 1


@pytest.fixture(scope="module")
def slow_folder(tmp_path_factory):
    """Of a world in which owners need 30 ms to hear of a move, replicas 0.35 s to go, and each commits by its clock."""
    believed = {"planned_overhead_s": 0.012, "planned_startup_s": 2.0, "planned_commit_age_s": 0.05}
    times = {"notice_s": 0.03, "stop_s": 0.35, "commit_interval_s": 0.1015}
    slow = recorded_runs.known_world(policy="tail-aware", **times, **believed)
    return recorded_runs.write_folder(tmp_path_factory.mktemp("runs") / recorded_runs.RUN, *slow)


def test_measuring_finds_what_makes_a_live_group_slow(slow_folder) -> None:
    found = measure(read_run(slow_folder))
    assert found.notice_s == pytest.approx(0.03, abs=0.005), "an event in service is finished"
    assert found.stop_s == pytest.approx(0.35)
    assert found.commit_interval_s == pytest.approx(0.1015, abs=0.0003)
    assert found.commit_age_s == pytest.approx(0.056, abs=0.005)


def test_each_tick_sees_commits_as_old_as_they_were_then(slow_folder) -> None:
    """Fed with them, the simulation sees the lag that the run's ticks saw, but for an event or two."""
    recorded = read_run(slow_folder)
    with_ages = lags_of(again(recorded, notice_s=0.03)[0])
    seen = [sum(one.lag for one in tick.partitions) for tick in recorded.ticks]
    assert np.quantile(np.abs(np.array(with_ages) - seen), 0.9) <= 2
    by_chance = lags_of(again(recorded, notice_s=0.03, commit_interval_s=0.0)[0])
    assert np.quantile(np.abs(np.array(by_chance) - seen), 0.9) > 4


def lags_of(run):
    ticks = [entry for entry in run.entries() if isinstance(entry, TickRecord)]
    return [sum(one.lag for one in tick.partitions) for tick in ticks]


def test_what_the_autoscaler_did_before_second_0_is_replayed_too(folder) -> None:
    """Clocks of policies run from their first tick on: KEDA's HPA looks every 15 s."""
    recorded, lead_us = read_run(folder), 2_000_000
    late = recorded.served.intended_us >= lead_us
    served = Served(*(getattr(recorded.served, one.name)[late] for one in fields(Served)))
    times = ("intended_us", "handed_us", "received_us", "done_us")
    whole = replace(recorded, served=served)
    later = replace(
        recorded,
        info=msgspec.structs.replace(whole.info, duration_s=whole.info.duration_s - 2),
        result=started(whole.result, whole.started_us + lead_us),
        served=replace(served, **{name: getattr(served, name) - lead_us for name in times}),
    )
    assert (whole.lead_us, later.lead_us) == (0, lead_us)
    assert ticks_of(whole) == ticks_of(later)
    (run, latency_us), (same, same_us) = (again(one) for one in (whole, later))
    assert run.changes == same.changes
    assert np.array_equal(latency_us, same_us)
    minutes = [simulated_figures(one, run, latency_us).replica_minutes for one in (whole, later)]
    assert minutes[0] - minutes[1] == pytest.approx(2 / 60), "one replica, for two seconds"


def started(result, started_us):
    return msgspec.structs.replace(result, provenance=msgspec.structs.replace(result.provenance, started_us=started_us))


def test_with_measured_times_both_sides_are_within_the_bounds(folder) -> None:
    both, live_us, simulated_us = replay(folder)
    assert both.live.events == both.simulated.events == len(live_us) == len(simulated_us)
    assert both.within == {"in_sla": True, "replica_minutes": True}
    assert both.live.scale_ups > 0
    assert both.differences["max_s"] == round(both.simulated.max_s - both.live.max_s, 6)


def again(recorded, **known):
    """Simulate with `known` in place of what was measured."""
    measured = msgspec.structs.replace(measure(recorded), **known)
    return simulated(recorded, scenario_of(recorded.info, measured, {}), measured)


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda folder: (folder / "run.json").unlink(), "holds no run.json; not the folder of a run"),
        (lambda folder: (folder / "result.json").unlink(), "has no report yet: tailpack report makes it"),
        (lambda folder: shutil.rmtree(folder / "events.parquet"), "holds no events.parquet; nothing was produced"),
        (lambda folder: tell(folder, interrupted=True), "the run was interrupted"),
        (lambda folder: recorded_runs.write_columns(folder / "journal.parquet", {"other": ["x"]}), "entry"),
        (lambda folder: tell(folder, scenario={"payment": {"runtime": "quantum"}}), "'quantum' has no simulation"),
    ],
)
def test_what_cannot_be_replayed_is_said_in_one_line(folder, tmp_path, spoil, problem) -> None:
    broken = tmp_path / "run"
    shutil.copytree(folder, broken)
    spoil(broken)
    with pytest.raises(InvalidSettingsError, match=problem) as wrong:
        replay(broken)
    assert len(wrong.value.problems) == 1
    assert "\n" not in wrong.value.problems[0]


def tell(folder, **values):
    msgspec.structs.replace(RunInfo.load(folder), **values).save(folder)


def test_in_the_pipeline_payment_has_an_event_once_order_has_handed_it_over(tmp_path, folder) -> None:
    broken = tmp_path / "run"
    shutil.copytree(folder, broken)
    start = recorded_runs.STARTED_US
    columns = {
        "intended_us": [start, start + 1, start + 2],
        "placed_us": [start + 10, start + 11, start + 12],
        "accepted_us": [start + 500, start + 501, None],
        "received_us": [start + 900, start + 901, None],
        "done_us": [start + 5900, start + 10_900, None],
        "partition": [1, 0, None],
        "offset": [0, 0, None],
        "replica": ["payment-0", "payment-0", None],
    }
    for part in (broken / "events.parquet").iterdir():
        part.unlink()
    recorded_runs.write_columns(broken / "events.parquet", columns)

    served = read_run(broken).served

    assert served.handed_us.tolist() == [501, 500], "Order refused the third"
    assert (served.partition.tolist(), served.done_us.tolist()) == ([0, 1], [10_900, 5900])
