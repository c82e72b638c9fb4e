"""The simulator agrees with queueing theory.

λ: arrival_rate, μ: service_rate, ρ = λ/μ, W_q: mean time from arrival to the start of service.
"""

import math

import numpy as np
import pytest
from engine_stories import US, arrivals
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.reference_engine import ReferenceEngine

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import NO_OWNER, Engine
from autoscaler.simulator.settings import Distribution, ServiceSettings

EVENTS = 1_000_000
SERVICE_TIME_S = 0.005


def poisson(*, rate, count, partitions=1, seed=2):
    chance = np.random.default_rng(seed)
    intended_us = (np.cumsum(chance.standard_exponential(count)) / rate * 1e6).astype(np.int64)
    return Arrivals(intended_us, chance.integers(0, partitions, count).astype(np.int32))


def served(workload, *, distribution=Distribution.DETERMINISTIC, partitions=1, replicas=1):
    """Return all outcomes; the partitions are assigned to replicas in turn."""
    service = ServiceTimes(ServiceSettings(service_time_s=SERVICE_TIME_S, distribution=distribution), seed=7)
    engine = Engine(partitions, service)
    for _ in range(replicas):
        engine.add_replica()
    for partition in range(partitions):
        engine.attach(partition, partition % replicas)
    engine.feed(workload)
    engine.drain()
    return engine.take()


def deviation_of_mean_wait(rho, count):
    """Return the standard deviation of the mean of `count` successive waits in M/M/1, in service times.

    Successive waits are correlated: Daley's asymptotic variance ρ (2 + 5ρ − 4ρ² + ρ³) / (1 − ρ)⁴ includes that.
    """
    return math.sqrt(rho * (2 + 5 * rho - 4 * rho**2 + rho**3) / (1 - rho) ** 4 / count)


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.7, 0.8])
def test_waiting_times_match_m_m_1(rho):
    workload = poisson(rate=rho / SERVICE_TIME_S, count=EVENTS)
    wait_s = (served(workload, distribution=Distribution.EXPONENTIAL).started_us - workload.intended_us) / 1e6

    assert wait_s.mean() / SERVICE_TIME_S == pytest.approx(rho / (1 - rho), abs=4 * deviation_of_mean_wait(rho, EVENTS))
    assert (wait_s == 0).mean() == pytest.approx(1 - rho, abs=0.01), "an event does not wait with probability 1 − ρ"


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.7, 0.8])
def test_waiting_times_match_m_d_1(rho):
    """Pollaczek and Khinchin: half the wait of M/M/1. In heavy traffic an eighth of the variance remains."""
    workload = poisson(rate=rho / SERVICE_TIME_S, count=EVENTS)
    wait_s = (served(workload).started_us - workload.intended_us) / 1e6

    tolerance = 4 * deviation_of_mean_wait(rho, EVENTS) / math.sqrt(8)
    assert wait_s.mean() / SERVICE_TIME_S == pytest.approx(rho / (2 * (1 - rho)), abs=tolerance)


def test_the_tail_of_m_m_1_is_exponential():
    """Time in the system is exponential with rate μ − λ: each further 1/(μ − λ) leaves 1/e of the events."""
    rho = 0.7
    workload = poisson(rate=rho / SERVICE_TIME_S, count=EVENTS)
    latency_s = (served(workload, distribution=Distribution.EXPONENTIAL).done_us - workload.intended_us) / 1e6

    for percent in (50, 90, 99):
        expected_s = -math.log(1 - percent / 100) * SERVICE_TIME_S / (1 - rho)
        assert np.percentile(latency_s, percent) == pytest.approx(expected_s, rel=0.04)


def test_a_random_split_over_replicas_gives_independent_queues():
    rho, replicas, partitions = 0.7, 3, 9
    workload = poisson(rate=replicas * rho / SERVICE_TIME_S, count=EVENTS, partitions=partitions)
    outcome = served(workload, distribution=Distribution.EXPONENTIAL, partitions=partitions, replicas=replicas)
    wait_s = (outcome.started_us - workload.intended_us) / 1e6

    for replica in range(replicas):
        own = outcome.replica == replica
        assert wait_s[own].mean() / SERVICE_TIME_S == pytest.approx(
            rho / (1 - rho), abs=4 * deviation_of_mean_wait(rho, int(own.sum()))
        )


@pytest.mark.parametrize("engine_type", [ReferenceEngine, Engine])
def test_littles_law_holds_to_the_microsecond(engine_type):
    """The number of events in the system, summed over time, equals their times in it, summed over events."""
    workload = poisson(rate=0.09 / US, count=300)  # ρ = 0.9
    engine = engine_type(
        1, ServiceTimes(ServiceSettings(service_time_s=10 * US, distribution=Distribution.EXPONENTIAL), 5)
    )
    engine.attach(0, engine.add_replica())
    engine.feed(workload)

    present_us = 0
    while engine.committed().sum() < len(workload):
        engine.advance(engine.now_us + 1)
        present_us += int(engine.produced().sum() - engine.committed().sum())
    latency_us = engine.take().done_us - workload.intended_us

    # An event does not count itself at its arrival, hence the 1; the mean of this is L = λ W.
    assert present_us == (latency_us - 1).sum() > 300 * 20


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 2)), min_size=1, max_size=120),
    st.lists(st.tuples(st.integers(1, 60), st.integers(0, 2), st.integers(0, 1)), max_size=20),
    st.sampled_from(Distribution),
)
def test_every_event_is_served_once_and_in_order(gaps, handovers, distribution):
    """Partitions are handed over as in a consumer group: the next owner starts after the last event is done."""
    times_us = np.cumsum([gap for gap, _ in gaps]).tolist()
    workload = arrivals(*((at_us, partition) for at_us, (_, partition) in zip(times_us, gaps, strict=True)))
    engine = Engine(3, ServiceTimes(ServiceSettings(service_time_s=10 * US, distribution=distribution), seed=1))
    replicas = [engine.add_replica() for _ in range(2)]
    for partition in range(3):
        engine.attach(partition, replicas[partition % 2])
    engine.feed(workload)
    for after_us, partition, replica in handovers:
        engine.advance(engine.now_us + after_us)
        engine.detach(partition)
        assert engine.owner(partition) == NO_OWNER
        engine.advance(engine.in_service_until_us(partition))
        engine.attach(partition, replicas[replica])
    engine.drain()
    outcome = engine.take()

    assert engine.committed().tolist() == np.bincount(workload.partition, minlength=3).tolist()
    assert len(outcome.done_us) == len(workload)
    assert (outcome.started_us >= workload.intended_us).all()
    assert (outcome.done_us > outcome.started_us).all()
    for events in [workload.partition == p for p in range(3)] + [outcome.replica == r for r in replicas]:
        order = np.argsort(outcome.started_us[events], kind="stable")
        assert (outcome.done_us[events][order][:-1] <= outcome.started_us[events][order][1:]).all(), "one at a time"
    for partition in range(3):
        assert (np.diff(outcome.started_us[workload.partition == partition]) > 0).all(), "events are served in order"
