"""Stretches of time and rounds, from what events and replicas tell."""

from unit.bench.handover.story import at, evidence, row, steady

from bench.handover.rounds import applied
from bench.handover.stretch import stretch
from contracts.progress import Round, RoundKind


def test_a_stretch_counts_late_events_and_finds_the_poorest_second() -> None:
    rows = [one for one in steady(0, "a", begin=0, end=4000, every=10) if not at(2000) <= one.intended_us < at(2600)]
    rows += [row(2000 + 10 * number, 0, 200 + number, "b", latency_ms=600) for number in range(3)]
    found = stretch(evidence(rows).served, at(0), at(4000), latency_target_s=0.5)
    assert found.late == 3
    assert found.max_s == 0.6
    assert found.worst_second == 40 + 3, "in the third second: 40 events of every 10 ms, and the three late ones"
    assert found.throughput == 343 / 4


def test_an_event_at_the_target_is_in_time() -> None:
    found = stretch(evidence([row(0, 0, 0, "a", latency_ms=500)]).served, at(0), at(900), latency_target_s=0.5)
    assert (found.late, found.events, found.worst_second) == (0, 1, None)


def test_nothing_happened_in_an_empty_stretch() -> None:
    found = stretch(evidence(steady(0, "a", begin=0, end=100)).served, at(500), at(500), latency_target_s=0.5)
    assert (found.events, found.throughput, found.p99_s) == (0, 0.0, None)


def told(epoch: int, generation: int, *, taken: int = 0, released: int = 0, at_us: int = 0, pause_us: int = 0) -> Round:
    return Round(
        generation=generation, epoch=epoch, kind=RoundKind.PLAN, members=3, moved=taken, taken=taken,
        released=released, pause_us=pause_us, plan_us=0, at_us=at_us,
    )  # fmt: skip


def test_a_plan_is_carried_out_when_the_last_replica_has_its_last_partition() -> None:
    reported = [
        ("a", told(epoch=7, generation=4, released=3, at_us=100)),
        ("b", told(epoch=7, generation=5, taken=2, at_us=140, pause_us=20)),
        ("c", told(epoch=7, generation=5, taken=1, at_us=160, pause_us=30)),
        ("a", told(epoch=7, generation=6, at_us=900)),
        ("a", told(epoch=8, generation=7, taken=1, at_us=999)),
    ]
    found = applied(reported, epoch=7)
    assert (found.taken, found.done_us, found.rounds, found.pauses_us) == (3, 160, 2, (20, 30))


def test_a_plan_that_nobody_told_of_has_taken_nothing() -> None:
    assert applied([], epoch=7).done_us == applied([], epoch=7).taken == 0
