"""Tests of simulated chains against queues computed by hand."""

import numpy as np
import pytest

from autoscaler.policies.baselines import Static
from autoscaler.policies.settings import PolicySettings
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import ServiceSettings, SimulationSettings
from bench.simulation.chain import end_to_end_us, next_workload

SECONDS = 20


def served(workload, service_time_s):
    settings = SimulationSettings(service=ServiceSettings(service_time_s=service_time_s))
    return simulate(workload, Static(PolicySettings(static_replicas=1)), settings)


def first_stage(events=900, partitions=3):
    chance = np.random.default_rng(5)
    times_us = np.sort(chance.integers(0, SECONDS * 1_000_000, events))
    partition = chance.integers(partitions, size=events, dtype=np.int32)
    return Workload.whole(Arrivals(times_us, partition), partitions=partitions, duration_s=SECONDS)


def one_server(times_us, service_us):
    """Return the end of each event at a single FIFO server (Lindley)."""
    done, free = [], 0
    for at_us in times_us.tolist():
        free = max(free, at_us) + service_us
        done.append(free)
    return np.array(done)


def test_the_output_of_a_stage_is_the_input_of_the_next():
    first = served(first_stage(), 0.02)
    workload, cause = next_workload(first, np.arange(900), branching=1.0, partitions=4, seed=1)
    second = served(workload, 0.021)
    by_hand = one_server(np.sort(first.events.done_us), 21_000)
    assert np.array_equal(np.sort(second.events.done_us), by_hand)
    whole_us = end_to_end_us([first, second], [np.arange(900), cause])
    assert np.array_equal(np.sort(whole_us + first.events.intended_us), by_hand), "each ends with its own last event"
    assert sorted(cause.tolist()) == list(range(900))


@pytest.mark.parametrize(("branching", "fewest", "most"), [(0.0, 0, 0), (0.4, 0, 1), (2.0, 2, 2), (2.5, 2, 3)])
def test_branching_is_the_number_of_events_that_each_event_causes(branching, fewest, most):
    first = served(first_stage(), 0.005)
    workload, cause = next_workload(first, np.arange(900), branching=branching, partitions=4, seed=1)
    each = np.bincount(cause, minlength=900)
    assert (each.min(), each.max()) == (fewest, most)
    assert len(cause) == pytest.approx(900 * branching, abs=60)
    second = served(workload, 0.001)
    whole_us = end_to_end_us([first, second], [np.arange(900), cause])
    assert (whole_us >= first.latency_us).all()
    assert (whole_us[each == 0] == first.latency_us[each == 0]).all(), "an event without successors ends at this stage"
