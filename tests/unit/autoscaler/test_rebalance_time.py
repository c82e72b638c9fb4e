"""The learner of rebalance times: what it says before, while and after it learns, and what it refuses."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation.rebalance_time import KINDS, RebalanceTimes, RebalanceTiming

rounds = st.builds(
    RebalanceTiming,
    kind=st.sampled_from(KINDS),
    members=st.integers(1, 100),
    moved=st.integers(0, 1000),
    pause_s=st.floats(0, 60),
    plan_to_ready_s=st.floats(0, 60),
)
histories = st.lists(rounds, max_size=80)


def plan_round(pause_s, *, members=3, moved=1, ready_s=0.0):
    return RebalanceTiming("plan", members, moved, pause_s, ready_s)


def learned(timings, **settings):
    times = RebalanceTimes(**settings)
    for timing in timings:
        times.observe(timing)
    return times


def test_nothing_is_said_until_enough_rounds_of_the_kind_were_seen():
    times = learned([plan_round(0.2)] * 29, enough_rounds=30)
    assert times.quantile(0.99, "plan", 3, 1) is None

    times.observe(plan_round(0.2))
    after = times.quantile(0.99, "plan", 3, 1)
    assert after.value_s == pytest.approx(0.2)
    assert after.samples == 30

    assert times.quantile(0.99, "death", 3, 1) is None, "nobody died: nothing is known of deaths"


def test_a_length_that_was_not_measured_teaches_nothing():
    times = learned([plan_round(0.0, ready_s=0.07)] * 50)

    assert times.quantile(0.5, "plan", 3, 1) is None


def test_few_rounds_never_promise_less_than_the_longest():
    pauses = [0.01] * 49 + [0.4]
    few = learned([plan_round(pause_s) for pause_s in pauses]).quantile(0.99, "plan", 3, 1)

    assert few.value_s >= 0.4


def test_a_thousand_rounds_are_told_by_their_ranks():
    chance = random.Random(3)
    pauses = [chance.lognormvariate(-4, 1) for _ in range(999)]
    estimate = learned([plan_round(pause_s) for pause_s in pauses]).quantile(0.99, "plan", 3, 1)

    assert estimate.value_s == pytest.approx(sorted(pauses)[989])


def test_slower_rounds_show_within_a_share_of_the_memory_and_old_ones_are_gone_after_all_of_it():
    chance = random.Random(5)
    quick = [plan_round(chance.lognormvariate(-4, 0.3)) for _ in range(2000)]
    slow = [plan_round(chance.lognormvariate(-2, 0.3)) for _ in range(500)]
    times = learned(quick, memory_rounds=500)
    median_of_slow_s = math.exp(-2)
    assert times.quantile(0.99, "plan", 3, 1).value_s < median_of_slow_s / 2

    for timing in slow[:15]:
        times.observe(timing)
    assert times.quantile(0.99, "plan", 3, 1).value_s > median_of_slow_s * 0.8

    for timing in slow[15:]:
        times.observe(timing)
    assert times.quantile(0.99, "plan", 3, 1) == learned(slow, memory_rounds=500).quantile(0.99, "plan", 3, 1)


enough = st.lists(st.builds(plan_round, st.floats(0.001, 60), members=st.integers(1, 100), moved=st.integers(0, 1000)),
                  min_size=10, max_size=80)  # fmt: skip


@given(enough, st.floats(0.01, 0.999), st.integers(1, 100), st.integers(0, 500))
def test_it_never_falls_with_more_moved_more_members_or_a_higher_quantile(history, q, members, moved):
    times, kind = learned(history, enough_rounds=10), "plan"
    here = times.quantile(q, kind, members, moved).value_s

    assert times.quantile(q, kind, members, moved + 7).value_s >= here * (1 - 1e-12)
    assert times.quantile(q, kind, members + 7, moved).value_s >= here * (1 - 1e-12)
    assert times.quantile((q + 1) / 2, kind, members, moved).value_s >= here


@given(enough, st.floats(0.001, 0.999), st.integers(1, 10**6), st.integers(0, 10**6))
def test_whatever_was_measured_the_estimate_is_a_length_of_time(history, q, members, moved):
    estimate = learned(history, enough_rounds=10, memory_rounds=20).quantile(q, "plan", members, moved)

    assert 0 < estimate.value_s < math.inf
    assert estimate.samples <= 20


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("kind", "holiday"),
        ("members", 0),
        ("members", float("nan")),
        ("moved", -1),
        ("moved", 1.5),
        ("pause_s", -0.001),
        ("pause_s", float("nan")),
        ("pause_s", float("inf")),
        ("plan_to_ready_s", -1.0),
        ("plan_to_ready_s", float("nan")),
    ],
)
def test_what_cannot_have_been_measured_is_refused_by_name(field, value):
    good = {"kind": "plan", "members": 3, "moved": 1, "pause_s": 0.01, "plan_to_ready_s": 0.05}

    with pytest.raises(ValueError, match=rf"^{field} .*got"):
        RebalanceTiming(**(good | {field: value}))


@given(histories, st.integers(10, 30))
def test_a_learner_that_is_told_what_another_remembers_answers_alike(history, memory_rounds):
    first = learned(history, enough_rounds=10, memory_rounds=memory_rounds)
    second = learned(first.remembered(), enough_rounds=10, memory_rounds=memory_rounds)
    third = learned(second.remembered(), enough_rounds=10, memory_rounds=memory_rounds)

    assert len(second.remembered()) == len(first.remembered()) <= memory_rounds * len(KINDS)
    for kind in KINDS:
        one, other = (each.quantile(0.9, kind, 4, 2) for each in (first, third))
        assert (one is None) == (other is None)
        assert one is None or (other.value_s, other.samples) == (pytest.approx(one.value_s), one.samples)
