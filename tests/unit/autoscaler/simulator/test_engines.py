"""Tests of the engine with results computed by hand; its reference must pass them, too."""

import pytest
from engine_stories import US, arrivals, outcome
from oracles.reference_engine import ReferenceEngine

from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import NO_OWNER, Engine
from autoscaler.simulator.settings import ServiceSettings


@pytest.fixture(params=[ReferenceEngine, Engine])
def engine_of(request):
    """Return a builder of engines whose events take 10 µs each."""

    def build(partitions, *, replicas=1, service=None, **variants):
        engine = request.param(
            partitions, ServiceTimes(service or ServiceSettings(service_time_s=10 * US), seed=1), **variants
        )
        for _ in range(replicas):
            engine.add_replica()
        return engine

    return build


def test_a_handover_equals_the_result_by_hand(engine_of):
    engine = engine_of(2, replicas=2)
    engine.attach(0, 0)
    engine.attach(1, 0)
    engine.feed(arrivals((0, 0), (0, 1), (0, 0), (0, 1), (100, 1)))

    engine.advance(15)  # event 0 was served, event 1 is in service until 20
    assert engine.produced().tolist() == [2, 2]
    assert engine.committed().tolist() == [1, 0]
    assert engine.in_service_until_us(0) == 15
    assert engine.in_service_until_us(1) == 20
    engine.detach(1)
    assert engine.owner(1) == NO_OWNER

    engine.advance(28)  # its events wait, and event 2 was served
    engine.attach(1, 1)
    assert engine.drain() == 110

    assert outcome(engine) == [(0, 10, 0), (10, 20, 0), (20, 30, 0), (28, 38, 1), (100, 110, 1)]
    assert engine.committed().tolist() == [2, 3]


def test_uncommitted_events_of_a_killed_replica_are_served_again(engine_of):
    engine = engine_of(1, replicas=2, poll_events=3)
    engine.attach(0, 0)
    engine.feed(arrivals((0, 0), (0, 0), (0, 0), (0, 0)))

    engine.advance(15)
    engine.kill(0)
    assert engine.owner(0) == NO_OWNER
    assert engine.in_service_until_us(0) == 15, "no replica serves it"
    engine.advance(100)
    engine.attach(0, 1)
    assert engine.drain() == 140

    # Event 0 was finished, and its repetition takes until 110; event 1 was not.
    assert outcome(engine) == [(0, 10, 0), (110, 120, 1), (120, 130, 1), (130, 140, 1)]
    assert engine.committed().tolist() == [4]


def test_under_a_shared_limit_the_oldest_waiting_event_starts_next(engine_of):
    """One event per 20 µs, from 60 µs on one per 5 µs. A third replica from 30 µs on does not help."""
    service = ServiceSettings(service_time_s=10 * US, shared_limits=(50_000, 200_000), shared_limit_s=60 * US)
    engine = engine_of(3, replicas=3, service=service)
    engine.attach(0, 0)
    engine.attach(1, 1)
    engine.attach(2, 1)
    engine.feed(arrivals((0, 0), (0, 1), (0, 0), (0, 2), (0, 0), (0, 1)))
    engine.advance(30)
    engine.attach(2, 2)
    engine.drain()

    served = [(0, 10, 0), (20, 30, 1), (40, 50, 0), (60, 70, 2), (65, 75, 0), (70, 80, 1)]
    assert outcome(engine) == served
