"""Faults affect the configured seconds and events, the same in every run with a seed."""

from pathlib import Path

import numpy as np
import pytest

from bench.scenario import load_scenario
from bench.simulation.sent_events import build_events
from contracts.events import INTENDED_AT_HEADER
from contracts.validation import InvalidSettingsError
from loadgen.faults import DUPLICATE, UNREADABLE, affected_events, due_us
from loadgen.orders import Orders, events, send_numbers


def scenario_with(*faults: str):
    return load_scenario("smoke", {"faults": list(faults)})


def test_a_burst_multiplies_its_seconds_live_and_simulated() -> None:
    plain, burst = scenario_with(), scenario_with("burst 3-5 10")
    before, after = build_events(plain).table().sum(axis=1), build_events(burst).table().sum(axis=1)
    assert (after == np.where((np.arange(15) >= 3) & (np.arange(15) < 5), 10 * before, before)).all()
    assert len(burst.load_spec().schedule()) == after.sum()


def test_a_hot_key_has_its_share_in_one_partition_live_and_simulated() -> None:
    scenario = scenario_with("hot-key 5-10 0.6")
    schedule = scenario.load_spec().schedule()
    second = schedule.offset_us // 1_000_000
    inside = (second >= 5) & (second < 10)
    values, counts = np.unique(schedule.key[inside], return_counts=True)
    assert 0.5 < counts.max() / inside.sum() < 0.7
    hottest = values[counts.argmax()]
    assert len(set(schedule.partition[schedule.key == hottest][:50].tolist())) == 1
    assert np.mean(schedule.key[~inside] == hottest) < 0.05
    (simulated,) = build_events(scenario).chunks()
    assert (simulated.partition == schedule.partition).all()


def test_poison_is_unreadable_and_duplicates_follow_directly() -> None:
    spec = scenario_with("poison 6-7 2", "duplicate 0-5 0.3").load_spec()
    schedule = spec.schedule()
    is_duplicate = affected_events(spec.faults, DUPLICATE, schedule.offset_us, spec.seed)
    numbers = send_numbers(due_us(spec.faults, schedule.offset_us, spec.seed), is_duplicate)
    poison = affected_events(spec.faults, "poison", schedule.offset_us, spec.seed)
    records = [event(7) for event in events(spec, schedule, Orders("r", 1), 0, numbers=numbers, poison=poison)]
    assert sum(record.value == UNREADABLE for record in records) == poison.sum() == 2
    assert (schedule.offset_us[poison] // 1_000_000 == 6).all()
    duplicates = numbers[1:][numbers[1:] == numbers[:-1]]
    assert len(records) == len(schedule) + len(duplicates)
    assert 5 < len(duplicates) < 25
    assert (schedule.offset_us[duplicates] < 5_000_000).all()
    assert [records[at + 1] == records[at] for at in np.flatnonzero(np.diff(numbers) == 0)] == [True] * len(duplicates)


def test_late_events_keep_their_intended_times_and_are_sent_in_order_of_due_times() -> None:
    spec = scenario_with("out-of-order 5-10 0.4", "duplicate 0-15 0.1").load_spec()
    schedule = spec.schedule()
    due = due_us(spec.faults, schedule.offset_us, spec.seed)
    numbers = send_numbers(due, np.zeros(len(due), np.bool_))
    assert set(numbers.tolist()) == set(range(len(schedule)))
    assert (np.diff(due[numbers]) >= 0).all()
    late = due > schedule.offset_us
    assert (schedule.offset_us[late] // 5_000_000 == 1).all()
    assert 0.3 < late[schedule.offset_us // 5_000_000 == 1].mean() < 0.5
    assert (due - schedule.offset_us).max() < 1_000_000
    records = [event(7) for event in events(spec, schedule, Orders("r", 1), 0, numbers=numbers)]
    stamped = [int(dict(record.headers)[INTENDED_AT_HEADER]) for record in records]
    assert stamped == schedule.offset_us[numbers].tolist()
    assert (np.diff(stamped) < 0).any()


@pytest.mark.parametrize(
    ("fault", "problem"),
    [
        ("burst 3 10", "is not a fault; examples: 'burst 120-121 10'"),
        ("burst 5-5 2", "ends before it begins"),
        ("hot-key 1-2 1.5", "a share must be at most 1"),
        ("poison 15-16 1", "poison 15-16 begins after the load, 15 s"),
    ],
)
def test_an_invalid_fault_is_refused(fault: str, problem: str) -> None:
    with pytest.raises(InvalidSettingsError, match=f"load.faults: .*{problem}"):
        scenario_with(fault)


@pytest.mark.parametrize(
    ("columns", "fault", "problem"),
    [
        ("at_s,partition\n0.1,1\n2.5,0\n", "burst 0-1 2", "burst multiplies events per second"),
        ("at_s,partition\n0.1,1\n2.5,0\n", "hot-key 3-4 0.5", "hot-key 3-4 begins after the load, 3 s"),
        ("second,events\n0,5\n1,5\n", "burst 2-3 2", "burst 2-3 begins after the load, 2 s"),
    ],
)
def test_a_fault_that_contradicts_the_trace_is_refused_live_and_simulated(
    columns: str, fault: str, problem: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text(columns)
    scenario = load_scenario("w1", {"faults": [fault], "load.trace": str(tmp_path / "mine.csv")})
    for send in (build_events, lambda scenario: scenario.load_spec().schedule()):
        with pytest.raises(InvalidSettingsError, match=f"mine.csv: (load.)?faults: {problem}"):
            send(scenario)
