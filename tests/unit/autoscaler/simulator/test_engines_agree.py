"""The fast engine is the reference to the last event: both are told the same story and asked the same questions."""

import numpy as np
import pytest
from engine_stories import PARTITIONS, REPLICAS, US, Story
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.simulator.fast import FastEngine
from autoscaler.simulator.reference import ReferenceEngine
from autoscaler.simulator.service import ServiceTimes
from autoscaler.simulator.settings import Distribution, ServiceSettings

PARTITION = st.integers(0, PARTITIONS - 1)
WHICH = st.integers(0, REPLICAS - 1)
STEP = st.one_of(
    st.tuples(st.just("feed"), st.lists(st.tuples(st.integers(0, 6), PARTITION), min_size=1, max_size=12)),
    st.tuples(st.just("advance"), st.integers(0, 30)),
    st.tuples(st.just("attach"), PARTITION, WHICH),
    st.tuples(st.just("attach"), PARTITION, WHICH),
    st.tuples(st.just("detach"), PARTITION),
    st.tuples(st.just("replace"), WHICH, st.sampled_from([0.5, 1.0, 3.0])),
    st.tuples(st.just("ask")),
    st.tuples(st.just("take")),
)
SERVICE = st.builds(
    ServiceSettings,
    service_time_s=st.sampled_from([1 * US, 4 * US, 10 * US]),
    distribution=st.sampled_from(Distribution),
    overhead_s=st.sampled_from([0.0, 0.7 * US]),
    speeds=st.sampled_from([(1.0,), (1.0, 0.3)]),
    slow_from_s=st.just(20 * US),
    slow_until_s=st.just(60 * US),
    slow_factor=st.sampled_from([1.0, 2.5]),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, max_size=60), SERVICE, st.sampled_from([1, 2, 5]))
@pytest.mark.usefixtures("_windows")
def test_the_fast_engine_is_the_reference(steps, service, poll_events):
    told = [
        Story(engine(PARTITIONS, ServiceTimes(service, seed=3), poll_events=poll_events)).tell(steps)
        for engine in (ReferenceEngine, FastEngine)
    ]

    assert told[0] == told[1]


@pytest.mark.usefixtures("_windows")
@pytest.mark.parametrize("poll_events", [1, 7])
@pytest.mark.parametrize("distribution", Distribution)
def test_backlogs_that_change_hands_all_the_time(distribution, poll_events):
    """Overload, then commands at every moment, several of them at once: revocation is where errors would live."""
    chance = np.random.default_rng(5)
    steps = []
    for round_ in range(60):
        steps.append(("feed", [(int(chance.integers(0, 3)), int(chance.integers(PARTITIONS))) for _ in range(40)]))
        for _ in range(chance.integers(1, 9)):
            steps.append(("attach", int(chance.integers(PARTITIONS)), int(chance.integers(REPLICAS))))
        if round_ % 7 == 3:
            steps.append(("detach", int(chance.integers(PARTITIONS))))
        if round_ % 9 == 5:
            steps.append(("replace", int(chance.integers(REPLICAS)), 1.5))
        steps += [("advance", int(chance.integers(0, 45))), ("ask",), ("take",)]
    service = ServiceTimes(ServiceSettings(service_time_s=3 * US, distribution=distribution), seed=8)
    told = [
        Story(engine(PARTITIONS, service, poll_events=poll_events)).tell(steps)
        for engine in (ReferenceEngine, FastEngine)
    ]

    assert told[0] == told[1]
    assert sum(isinstance(answer, tuple) for answer in told[0]) == 2_400, "every event was served"
