"""Arrival rate (λ) and lag from readings of offsets; samples between ticks distinguish bursts from even streams."""

from dataclasses import dataclass, field

import pytest

from autoscaler.live.loads import ArrivalSamples, LoadReader
from autoscaler.live.partition_offsets import PartitionOffsets
from autoscaler.ports import NotReadyError


@dataclass
class Readings:
    """Stands in for OffsetReader."""

    readings: "list[Reading]"
    unanswered: bool = False
    sampled: list[tuple[float, tuple[int, ...]]] = field(default_factory=list)

    @property
    def partitions(self) -> int:
        return len(self.readings[0][1])

    def count_partitions(self) -> int:
        if self.unanswered:
            raise NotReadyError("no broker")
        return 7

    def read(self) -> "Reading":
        return self.readings.pop(0)

    def read_ends(self) -> tuple[float, tuple[int, ...]]:
        if self.unanswered:
            raise NotReadyError("no broker")
        return self.sampled.pop(0)


def no_wall_offset() -> float:
    """Wall clock minus clock of the readings: zero, so that the slots do not depend on the machine's start time."""
    return 0.0


Reading = tuple[float, tuple[PartitionOffsets, ...]]


def reading(at_s: float, *ends: int | None) -> Reading:
    return (at_s, tuple(PartitionOffsets(end, committed=0, beginning=0) for end in ends))


def test_the_arrival_rate_needs_two_readings_and_the_time_between_them() -> None:
    loads = LoadReader(Readings([reading(10.0, 100, 0), reading(12.0, 180, 1)]))
    with pytest.raises(NotReadyError, match="arrival rate of partition 0, 1"):
        loads.read()
    at_s, partitions = loads.read()
    assert at_s == 12.0
    assert [(load.arrival_rate, load.lag) for load in partitions] == [(40.0, 180), (0.5, 1)]


def test_arrivals_and_lag_count_events_not_offsets() -> None:
    """A marker follows each event of partition 0. Partitions 7 and -1 are not of this topic."""
    samples = [(10.05 + tenth / 10, (100 + 2 * tenth, 10 * tenth)) for tenth in range(10)]
    readings = Readings([reading(9.0, 80, 0), reading(10.0, 100, 0), reading(11.0, 120, 100)], sampled=samples)
    loads = LoadReader(readings, no_wall_offset)
    loads.shares = lambda: {0: 0.5, 7: 0.5, -1: 0.1}
    with pytest.raises(NotReadyError):
        loads.read()
    loads.read()
    for tenth in range(10):
        loads.sample(10.06 + tenth / 10)
    assert [(load.arrival_rate, load.lag) for load in loads.read()[1]] == [(10.0, 60), (100.0, 100)]
    assert loads.recent is not None
    assert loads.recent.counts.sum(axis=0).tolist() == [10, 100]


def test_a_partition_without_a_commit_has_no_known_lag() -> None:
    loads = LoadReader(
        Readings(
            [(at_s, (PartitionOffsets(end, 0, 0), PartitionOffsets(end, None, 0))) for at_s, end in ((1, 10), (2, 30))]
        )
    )
    with pytest.raises(NotReadyError):
        loads.read()
    assert [(load.arrival_rate, load.lag, load.age_s) for load in loads.read()[1]] == [(20, 30, 0), (20, 0, 0)]
    assert loads.without_commit == {1}
    assert not loads.missing_data


def test_a_re_created_topic_and_a_new_partition_need_two_new_readings() -> None:
    loads = LoadReader(Readings([reading(1.0, 500), reading(2.0, 40, 3), reading(3.0, 70, 3)]))
    with pytest.raises(NotReadyError):
        loads.read()
    with pytest.raises(NotReadyError, match="arrival rate of partition 0, 1"):
        loads.read()
    assert [load.arrival_rate for load in loads.read()[1]] == [30.0, 0.0]


def test_a_burst_right_before_a_tick_counts_in_one_interval_only() -> None:
    """Slots end halfway between tenths, ticks at tenths: arrivals in between belong to the last slot."""
    samples = ArrivalSamples()
    ends = {0.0: 0, 0.025: 0, 0.0501: 0, 0.075: 80, 0.1: 80, 0.125: 80, 0.1501: 80, 0.98: 80, 1.0501: 80, 1.075: 160}
    for at_s, end in ends.items():
        samples.record(10 + at_s, (end,))
        if at_s == 0.1501:
            recent = samples.recent(10.1501, 0.0501, {})
            assert recent is not None
            assert recent.counts.sum() == 0, "between ticks: no arrivals since the tick at 10.1"
    samples.record(11.1, (160,))
    recent = samples.recent(11.1, 1.0, {})
    assert recent is not None
    assert recent.counts.ravel().tolist() == [0] * 9 + [80]


def test_arrivals_since_the_last_reading_are_returned_once_for_each_sample() -> None:
    samples = [(10.05 + tenth / 10, (100 + 80 * (tenth >= 3),)) for tenth in range(10)]
    loads = LoadReader(
        Readings([reading(9.0, 100), reading(10.0, 100), reading(10.45, 180)], sampled=samples), no_wall_offset
    )
    assert loads.arrivals() is None, "no reading yet"
    with pytest.raises(NotReadyError):
        loads.read()
    loads.read()
    assert loads.arrivals() is None
    loads.sample(10.06)
    arrived = loads.arrivals()
    assert arrived is not None
    assert arrived.counts.sum() == 0
    assert loads.arrivals() is None, "no new sample"
    for tenth in range(1, 4):
        loads.sample(10.06 + tenth / 10)
    arrived = loads.arrivals()
    assert arrived is not None
    assert arrived.counts.sum() == 80
    loads.read()
    assert loads.recent.counts.sum() == 80
    assert len(loads.recent.counts) < 10, "since the previous reading, not for a whole interval"


@pytest.mark.parametrize("late_s", [-0.04, 0.0, 0.01, 0.03])
def test_the_offset_of_a_burst_in_its_slot_is_known_to_25_ms(late_s):
    """Its slot ends at 100.05, but counts as the last tenth of a second before the tick: from 100.0 on."""
    samples = ArrivalSamples()
    for at_s in [98.51 + 0.02 * reading for reading in range(80)]:
        if samples.is_due(at_s):
            samples.record(at_s, [100 * (at_s >= 100.0 + late_s)])
    samples.record(100.1, [100])
    recent = samples.recent(100.1, 1.0, {})
    assert recent.counts[-1, 0] == 100
    assert late_s - 0.041 <= recent.begin_s <= late_s


def known(loads):
    return [(load.arrival_rate, load.lag, round(load.age_s)) for load in loads.read()[1]]


def offsets(end, done, beginning=0):
    return PartitionOffsets(end, done, beginning, "" if None not in (end, done) else "it has no leader")


def test_a_partition_without_a_leader_gets_the_worst_case_and_others_their_real_loads():
    readings = Readings([
        (10.0, (offsets(100, 100), offsets(100, 90))),
        (11.0, (offsets(140, 120), offsets(150, 120))),
        (12.0, (offsets(None, 130), offsets(200, 180))),
        (15.0, (offsets(None, None), offsets(350, 350))),
        (16.0, (offsets(340, 340), offsets(400, 350))),
    ])  # fmt: skip
    loads = LoadReader(readings, no_wall_offset)
    with pytest.raises(NotReadyError):
        loads.read()
    assert known(loads) == [(40, 20, 0), (50, 30, 0)]
    assert known(loads) == [(40, 140 + 40 - 130, 1), (50, 20, 0)], "arrivals at the previous rate"
    assert "it has no leader" in loads.missing_data
    assert known(loads) == [(40, 140 + 160 - 130, 4), (50, 0, 0)], "and no event served since"
    assert known(loads) == [(40, 0, 0), (50, 50, 0)], "averaged over the gap"
    assert loads.missing_data == ""


def test_unreadable_commits_count_as_no_progress():
    readings = Readings([
        (10.0, (offsets(100, None, 40),)), (11.0, (offsets(140, None, 40),)), (12.0, (offsets(150, 145),)),
        (13.0, (offsets(160, None),)),
    ])  # fmt: skip
    loads = LoadReader(readings, no_wall_offset)
    with pytest.raises(NotReadyError):
        loads.read()
    assert known(loads) == [(40, 100, 1)], "all stored events may wait"
    assert known(loads) == [(10, 5, 0)]
    assert loads.has_advanced(0, within_s=1) is True
    assert known(loads) == [(10, 15, 1)]


def test_a_partition_that_was_never_read_gets_the_mean_arrival_rate():
    readings = Readings([(at_s, (offsets(100 * at_s, 0), offsets(None, None, None))) for at_s in (10, 11, 12)])
    loads = LoadReader(readings, no_wall_offset)
    with pytest.raises(NotReadyError, match="arrival rate of partition 0:"):
        loads.read()
    assert known(loads)[1] == (100, 0, 1)


def test_arrivals_in_a_gap_go_into_the_last_slot_at_the_average_rate():
    samples = ArrivalSamples()
    for tenth in range(25):
        is_unknown = 5 <= tenth < 18
        samples.record(10.06 + tenth / 10, [4 * tenth, None if is_unknown else 10 * tenth])
    counts = samples.recent(12.46, 1.0, {0: 40.0, 1: 100.0}).counts
    assert counts[:, 0].tolist() == [4] * 10
    assert counts[:, 1].tolist() == [0] * 9 + [100], "the 130 arrivals of the gap are no burst"
