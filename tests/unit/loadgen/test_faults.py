"""Faults strike when and whom they say, the same in every run of a seed."""

from pathlib import Path

import numpy as np
import pytest

from bench.scenario import load_scenario
from bench.simulation.sent_events import build_events
from contracts.events import INTENDED_AT_HEADER
from contracts.validation import InvalidSettingsError
from loadgen.faults import UNREADABLE, affected_events, due_us
from loadgen.orders import Orders, events, send_numbers


def asked(*faults: str):
    return load_scenario("smoke", {"faults": list(faults)})


def test_a_burst_multiplies_its_seconds_live_and_simulated() -> None:
    plain, burst = asked(), asked("burst 3-5 10")
    before, after = build_events(plain).table().sum(axis=1), build_events(burst).table().sum(axis=1)
    assert (after == np.where((np.arange(15) >= 3) & (np.arange(15) < 5), 10 * before, before)).all()
    assert len(burst.load_spec().schedule()) == after.sum()


def test_a_hot_key_brings_its_share_in_its_time_to_one_partition_live_and_simulated() -> None:
    scenario = asked("hot-key 5-10 0.6")
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


def test_poison_cannot_be_read_and_repeats_follow_at_once() -> None:
    spec = asked("poison 6-7 2", "duplicate 0-5 0.3").load_spec()
    schedule = spec.schedule()
    numbers = send_numbers(spec, schedule)
    poison = affected_events(spec.faults, "poison", schedule.offset_us, spec.seed)
    made = [one(7) for one in events(spec, schedule, Orders("r", 1), 0, numbers=numbers, poison=poison)]
    assert sum(one.value == UNREADABLE for one in made) == poison.sum() == 2
    assert (schedule.offset_us[poison] // 1_000_000 == 6).all()
    twice = numbers[1:][numbers[1:] == numbers[:-1]]
    assert len(made) == len(schedule) + len(twice)
    assert 5 < len(twice) < 25
    assert (schedule.offset_us[twice] < 5_000_000).all()
    assert [made[at + 1] == made[at] for at in np.flatnonzero(np.diff(numbers) == 0)] == [True] * len(twice)


def test_late_comers_keep_their_intended_times_and_are_sent_when_they_are_due() -> None:
    spec = asked("out-of-order 5-10 0.4", "duplicate 0-15 0.1").load_spec()
    schedule = spec.schedule()
    numbers, due = send_numbers(spec, schedule), due_us(spec.faults, schedule.offset_us, spec.seed)
    assert set(numbers.tolist()) == set(range(len(schedule)))
    assert (np.diff(due[numbers]) >= 0).all()
    late = due > schedule.offset_us
    assert (schedule.offset_us[late] // 5_000_000 == 1).all()
    assert 0.3 < late[schedule.offset_us // 5_000_000 == 1].mean() < 0.5
    assert (due - schedule.offset_us).max() < 1_000_000
    made = [one(7) for one in events(spec, schedule, Orders("r", 1), 0, numbers=numbers)]
    stamped = [int(dict(one.headers)[INTENDED_AT_HEADER]) for one in made]
    assert stamped == schedule.offset_us[numbers].tolist()
    assert (np.diff(stamped) < 0).any()


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        ("burst 3 10", "is no fault; write 'burst 120-121 10'"),
        ("burst 5-5 2", "ends before it begins"),
        ("hot-key 1-2 1.5", "a share is at most 1"),
        ("poison 15-16 1", "poison 15-16 begins after the load, 15 s"),
    ],
)
def test_what_cannot_be_is_said(fault: str, said: str) -> None:
    with pytest.raises(InvalidSettingsError, match=f"load.faults: .*{said}"):
        asked(fault)


@pytest.mark.parametrize(
    ("columns", "fault", "said"),
    [
        ("at_s,partition\n0.1,1\n2.5,0\n", "burst 0-1 2", "burst multiplies events per second"),
        ("at_s,partition\n0.1,1\n2.5,0\n", "hot-key 3-4 0.5", "hot-key 3-4 begins after the load, 3 s"),
        ("second,events\n0,5\n1,5\n", "burst 2-3 2", "burst 2-3 begins after the load, 2 s"),
    ],
)
def test_what_a_trace_cannot_have_is_said_live_and_simulated(
    columns: str, fault: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "mine.csv").write_text(columns)
    scenario = load_scenario("w1", {"faults": [fault], "load.trace": str(tmp_path / "mine.csv")})
    for send in (build_events, lambda one: one.load_spec().schedule()):
        with pytest.raises(InvalidSettingsError, match=f"mine.csv: (load.)?faults: {said}"):
            send(scenario)
