"""The optimum, against every schedule there is, carried out by the simulator; and of whole scenarios."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.optimum.optimum import Question, optimum
from autoscaler.policies.references import Clairvoyant, ClairvoyantSettings
from autoscaler.policies.settings import PolicySettings
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate, ticks_of
from autoscaler.simulator.settings import DeliverySettings, SimulationSettings
from bench.scenario import load_scenario
from bench.simulation.optimum import find_optimum
from bench.simulation.run import run_scenario
from bench.simulation.sent import sent_by
from contracts.validation import InvalidSettingsError
from report.measures import replica_minutes

TARGET_US = 500_000
PLACEMENTS = {("a", "a", "a"), ("a", "a", "b"), ("a", "b", "a"), ("a", "b", "b"), ("a", "b", "c")}
"""Of three partitions, up to the names."""


def named(placement):
    """Every way to give the bins of a placement to three names."""
    bins = sorted(set(placement))
    return {
        tuple(dict(zip(bins, names, strict=True))[one] for one in placement)
        for names in product(("payment-0", "payment-1", "payment-2"), repeat=len(bins))
        if len(set(names)) == len(bins)
    }


def carried_out(times_us, partition, schedule, world, seconds):
    """Return the latest event, µs, and the cost of a schedule in the simulator."""
    workload = Workload.whole(Arrivals(times_us, partition.astype(np.int32)), partitions=3, duration_s=seconds)
    policy = Clairvoyant(PolicySettings(), ClairvoyantSettings(schedule=schedule))
    run = simulate(workload, policy, world, keep_events=False)
    return int(run.latency_us.max(initial=0)), replica_minutes(run.requested, 0, seconds)


def question(times_us, partition, world, seconds, **changes):
    return Question(
        times_us=times_us,
        partition=partition,
        takes_us=np.full(len(times_us), 5000),
        partitions=3,
        ticks_us=np.array([tick.at_us for tick in ticks_of(world, seconds)]),
        duration_us=seconds * 1_000_000,
        target_us=TARGET_US,
        late_share=0.001,
        pause_us=50_000,
        startup_us=round((world.startup_s or 0) * 1e6),
        owners=(0, 0, 0),
        replicas=1,
        most_replicas=3,
        **changes,
    )


@settings(max_examples=5, deadline=None)
@given(
    st.lists(st.tuples(*[st.integers(0, 70)] * 3), min_size=3, max_size=3),
    st.sampled_from([0.1, 0.35, 0.95]),
    st.randoms(use_true_random=False),
)
def test_no_schedule_that_the_simulator_carries_out_keeps_every_event_in_time_for_less(bursts, offset_s, random):
    """Three seconds, three partitions: all placements at each tick under all names, 18 ** 3 and more schedules."""
    times, partitions = [], []
    for second, sizes in enumerate(bursts):
        burst = [partition for partition, size in enumerate(sizes) for _ in range(size)]
        random.shuffle(burst)
        times += [second * 1_000_000] * len(burst)
        partitions += burst
    times_us, partition = np.array(times, np.int64), np.array(partitions, np.int64)
    world = SimulationSettings(delivery=DeliverySettings(pause_s=0.05), tick_offset_s=offset_s)

    found, schedule = optimum(question(times_us, partition, world, 3))

    ticks = [tick.at_us for tick in ticks_of(world, 3)]
    every = [owners for placement in PLACEMENTS for owners in named(placement)]
    best = []
    for first in PLACEMENTS:  # names make no difference yet: one replica is there, and is the first in each
        for rest in product(every, repeat=len(ticks) - 1):
            chosen = [tuple(f"payment-{'abc'.index(one)}" for one in first), *rest]
            plans = tuple(
                (at_us, tuple(sorted(set(owners))), owners) for at_us, owners in zip(ticks, chosen, strict=True)
            )
            cost = sum(len(set(owners)) for owners in chosen)
            if best and cost / 60 > min(best) + 0.001:
                continue
            latest_us, minutes = carried_out(times_us, partition, plans, world, 3)
            if latest_us <= TARGET_US:
                best.append(minutes)
    if best:
        assert found.late == 0
        assert found.optimum_replica_minutes == pytest.approx(min(best), abs=0.0002)
        latest_us, minutes = carried_out(times_us, partition, schedule, world, 3)
        assert (latest_us <= TARGET_US, minutes) == (True, pytest.approx(found.optimum_replica_minutes, abs=0.0002))
    else:
        assert found.late > 0
    assert found.lower <= found.lower_none_late <= found.optimum_replica_minutes


@pytest.mark.long
def test_w1_costs_what_an_independent_search_found():
    scenario = load_scenario("w1", {"policy": "clairvoyant"})
    found, _ = find_optimum(scenario, sent_by(scenario))
    assert (found.optimum_replica_minutes, found.lower_none_late) == (pytest.approx(25.15), pytest.approx(25.15))
    assert found.lower == pytest.approx(24.63, abs=0.02)
    judged = run_scenario(scenario, keep_events=False)[1]
    assert (judged.in_sla, judged.replica_minutes) == (1.0, pytest.approx(25.15, abs=0.001))


@pytest.mark.parametrize(
    ("name", "changes"),
    [
        ("w1-skew9", {}),
        ("w3", {}),
        ("w1", {"spacing": "smooth"}),
        ("w1", {"startup_s": 2.5}),
        (
            "w1",
            {
                "burst_phase_s": 0.5,
                "rebalance_time_s": 0.2,
                "min_replicas": 2,
                "max_replicas": 4,
                "initial_replicas": 3,
            },
        ),
    ],
)
def test_a_schedule_keeps_in_the_simulator_what_it_promises(name, changes):
    scenario = load_scenario(name, {"policy": "clairvoyant", "duration_s": 120, **changes})
    found, _ = find_optimum(scenario, sent_by(scenario))
    judged = run_scenario(scenario, keep_events=False)[1]
    assert (found.late, judged.in_sla) == (0, 1.0)
    assert judged.replica_minutes == pytest.approx(found.optimum_replica_minutes, abs=0.01)
    assert 0.9 * judged.replica_minutes < found.lower <= found.lower_none_late <= judged.replica_minutes + 0.01
    other = run_scenario(load_scenario(name, {**changes, "duration_s": 120}), keep_events=False)[1]
    assert other.in_sla < 0.999 or other.replica_minutes >= found.lower


def test_an_overloaded_partition_leaves_as_few_late_as_can_be():
    scenario = load_scenario("hot-key", {"policy": "clairvoyant", "service_time_s": 0.02, "duration_s": 30})
    found, _ = find_optimum(scenario, sent_by(scenario))
    assert found.late > 0
    assert f"{found.late} late" in found.method


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"startup_s": "gke"}, "start-ups are random"),
        ({"speeds": [1, 0.5]}, "replicas differ"),
        ({"failures_s": [10]}, "replicas die"),
        ({"shared_limits": [250]}, "replicas share a limit"),
        ({"payment.runtime": "share", "policy": "linear"}, "a share group has no owners"),
    ],
)
def test_where_no_optimum_is_known_it_is_said(changes, why):
    scenario = load_scenario("w1", changes)
    with pytest.raises(InvalidSettingsError, match=why):
        find_optimum(scenario, sent_by(scenario))
