"""The learner of rebalance times: what it says before, while and after it learns, and what it refuses."""

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.estimation import KINDS, RebalanceTimes, RebalanceTiming

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
    times = RebalanceTimes(0.05, **settings)
    for timing in timings:
        times.observe(timing)
    return times


def test_the_prior_stands_until_enough_rounds_of_the_kind_were_seen():
    times = learned([plan_round(0.2)] * 29, enough_rounds=30)
    before = times.quantile(0.99, "plan", 3, 1)
    assert (before.value_s, before.samples) == (0.05, 0)

    times.observe(plan_round(0.2))
    after = times.quantile(0.99, "plan", 3, 1)
    assert after.value_s == pytest.approx(0.2)
    assert after.samples == 30

    assert times.quantile(0.99, "death", 3, 1).samples == 0, "nobody died: nothing is known of deaths"


def test_a_length_that_was_not_measured_teaches_nothing():
    times = learned([plan_round(0.0, ready_s=0.07)] * 50)

    assert times.quantile(0.5, "plan", 3, 1).samples == 0


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


def test_a_warning_names_the_quantile_where_it_comes_from_and_the_target_it_reaches():
    times = learned([plan_round(0.2)] * 40)

    assert times.warning(0.5, members=3, moved=1) is None
    assert times.warning(0.2 - 1e-9, q=0.9, members=3, moved=1) == (
        "90 % of plan rounds with 3 members and 1 moved pause up to 0.2 s (learned from 40 rounds), which reaches the "
        "latency target of 0.2 s: an event of a partition that moves can be late with none before it"
    )
    assumed = times.warning(0.05, kind="death", members=3, moved=1)
    assert assumed is not None
    assert "(assumed, 0 rounds seen)" in assumed


@given(histories, st.sampled_from(KINDS), st.floats(0.01, 0.999), st.integers(1, 100), st.integers(0, 500))
def test_it_never_falls_with_more_moved_more_members_or_a_higher_quantile(history, kind, q, members, moved):
    times = learned(history, enough_rounds=10)
    here = times.quantile(q, kind, members, moved).value_s

    assert times.quantile(q, kind, members, moved + 7).value_s >= here * (1 - 1e-12)
    assert times.quantile(q, kind, members + 7, moved).value_s >= here * (1 - 1e-12)
    assert times.quantile((q + 1) / 2, kind, members, moved).value_s >= here


@given(histories, st.sampled_from(KINDS), st.floats(0.001, 0.999), st.integers(1, 10**6), st.integers(0, 10**6))
def test_whatever_was_measured_the_estimate_is_a_length_of_time(history, kind, q, members, moved):
    estimate = learned(history, enough_rounds=10, memory_rounds=20).quantile(q, kind, members, moved)

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


@pytest.mark.parametrize(
    ("question", "message"),
    [
        (lambda times: times.quantile(0.0, "plan", 3, 1), "quantile q .* got 0.0"),
        (lambda times: times.quantile(1.0, "plan", 3, 1), "quantile q .* got 1.0"),
        (lambda times: times.quantile(float("nan"), "plan", 3, 1), "quantile q .* got nan"),
        (lambda times: times.quantile(0.9, "holiday", 3, 1), "kind .* got 'holiday'"),
        (lambda times: times.quantile(0.9, "plan", 0, 1), "members .* got 0"),
        (lambda times: times.quantile(0.9, "plan", 1, -1), "moved .* got -1"),
        (lambda times: times.warning(float("nan"), members=3, moved=1), "latency_target_s .* got nan"),
        (lambda _: RebalanceTimes(0.0), "rebalance time to start from .* got 0.0"),
        (lambda _: RebalanceTimes(float("nan")), "rebalance time to start from .* got nan"),
        (lambda _: RebalanceTimes(0.05, enough_rounds=9), "enough_rounds .* got 9 of 1000"),
        (lambda _: RebalanceTimes(0.05, memory_rounds=20), "enough_rounds .* got 30 of 20"),
    ],
)
def test_what_cannot_be_asked_is_refused_by_name(question, message):
    with pytest.raises(ValueError, match=message):
        question(RebalanceTimes(0.05))


@given(histories, st.integers(10, 30))
def test_a_learner_that_is_told_what_another_remembers_answers_alike(history, memory_rounds):
    first = learned(history, enough_rounds=10, memory_rounds=memory_rounds)
    second = learned(first.remembered(), enough_rounds=10, memory_rounds=memory_rounds)
    third = learned(second.remembered(), enough_rounds=10, memory_rounds=memory_rounds)

    assert len(second.remembered()) == len(first.remembered()) <= memory_rounds * len(KINDS)
    for kind in KINDS:
        one, other = (each.quantile(0.9, kind, 4, 2) for each in (first, third))
        assert (other.value_s, other.samples) == (pytest.approx(one.value_s), one.samples)
