"""The engine equals its reference to the last event, for random commands and queries."""

import numpy as np
import pytest
from engine_stories import PARTITIONS, REPLICAS, US, Story
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles.reference_engine import ReferenceEngine

from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.settings import Distribution, ServiceSettings

PARTITION = st.integers(0, PARTITIONS - 1)
WHICH = st.integers(0, REPLICAS - 1)
COMMON = (
    st.tuples(st.just("feed"), st.lists(st.tuples(st.integers(0, 6), PARTITION), min_size=1, max_size=12)),
    st.tuples(st.just("advance"), st.integers(0, 30)),
    st.tuples(st.just("ask")),
    st.tuples(st.just("take")),
)
ENGINE_STEP = st.one_of(
    *COMMON,
    st.tuples(st.just("attach"), PARTITION, WHICH),
    st.tuples(st.just("attach"), PARTITION, WHICH),
    st.tuples(st.just("detach"), PARTITION),
    st.tuples(st.just("replace"), WHICH),
)
SERVICE = st.builds(
    ServiceSettings,
    service_time_s=st.sampled_from([1 * US, 4 * US, 10 * US]),
    distribution=st.sampled_from(Distribution),
    overhead_s=st.sampled_from([0.0, 0.7 * US]),
    speeds=st.sampled_from([(1.0,), (1.0, 0.3), (1.0, 1.0, 1.0, 0.5, 3.0)]),
    slow_from_s=st.just(20 * US),
    slow_until_s=st.just(60 * US),
    slow_factor=st.sampled_from([1.0, 2.5]),
    slow_replicas=st.sampled_from([(), (0, 3)]),
    shared_limits=st.sampled_from([(), (1e6,), (0.15e6, 0.4e6)]),
    shared_limit_s=st.just(50 * US),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(ENGINE_STEP, max_size=60), SERVICE)
def test_the_engine_equals_its_reference(steps, service):
    compiled, reference = (
        Story(engine(PARTITIONS, ServiceTimes(service, seed=3))).tell(steps) for engine in (Engine, ReferenceEngine)
    )
    assert compiled == reference


def overload_step(chance):
    """Return a step that feeds 40 events at once, more than are served until the next one."""
    return ("feed", [(int(chance.integers(0, 3)), int(chance.integers(PARTITIONS))) for _ in range(40)])


@pytest.mark.parametrize("distribution", Distribution)
@pytest.mark.parametrize("limits", [(), (0.3e6, 0.9e6)])
def test_the_engine_equals_its_reference_under_overload_and_constant_handovers(distribution, limits):
    """Overload with several commands at every moment: errors are most likely at revocation."""
    chance = np.random.default_rng(5)
    steps = []
    for round_ in range(60):
        steps.append(overload_step(chance))
        for _ in range(chance.integers(1, 9)):
            steps.append(("attach", int(chance.integers(PARTITIONS)), int(chance.integers(REPLICAS))))
        if round_ % 7 == 3:
            steps.append(("detach", int(chance.integers(PARTITIONS))))
        if round_ % 9 == 5:
            steps.append(("replace", int(chance.integers(REPLICAS))))
        steps += [("advance", int(chance.integers(0, 45))), ("ask",), ("take",)]
    work = ServiceSettings(
        service_time_s=3 * US, distribution=distribution, shared_limits=limits, shared_limit_s=700 * US
    )
    service = ServiceTimes(work, seed=8)
    compiled, reference = (Story(engine(PARTITIONS, service)).tell(steps) for engine in (Engine, ReferenceEngine))
    assert compiled == reference
    assert sum(isinstance(answer, tuple) for answer in compiled) == 2_400, "every event was served"
