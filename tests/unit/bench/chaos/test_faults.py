"""A schedule follows from its seed alone; two brokers of three are always well."""

from bench.chaos.faults import (
    LONGEST_S,
    MOST,
    ON_BROKERS,
    ON_PROCESSES,
    ON_TOPICS,
    TARGETS,
    Kind,
    schedule,
)

MANY = range(500)


def test_equal_seeds_are_equal_schedules_and_others_are_not() -> None:
    assert [schedule(seed) for seed in MANY] == [schedule(seed) for seed in MANY]
    assert len({schedule(seed) for seed in MANY}) == len(MANY)


def test_every_kind_of_fault_on_every_target_is_drawn_and_several_at_once() -> None:
    faults = [fault for seed in MANY for fault in schedule(seed)]
    assert {fault.kind for fault in faults} == set(Kind)
    for kind in ON_PROCESSES:
        assert {fault.target for fault in faults if fault.kind is kind} == set(TARGETS)
    for kind in ON_BROKERS:
        assert {fault.target for fault in faults if fault.kind is kind} == {"1", "2", "3"}
    assert all(2 <= len(schedule(seed)) <= MOST for seed in MANY)


def test_at_most_one_broker_is_disturbed_and_one_topic_and_nothing_lasts_too_long() -> None:
    for seed in MANY:
        faults = schedule(seed)
        for family in (ON_BROKERS, ON_TOPICS, (Kind.CLOCK,), (Kind.RIVAL,), (Kind.DISK,)):
            assert sum(fault.kind in family for fault in faults) <= 1
        assert all(fault.lasts_s <= LONGEST_S for fault in faults)
        assert list(faults) == sorted(faults, key=lambda one: one.at_s)


def test_what_cannot_be_had_is_left_out_and_the_rest_stays() -> None:
    for seed in MANY:
        whole = schedule(seed)
        assert schedule(seed, frozenset({Kind.DISK})) == tuple(one for one in whole if one.kind is not Kind.DISK)
