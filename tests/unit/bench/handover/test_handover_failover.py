"""What the end of a replica costs is the worst latency of anybody's event in its window, by the way it ended."""

from unit.bench.handover.story import evidence, row, steady, step

from bench.handover.failover import KNOWN, SIGTERM, UNKNOWN, judge_failover


def test_each_way_to_end_has_its_own_worst_event() -> None:
    rows = [*steady(1, "c", begin=10, end=20_000)]
    rows += [*steady(0, "a", begin=0, end=1000), row(1000, 0, 50, "b", latency_ms=90)]
    rows += [*steady(0, "b", begin=1020, end=6000), row(6000, 0, 300, "c", latency_ms=6100)]
    rows += [
        row(12_110, 0, 605, "c"),
        *steady(0, "c", begin=12_120, end=16_000),
        row(16_000, 0, 800, "d", latency_ms=30),
    ]
    steps = [
        step(KNOWN, 999, [(0, "a", "b")], until=3000),
        step(UNKNOWN, 5999, None, until=14_000),
        step(SIGTERM, 15_999, None, until=18_000),
    ]
    figures = judge_failover(evidence(rows, steps))
    assert (figures.known_death_max_s, figures.unknown_death_max_s, figures.sigterm_max_s) == (0.09, 6.1, 0.03)
    assert (figures.kills, figures.sigterms, figures.lost) == (2, 1, 0)


def test_an_event_of_an_unmoved_partition_counts_too() -> None:
    rows = [
        *steady(0, "a", begin=0, end=1000),
        *steady(0, "b", begin=1040, end=3000),
        row(1100, 1, 7, "c", latency_ms=250),
    ]
    figures = judge_failover(evidence(rows, [step(KNOWN, 999, [(0, "a", "b")])]))
    assert figures.known_death_max_s == 0.25


def test_a_repeat_after_a_kill_is_a_duplicate_and_not_late() -> None:
    rows = [
        *steady(0, "a", begin=0, end=1000),
        row(980, 0, 49, "b", latency_ms=150),
        *steady(0, "b", begin=1040, end=3000),
    ]
    figures = judge_failover(evidence(rows, [step(KNOWN, 999, [(0, "a", "b")])]))
    assert figures.duplicates == 1
    assert figures.known_death_max_s == 0.005


def test_what_was_not_done_has_no_figure() -> None:
    figures = judge_failover(evidence(steady(0, "a", begin=0, end=1000)))
    assert figures.known_death_max_s is figures.unknown_death_max_s is figures.sigterm_max_s is None
