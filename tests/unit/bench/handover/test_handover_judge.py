"""Figures of constructed runs whose answer is known."""

from dataclasses import replace

import pytest
from unit.bench.handover.story import evidence, row, steady, step

from bench.handover.evidence import Row
from bench.handover.figures import KindFigures
from bench.handover.judge import judge

SERVICE_S = 0.005


def moved_partition(pause_ms: float) -> list[Row]:
    """Partition 0 goes from a to b at 1000; its first event at b has waited for `pause_ms` before it was served."""
    first = row(1000, 0, 50, "b", latency_ms=pause_ms + 5)
    return [*steady(0, "a", begin=0, end=1000), first, *steady(0, "b", begin=1100, end=4000)]


def test_moved_and_unmoved_partitions_are_told_apart() -> None:
    rows = [*moved_partition(pause_ms=45), *steady(1, "a", begin=10, end=4000, latency_ms=7)]
    figures = judge(evidence(rows, [step("move 1", 995, [(0, "a", "b")])]), service_time_s=SERVICE_S)
    assert figures.moved_max_s == 0.05
    assert figures.unmoved_max_s == 0.007
    assert figures.plan_to_first_event_s == 0.055
    assert figures.handovers == 1


def test_events_outside_the_windows_are_in_neither() -> None:
    slow = row(3500, 0, 175, "b", latency_ms=900)
    rows = [one for one in moved_partition(pause_ms=5) if one.offset != 175] + [slow]
    rows += steady(1, "a", begin=2600, end=4000, latency_ms=300)
    figures = judge(evidence(rows, [step("move 1", 995, [(0, "a", "b")])]), service_time_s=SERVICE_S)
    assert figures.moved_max_s == 0.01
    assert figures.unmoved_max_s is None, "partition 1 was served only after the window had ended"


def test_the_extra_of_unmoved_partitions_is_against_quiet_stretches_of_the_same_run() -> None:
    quiet = steady(1, "a", begin=10, end=800, latency_ms=6)
    disturbed = steady(1, "a", begin=810, end=4000, latency_ms=15)
    story = evidence(
        [*moved_partition(pause_ms=0), *quiet, *disturbed], [step("move 1", 995, [(0, "a", "b")])], quiet=[(0, 700)]
    )
    figures = judge(story, service_time_s=SERVICE_S)
    assert figures.quiet_p99_s == 0.006
    assert figures.unmoved_p99_s == 0.015
    assert figures.unmoved_extra_s == pytest.approx(0.009)


def test_the_headline_is_the_worst_of_the_kinds_and_each_kind_is_pooled() -> None:
    rows = steady(0, "a", begin=0, end=1000)
    rows += [row(1000, 0, 50, "b", latency_ms=20), *steady(0, "b", begin=1020, end=4000)]
    rows += [row(4000, 0, 200, "a", latency_ms=90), *steady(0, "a", begin=4100, end=7000)]
    steps = [step("move 1", 999, [(0, "a", "b")], until=3000), step("drain", 3999, [(0, "b", "a")], until=6000)]
    figures = judge(evidence(rows, steps), service_time_s=SERVICE_S)
    by_kind = {one.kind: one for one in figures.kinds}
    assert (by_kind["move 1"].moved_max_s, by_kind["drain"].moved_max_s) == (0.02, 0.09)
    assert figures.moved_max_s == 0.09
    assert figures.worst is not None
    assert (figures.worst.kind, figures.worst.partition) == ("drain", 0)
    assert (figures.worst.source, figures.worst.target) == ("b", "a")
    assert figures.worst.intended_s == 0.001
    assert figures.worst.first_s == 0.091


def test_percentiles_are_nearest_rank_over_the_pool() -> None:
    """Ten equal steps; the window of each holds the events of 1 s. One event in all of them is slow."""
    rows, steps, owner = [], [], "a"
    for number in range(10):
        begin, other = number * 3000, "b" if owner == "a" else "a"
        rows += steady(0, owner, begin=begin, end=begin + 1500, every=10)
        rows += steady(0, other, begin=begin + 1500, end=begin + 3000, every=10)
        steps.append(step("move 1", begin + 1499, [(0, owner, other)], until=begin + 3000))
        owner = other
    slow = [one for one in rows if one.offset != 153] + [row(1530, 0, 153, "b", latency_ms=400)]
    (kind,) = judge(evidence(slow, steps), service_time_s=SERVICE_S).kinds
    assert kind.moved_events == 10 * 101, "each window: those intended from 1500 to 2500"
    assert (kind.moved_p99_s, kind.moved_p999_s, kind.moved_max_s) == (0.005, 0.005, 0.4)


def test_a_partition_in_trouble_of_its_own_is_kept_apart() -> None:
    slow = steady(2, "c", begin=10, end=2500, latency_ms=800)
    rows = [*moved_partition(pause_ms=5), *steady(1, "a", begin=10, end=4000), *slow]
    told = step("slow event elsewhere", 995, [(0, "a", "b")])
    apart = judge(evidence(rows, [replace(told, apart=(2,))]), service_time_s=SERVICE_S)
    together = judge(evidence(rows, [told]), service_time_s=SERVICE_S)
    assert apart.unmoved_max_s == 0.005
    assert together.unmoved_max_s == 0.8


def test_without_owners_every_event_in_the_window_is_touched() -> None:
    rows = [row(ms, ms % 3, ms // 3, "ab"[ms % 2], latency_ms=5 + ms % 7) for ms in range(0, 3000, 10)]
    figures = judge(evidence(rows, [step("start", 1000, None, until=2000)], owned=False), service_time_s=SERVICE_S)
    (kind,) = figures.kinds
    assert figures.handovers == 0
    assert kind.moved_events == 101
    assert kind.unmoved_max_s is None


def test_nothing_measured_is_no_figure() -> None:
    figures = judge(evidence(steady(0, "a", begin=0, end=100)), service_time_s=SERVICE_S)
    assert figures.moved_p99_s is figures.worst is figures.unmoved_extra_s is None
    assert (figures.handovers, figures.kinds, figures.lost) == (0, (), 0)


def test_a_move_that_never_came_is_said() -> None:
    story = evidence(steady(0, "a", begin=0, end=3000), [step("move 1", 1000, [(0, "a", "b")], until=2500)])
    figures = judge(story, service_time_s=SERVICE_S)
    assert (figures.unfinished, figures.handovers) == (1, 0)
    assert isinstance(figures.kinds[0], KindFigures)
    assert figures.kinds[0].moved_events > 0, "its events are judged all the same"
