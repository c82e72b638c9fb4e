"""The parts of tail-aware, each against something that can be counted by hand."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.model import GroupObservation, PartitionLoad, RecentArrivals, Replica
from autoscaler.packing.few_moves import fewest_bins, fewest_moves, largest_first, relieved
from autoscaler.policies.tail_aware.arrivals import ArrivalHistory, uncommitted_left_out
from autoscaler.policies.tail_aware.forecast import Demand
from autoscaler.policies.tail_aware.memory import CHEAPEST, FORGIVEN_S, SCARCEST, Budget, Doubt, Patience
from autoscaler.policies.tail_aware.policy import TailAwareSettings
from autoscaler.policies.tail_aware.queues import IDLE, Course, Events, Pace, late_events, late_in_each_way, mean_late
from autoscaler.policies.tail_aware.situation import outlook
from autoscaler.policies.tail_aware.surprises import Surprises

MU, W, SLOT = 200.0, 0.5, 0.1
NOTHING = np.zeros((1, 1))


def late(
    waiting=None, expected=None, *, variance=0.0, ready_s=0.0, switch_s=0.0, until_s=math.inf, begin_s=0.0, beyond=False
):
    """One partition on one replica. waiting, expected: events by slot."""
    past = NOTHING if waiting is None else np.array(waiting, float)[:, None]
    future = NOTHING if expected is None else np.array(expected, float)[:, None]
    before, owner = np.zeros(1, np.int64), np.array([1 if switch_s else 0])
    spread, switch, ready = np.array([variance]), np.array([switch_s]), np.array([ready_s])
    rates = np.array([MU, MU])
    events = Events(past, future[None], np.zeros((0, *future.shape)), spread)
    course, pace = Course(before, owner, switch, ready, rates), Pace(SLOT, begin_s, W, until_s, math.inf, 10, beyond)
    return float(late_events(events, course, pace).sum())


def test_a_burst_is_in_time_up_to_what_is_served_within_the_target():
    assert late(expected=[100]) == 0
    assert late(expected=[130]) == pytest.approx(30)


def test_what_is_served_later_is_not_counted_yet():
    assert late(expected=[130], until_s=0.5) == 0
    assert late(expected=[130], until_s=0.6) == pytest.approx(20)
    assert late(expected=[130], until_s=1.0) == pytest.approx(30)


def test_an_even_stream_is_in_time_up_to_the_service_rate():
    assert late(expected=[20] * 50) == 0
    assert late(expected=[22] * 10) == 0  # 2 more each slot: 20 wait in the end, 100 may
    assert late(expected=[30] * 20) > 0


def test_what_waits_already_has_less_time_left():
    assert late(waiting=[80]) == 0  # came 0.1 s ago, 0.4 s are left
    assert late(waiting=[100]) == pytest.approx(20)
    assert late(waiting=[50, 0, 0, 0]) == pytest.approx(30)  # came 0.4 s ago: 20 more are served in time


def test_what_came_late_in_its_slot_has_more_time_left():
    assert late(waiting=[100], begin_s=0.06) == pytest.approx(8)  # came 0.04 s ago, 0.46 s are left
    assert late(expected=[130], begin_s=0.06) == pytest.approx(30)
    assert late(expected=[100], ready_s=0.05, begin_s=0.06) == 0  # comes after the handover
    assert late(waiting=[80], ready_s=0.05, begin_s=0.06) == 0


def test_a_handover_delays_what_waits_and_what_comes_meanwhile():
    assert late(waiting=[80], ready_s=0.05) == pytest.approx(10)
    assert late(expected=[100], ready_s=0.05) == pytest.approx(10)
    assert late(expected=[0, 100], ready_s=0.05) == 0
    assert late(expected=[10] * 10, ready_s=2.0) == pytest.approx(100)


def test_until_a_new_replica_has_started_the_present_owner_serves():
    burst = [130] + [0] * 9
    assert late(expected=burst * 2, switch_s=1.0, ready_s=1.05) == pytest.approx(30 + 40)  # the second one pauses 50 ms
    assert late(waiting=[100], switch_s=1.0, ready_s=1.05) == pytest.approx(20)


def test_what_it_has_not_served_by_then_goes_to_the_new_one():
    stream = [22.0] * 25  # 440 come in 2 s, 400 are served; the rest and what comes then waits for 50 ms
    assert late(expected=stream, switch_s=2.0, ready_s=2.05) == 0
    # 70 of the 150 are late at the old one, and the first 30 of those that wait for the new one until 0.6 s
    assert late(waiting=[150], expected=[10] * 10, switch_s=0.5, ready_s=0.6) == pytest.approx(70 + 30)


def test_what_is_left_at_the_end_makes_later_ones_late():
    """60 come to 20 a slot: after 20 slots 800 are left, 3.5 s more than may be."""
    flood = [60.0] * 20
    now = late(expected=flood)
    assert late(expected=flood, beyond=True) == pytest.approx(now + 600 * 3.5 / IDLE), "it only grows"
    calm = [400.0] + [10.0] * 19
    left = late(expected=calm, beyond=True) - late(expected=calm)
    assert left == pytest.approx(100 * ((400 + 190 - 400) / MU - W) / 0.5, abs=1), "half of its time is free"
    assert late(expected=[20.0] * 20, beyond=True) == 0


def test_uncertainty_makes_a_full_replica_late_and_leaves_a_roomy_one_alone():
    assert late(expected=[100], variance=100.0) == pytest.approx(10 / np.sqrt(2 * np.pi))
    assert late(expected=[50], variance=100.0) < 1e-4
    assert late(expected=[150], variance=100.0) == pytest.approx(50, abs=1e-4)


def test_a_full_replica_gives_up_the_smallest_partition_that_is_enough():
    sizes, owners = np.array([60.0, 45, 15]), np.array([0, 0, 0])
    placed, fits = relieved(sizes, largest_first(sizes), owners, np.array([110.0, 110]), np.zeros(2, np.int64))
    assert fits
    assert placed.tolist() == [0, 0, 1]


def test_a_partition_above_the_capacity_gets_a_replica_of_its_own():
    sizes = np.array([150.0, 20, 20])
    placed, _ = relieved(
        sizes, largest_first(sizes), np.zeros(3, np.int64), np.array([100.0, 100]), np.zeros(2, np.int64)
    )
    assert placed.tolist() == [0, 1, 1]
    assert fewest_bins(sizes, 100.0, 3) == 2


@given(st.lists(st.floats(0, 60) | st.just(0.0), min_size=1, max_size=60))
def test_the_tightest_bin_is_found_as_by_looking_at_all(sizes):
    falling = np.sort(sizes)[::-1]
    rooms: list[float] = []
    for size in falling.tolist():
        fitting = [room for room in rooms if room >= size - 50e-9]
        if fitting:
            rooms.remove(min(fitting))
        rooms.append(min(fitting, default=50.0) - size)
    assert fewest_bins(falling, 50.0, len(falling)) == len(rooms)
    assert fewest_bins(falling, 50.0, len(rooms) - 1 or 1) == max(len(rooms), 1)


loads = st.lists(st.floats(1, 60), min_size=1, max_size=6)


@settings(max_examples=60, deadline=None)
@given(loads, st.integers(1, 4), st.integers(0, 1000))
def test_the_exhaustive_search_finds_what_trying_everything_finds(sizes, limit, seed):
    sizes = np.array(sizes)
    owners = np.random.default_rng(seed).integers(-1, 3, len(sizes))
    best = np.inf
    for choice in itertools.product(range(4), repeat=len(sizes)):
        held = np.bincount(choice, sizes, minlength=4)
        alone = np.bincount(choice, minlength=4) == 1
        if len(set(choice)) <= limit and ((held <= 100.0 * (1 + 1e-9)) | alone).all():
            best = min(best, sum(size for size, now, then in zip(sizes, owners, choice, strict=True) if now != then))
    found, fits = fewest_moves(sizes, sizes, owners, np.full(4, 100.0), limit, 1_000_000)
    assert fits == (best < np.inf)
    if fits:
        assert sizes[found != owners].sum() == pytest.approx(best)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 150), min_size=1, max_size=40), st.integers(1, 8), st.integers(0, 1000))
def test_what_is_kept_in_place_never_overfills_a_replica_when_it_says_that_all_fits(sizes, replicas, seed):
    sizes = np.array(sizes)
    owners = np.random.default_rng(seed).integers(-1, replicas, len(sizes))
    placed, fits = relieved(sizes, largest_first(sizes), owners, np.full(replicas, 100.0), np.zeros(replicas, np.int64))
    assert ((placed >= 0) & (placed < replicas)).all()
    held, number = np.bincount(placed, sizes, minlength=replicas), np.bincount(placed, minlength=replicas)
    if fits:
        assert ((held <= 100.0 + 1e-6) | (number == 1)).all()


def test_demand_follows_a_ramp_and_averages_noise():
    ramp, noise = Demand(), Demand()
    chance = np.random.default_rng(1)
    for second in range(200):
        ramp.observe(np.array([[10.0 + 0.5 * second, 20.0 + second]]))
        noise.observe(chance.poisson([[50.0, 50.0]]).astype(float))
    assert ramp.ahead() == pytest.approx([110.0, 220.0], rel=0.01)
    assert ramp.ahead(10) == pytest.approx([114.5, 229.0], rel=0.02)
    assert ramp.variance().sum() < 1
    assert noise.ahead() == pytest.approx([50.0, 50.0], abs=6)
    assert noise.variance() == pytest.approx([25.0, 25.0], rel=0.5), "of the split; the sum of both is another matter"
    assert [round(one.factor, 1) for one in noise.surprises()][:1] == [pytest.approx(1.2, abs=0.1)]


def observed(counts=None, *, lags=(0,), at_s=0.1, replicas=(("payment-0", True),)):
    return GroupObservation(
        at_s=at_s,
        partitions=tuple(PartitionLoad(number, 10.0, lag) for number, lag in enumerate(lags)),
        replicas=tuple(Replica(name, ready) for name, ready in replicas),
        assignment=dict.fromkeys(range(len(lags)), "payment-0"),
        service_rate=MU,
        rebalance_time_s=0.05,
        recent=None if counts is None else RecentArrivals(SLOT, np.array(counts)),
    )


def test_what_waits_are_the_newest_events():
    history = ArrivalHistory()
    history.observe(observed([[5]] * 10))
    history.observe(observed([[0]] * 9 + [[40]], at_s=1.1))
    waiting = history.waiting(np.array([43.0]), W)[:, 0]
    assert waiting[-1] == 40
    assert waiting[:-1].sum() == 3
    assert history.waiting(np.array([500.0]), W)[:, 0].sum() == 500  # those older than the history stand first


def test_ways_in_which_events_lay_stay_apart_and_weigh_their_events():
    history = ArrivalHistory()
    for second, slot in enumerate((0, 5, 5)):
        counts = [[0]] * 10
        counts[slot] = [30 + 30 * second]
        history.observe(observed(counts, at_s=second + 0.1))
    history.observe(observed([[0]] * 10, at_s=3.1))
    shapes = history.shapes()
    assert [int(one.together.argmax()) for one in shapes] == [0, 5, 5], "a silent interval shows none"
    assert [one.together.max() for one in shapes] == [1, 1, 1]
    assert [one.weight for one in shapes] == pytest.approx([1 / 6, 2 / 6, 3 / 6])


def test_intervals_that_are_alike_are_one():
    history = ArrivalHistory()
    for second in range(4):
        history.observe(observed([[0]] * 9 + [[10 * second]], at_s=second + 0.1))
    (shape,) = history.shapes()
    assert (shape.weight, shape.together[-1]) == (1, 1)


def test_a_late_event_grows_dearer_as_the_budget_is_used_up_but_not_without_end():
    budget = Budget(0.999)
    budget.book(0, 100_000)
    assert budget.scarcity() == CHEAPEST, "what is not spent is lost"
    assert budget.scarcity(50) == pytest.approx(1)
    assert budget.scarcity(60) > 1
    budget.book(60, 0)
    assert 1 < budget.scarcity() < SCARCEST
    budget.book(500, 0)
    assert budget.scarcity() == SCARCEST


def test_what_was_done_since_the_commits_does_not_wait():
    lag, owners = np.array([60.0, 20.0, 5.0, 7.0]), np.array([0, 0, 1, -1])
    left = uncommitted_left_out(lag, owners, np.array([10.0, 10.0]))
    assert left == pytest.approx([52.5, 17.5, 0.0, 7.0]), "by share; nobody has done what nobody owns"


@pytest.mark.parametrize(
    ("startup_s", "reach_s", "intervals", "start_s", "until_s"),
    [
        (0.0, 0.5, (1,), 0.0, 1.0),
        (0.4, 0.5, (1, 2), 0.4, 1.4),
        (2.0, 0.5, (1, 2, 3), 2.0, 3.0),
        (4.0, 0.5, (1, 2, 3, 4, 5), 4.0, 5.0),
        (30.0, 0.5, (1, 2, 3, 4, 5, 6, 30, 31), 7.0, 8.0),
        (2.0, 15.0, tuple(range(1, 16)), 2.0, 15.0),
    ],
)
def test_the_outlook_reaches_to_the_interval_after_a_start(startup_s, reach_s, intervals, start_s, until_s):
    found = outlook(interval_s=1.0, reach_s=reach_s, startup_s=startup_s, most=6)
    assert found.intervals == intervals
    assert (found.start_s, found.until_s) == pytest.approx((start_s, until_s))
    assert found.near_s == max(1.0, reach_s), "a plan is paid for until there"


def test_a_trend_that_drowns_in_each_partition_shows_in_their_sum():
    chance, demand, partitions = np.random.default_rng(5), Demand(), 9
    for second in range(30):
        demand.observe(chance.poisson(10 + second, (1, partitions)).astype(float), lead=3)
    assert demand.ahead(3).sum() == pytest.approx(partitions * (10 + 32), rel=0.1)


def test_one_spike_does_not_change_what_is_expected_after_it():
    demand = Demand()
    for total in [60.0] * 30 + [480.0, 60.0, 60.0]:
        demand.observe(np.array([[total, total]]))
    assert demand.ahead().tolist() == [60.0, 60.0]


def test_the_largest_fall_of_late_is_remembered_for_a_while():
    demand = Demand()
    for total in [100.0] * 5 + [80.0, 60.0, 40.0] + [40.0] * 10:
        demand.observe(np.array([[total]]), lead=2)
    assert demand.fall() == 60, "over the two intervals of the lead, and the one in which a rise is not seen yet"
    demand.observe(np.array([[40.0]]), lead=1)
    assert demand.fall() == 40
    for _ in range(20):
        demand.observe(np.array([[40.0]]), lead=2)
    assert demand.fall() == 0


def slots(*counts: float) -> np.ndarray:
    """One partition; events by slot."""
    return np.array(counts, float)[:, None]


def test_a_surprise_that_came_twice_may_come_again_where_as_much_was_expected():
    surprises = Surprises()
    for number in range(40):
        surprises.note(60.0, slots(0, 200) if number in {10, 30} else slots(60, 0))
        surprises.note(300.0, slots(300, 0))
    worst = surprises.ahead(60.0)[0]
    assert worst.factor == pytest.approx(200 / 60)
    assert sum(one.chance for one in surprises.ahead(60.0)) == pytest.approx(0.05, abs=0.03)
    assert worst.shape.together.tolist() == [0, 1], "they lie as they lay"
    assert sum(one.chance * (one.factor - 1) for one in surprises.ahead(300.0)) < 1e-3, "high loads brought none"


def test_a_surprise_that_came_once_was_an_accident():
    surprises = Surprises()
    for number in range(40):
        surprises.note(60.0, slots(200 if number == 10 else 60))
    assert surprises.ahead(60.0) == []


def test_of_what_comes_by_surprise_counts_what_the_next_tick_cannot_save():
    one, rates, usual = np.zeros(1), np.array([MU]), slots(*[100] + [0] * 9)[None]
    zero = np.zeros(1, np.int64)

    def mean(surprise, saved_s):
        events, course = Events(NOTHING, usual, surprise[None], one), Course(zero, zero, one, one, rates)
        late = late_in_each_way(events, zero, course, Pace(SLOT, 0.0, W, math.inf, saved_s, 10, False))
        return mean_late(late, np.ones(1), np.array([0.1]))

    assert mean(slots(*[150] + [0] * 9), 1.05) == pytest.approx(0.1 * 50)
    assert mean(slots(*[100] + [0] * 8 + [150]), 1.05) == 0, "due 1.4 s from now"
    assert mean(slots(*[100] + [0] * 8 + [150]), 1.5) == pytest.approx(0.1 * 50)


def test_doubt_is_learned_from_late_events_that_should_not_have_been():
    doubt = Doubt(0.001)
    for _ in range(20):
        doubt.learn("payment-0", 10, 10, 100)
        doubt.learn("payment-1", 10, 0, 100)
        doubt.learn("payment-2", 0, 0, 100)
    assert doubt.slower("payment-0") == doubt.slower("payment-2") == 1.0
    assert doubt.slower("payment-1") < 0.6
    assert doubt.slower("payment-3") == 1.0, "most are well"
    for _ in range(2000):
        doubt.learn("payment-1", 0, 0, 100)
    assert doubt.slower("payment-1") == 1.0, "it fades"


def test_settings_name_every_mistake():
    with pytest.raises(ValueError, match=r"price = 0.*patience_s = -1"):
        TailAwareSettings(price=0, patience_s=-1)


def test_no_patience_is_needed_where_demand_only_falls():
    patience = Patience(8.0)
    for second, wanted in enumerate((5, 3, 2, 1)):
        assert patience.least(second, wanted) == wanted
        patience.note(second, wanted + 1, wanted)
    assert patience.seconds == 0


def test_each_start_soon_after_a_stop_doubles_it_up_to_a_limit():
    patience = Patience(8.0)
    seen = []
    for turn in range(6):
        patience.note(20 * turn, 2, 1)
        patience.note(20 * turn + 3, 1, 2)
        seen.append(patience.seconds)
    assert seen == [1, 2, 4, 8, 8, 8]


def test_a_start_long_after_a_stop_is_no_flapping():
    patience = Patience(8.0)
    patience.note(0, 2, 1)
    patience.note(30, 1, 2)
    assert patience.seconds == 0


def test_time_without_flapping_forgives():
    patience = Patience(8.0)
    for turn in range(3):
        patience.note(20 * turn, 2, 1)
        patience.note(20 * turn + 3, 1, 2)
    seen = []
    for second in range(50, 50 + 4 * round(FORGIVEN_S)):
        patience.note(second, 2, 2)
        seen.append(patience.seconds)
    assert list(dict.fromkeys(seen)) == [4, 2, 1, 0]


def test_fewer_must_have_sufficed_for_all_of_the_patience():
    patience = Patience(8.0)
    for turn in range(3):
        patience.note(20 * turn, 2, 1)
        patience.note(20 * turn + 3, 1, 2)
    assert patience.least(50, 3) == 3
    assert [patience.least(second, 1) for second in range(51, 57)] == [3] * 4 + [1] * 2
