"""The fast pool is the reference to the last event: both are told the same story and asked the same questions."""

import numpy as np
import pytest
from engine_stories import PARTITIONS, REPLICAS, US, arrivals, outcome
from hypothesis import given, settings
from hypothesis import strategies as st

from autoscaler.simulator.arrivals import Arrivals
from autoscaler.simulator.pooled.fast import FastPool
from autoscaler.simulator.pooled.reference import ReferencePool
from autoscaler.simulator.service import ServiceTimes
from autoscaler.simulator.settings import Distribution, ServiceSettings

POOLS = [FastPool, ReferencePool]
WHICH = st.integers(0, 10)
STEP = st.one_of(
    st.tuples(
        st.just("feed"),
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, PARTITIONS - 1)), min_size=1, max_size=12),
    ),
    st.tuples(st.just("advance"), st.integers(0, 30)),
    st.tuples(st.just("join"), WHICH),
    st.tuples(st.just("leave"), WHICH),
    st.tuples(st.just("kill"), WHICH),
    st.tuples(st.just("give_back"), WHICH),
    st.tuples(st.just("ask")),
    st.tuples(st.just("take")),
)
SERVICE = st.builds(
    ServiceSettings,
    service_time_s=st.sampled_from([1 * US, 4 * US, 10 * US]),
    distribution=st.sampled_from(Distribution),
    speeds=st.sampled_from([(1.0,), (1.0, 0.3)]),
    slow_from_s=st.just(20 * US),
    slow_until_s=st.just(60 * US),
    slow_factor=st.sampled_from([1.0, 2.5]),
)


class PoolStory:
    """Runs steps, (method, arguments…), on a pool; `answers` is all that it ever said."""

    def __init__(self, pool):
        self.pool = pool
        self.members = [pool.add_replica() for _ in range(REPLICAS)]
        self.others = []
        self.dead = []
        self.answers = []
        self.newest_us = 0
        for member in self.members:
            pool.join(member)

    def feed(self, gaps_and_partitions):
        gaps, partitions = zip(*gaps_and_partitions, strict=True)
        times_us = max(self.newest_us, self.pool.now_us) + np.cumsum(gaps, dtype=np.int64)
        self.newest_us = int(times_us[-1])
        self.pool.feed(Arrivals(times_us, np.array(partitions, np.int32)))

    def advance(self, duration_us):
        self.pool.advance(self.pool.now_us + duration_us)

    def join(self, which):
        """Somebody who left comes back, or a new one comes."""
        member = self.others.pop(which % len(self.others)) if self.others else self.pool.add_replica()
        self.pool.join(member)
        self.members.append(member)

    def leave(self, which):
        if self.members:
            self.others.append(self.members.pop(which % len(self.members)))
            self.pool.leave(self.others[-1])

    def kill(self, which):
        if self.members:
            self.dead.append(self.members.pop(which % len(self.members)))
            self.pool.kill(self.dead[-1])

    def give_back(self, which):
        if self.dead:
            self.pool.give_back(self.dead.pop(which % len(self.dead)))

    def ask(self):
        everybody = [*self.members, *self.others, *self.dead]
        self.answers.append([max(self.pool.now_us, self.pool.busy_until_us(member)) for member in everybody])
        self.answers += [self.pool.produced().tolist(), self.pool.committed().tolist()]

    def take(self):
        self.answers += outcome(self.pool)

    def end(self):
        while self.dead:
            self.give_back(0)
        self.join(0)
        self.answers.append(self.pool.drain())
        self.ask()
        self.take()

    def tell(self, steps):
        for name, *arguments in steps:
            getattr(self, name)(*arguments)
        self.end()
        return self.answers


@settings(max_examples=150, deadline=None)
@given(st.lists(STEP, max_size=60), SERVICE, st.booleans())
@pytest.mark.usefixtures("_windows")
def test_the_fast_pool_is_the_reference(steps, service, whole_batches):
    fast, reference = (
        PoolStory(make(PARTITIONS, ServiceTimes(service, seed=3), whole_batches=whole_batches)).tell(steps)
        for make in POOLS
    )
    assert fast == reference


@pytest.mark.usefixtures("_windows")
@pytest.mark.parametrize("whole_batches", [False, True])
@pytest.mark.parametrize("distribution", Distribution)
def test_a_backlog_whose_servers_come_go_and_die_all_the_time(distribution, whole_batches):
    chance = np.random.default_rng(5)
    steps = []
    for _ in range(60):
        steps.append(("feed", [(int(chance.integers(0, 3)), int(chance.integers(PARTITIONS))) for _ in range(40)]))
        for name in chance.choice(["join", "join", "leave", "kill", "give_back"], size=3):
            steps.append((str(name), int(chance.integers(9))))
        steps += [("advance", int(chance.integers(0, 45))), ("ask",), ("take",)]
    service = ServiceTimes(ServiceSettings(service_time_s=3 * US, distribution=distribution), seed=8)
    fast, reference = (PoolStory(make(PARTITIONS, service, whole_batches=whole_batches)).tell(steps) for make in POOLS)

    assert fast == reference
    assert sum(isinstance(answer, tuple) for answer in fast) == 2_400, "every event was served"


@pytest.mark.parametrize("make", POOLS)
@pytest.mark.parametrize(
    ("events", "why"),
    [([(4, 0)], "comes too late: 5"), ([(9, PARTITIONS)], "outside 0 … 3"), ([(9, -1)], "outside 0 … 3")],
)
def test_events_that_cannot_be_are_refused(make, events, why):
    pool = make(PARTITIONS, ServiceTimes(ServiceSettings(), seed=1))
    pool.feed(arrivals((5, 0)))
    with pytest.raises(ValueError, match=why):
        pool.feed(arrivals(*events))


@pytest.mark.parametrize("make", POOLS)
def test_work_that_nobody_serves_is_not_forgotten(make):
    pool = make(PARTITIONS, ServiceTimes(ServiceSettings(), seed=1))
    only = pool.add_replica()
    pool.join(only)
    pool.feed(arrivals((0, 0)))
    pool.advance(1)
    pool.kill(only)
    pool.give_back(only)
    with pytest.raises(ValueError, match="nobody serves"):
        pool.drain()


def test_what_was_taken_makes_room_for_what_comes():
    pool = FastPool(PARTITIONS, ServiceTimes(ServiceSettings(service_time_s=1 * US), seed=1))
    pool.join(pool.add_replica())
    served = 0
    for second in range(200):
        pool.feed(Arrivals(np.arange(1000) * 2 + second * 2000, np.arange(1000, dtype=np.int32) % PARTITIONS))
        pool.advance((second + 1) * 2000)
        served += len(outcome(pool))
    assert served == 200_000
    assert len(pool._events.rows) < 10_000
