"""Contract tests of ConsumerGroup, for the simulated and the live group.

The test advances the environment: `come_up` makes requested replicas ready, `settle` carries out decisions, `serve`
lets each replica serve some events for a second. The second of three replicas is half as fast as the others.
"""

from collections.abc import Callable
from typing import Protocol

import pytest
from live_worlds import PARTITIONS, started
from unit.autoscaler.simulator.worlds import Story

from autoscaler.model import Action, Decision, Plan
from autoscaler.ports import ConsumerGroup
from autoscaler.simulator.settings import ServiceSettings
from contracts.progress import ReplicaState

FIRST, SECOND, THIRD = "payment-0", "payment-1", "payment-2"
HALVES = {0: FIRST, 1: SECOND, 2: FIRST, 3: SECOND}
ALL_ON_FIRST = dict.fromkeys(range(PARTITIONS), FIRST)


class Environment(Protocol):
    group: ConsumerGroup

    def come_up(self, *names: str) -> None: ...

    def settle(self) -> None: ...

    def serve(self) -> None: ...


class Simulated:
    """A simulated group with one ready replica that owns all partitions; further ones start in 5 s."""

    def __init__(self) -> None:
        service = ServiceSettings(service_time_s=0.005, speeds=(1.0, 0.5, 1.0))
        events_ms = [(10 * event, event % PARTITIONS) for event in range(1000)]
        self._story = Story(events_ms, partitions=PARTITIONS, startup_s=5.0, service=service)
        self.group: ConsumerGroup = self._story.group
        self._now_ms = 100
        self._story.at(self._now_ms)

    def come_up(self, *names: str) -> None:
        self._pass(5000)

    def settle(self) -> None:
        self._pass(100)

    def serve(self) -> None:
        self._pass(1000)

    def _pass(self, ms: int) -> None:
        self._now_ms += ms
        self._story.at(self._now_ms)


class Live:
    """A LiveGroup with fake brokers and processes."""

    def __init__(self) -> None:
        self._world = started(1)
        self.group: ConsumerGroup = self._world.group
        self._served = 0

    def come_up(self, *names: str) -> None:
        for name in names:
            self._world.report(name, ReplicaState.WARM)
        for name in names:
            self._world.report(name)

    def settle(self) -> None:
        """Let removed replicas report that they are drained, and end."""
        wanted = {replica.name for replica in self.group.observe().replicas}
        for name in tuple(self._world.scaler.instances):
            if name not in wanted:
                self._world.report(name, ReplicaState.DRAINED)
                self._world.launcher.newest(name).finish()
        self._world.step()

    def serve(self) -> None:
        self._world.clock.advance(1.0)
        self._served += 50
        for name in self._world.scaler.instances:
            each_us = 10_000 if name == SECOND else 5_000
            self._world.report(name, processed=self._served, busy_us=self._served * each_us)


@pytest.fixture(params=[Simulated, Live], ids=["simulated", "live"])
def environment(request: pytest.FixtureRequest) -> Environment:
    make: Callable[[], Environment] = request.param
    return make()


def decide(environment: Environment, action: Action, replicas: tuple[str, ...], owners: dict[int, str]) -> None:
    environment.group.apply(Decision(action, Plan(replicas, owners), f"because of {action}"))


def test_an_observation_is_complete(environment: Environment) -> None:
    seen = environment.group.observe()
    assert [load.partition for load in seen.partitions] == list(range(PARTITIONS))
    assert all(load.arrival_rate >= 0 and load.lag >= 0 for load in seen.partitions)
    assert set(seen.assignment) == set(range(PARTITIONS))
    assert set(seen.assignment.values()) <= set(seen.replica_names)
    assert seen.service_rate > 0
    assert seen.rebalance_time_s >= 0


def test_an_observation_changes_nothing(environment: Environment) -> None:
    first, second = environment.group.observe(), environment.group.observe()
    assert (first.partitions, first.replicas) == (second.partitions, second.replicas)
    assert first.assignment == second.assignment


def test_requested_replicas_are_observed_at_once_and_become_ready_later(environment: Environment) -> None:
    decide(environment, Action.UP, (FIRST, SECOND), HALVES)
    seen = environment.group.observe()
    assert [(one.name, one.ready) for one in seen.replicas] == [(FIRST, True), (SECOND, False)]
    assert seen.assignment == HALVES
    environment.come_up(SECOND)
    assert [(one.name, one.ready) for one in environment.group.observe().replicas] == [(FIRST, True), (SECOND, True)]


def test_replicas_are_observed_in_the_order_of_their_requests(environment: Environment) -> None:
    decide(environment, Action.UP, (FIRST, THIRD), ALL_ON_FIRST)
    environment.come_up(THIRD)
    decide(environment, Action.UP, (FIRST, SECOND, THIRD), ALL_ON_FIRST)
    assert environment.group.observe().replica_names == (FIRST, THIRD, SECOND)


def test_a_replica_that_is_being_removed_is_not_observed(environment: Environment) -> None:
    decide(environment, Action.UP, (FIRST, SECOND), HALVES)
    environment.come_up(SECOND)
    decide(environment, Action.DOWN, (FIRST,), ALL_ON_FIRST)
    for _ in range(2):
        seen = environment.group.observe()
        assert seen.replica_names == (FIRST,)
        assert seen.requested_replicas == 1
        assert seen.assignment == ALL_ON_FIRST
        environment.settle()


def test_a_later_decision_replaces_one_that_was_not_carried_out(environment: Environment) -> None:
    decide(environment, Action.UP, (FIRST, SECOND, THIRD), HALVES | {3: THIRD})
    decide(environment, Action.DOWN, (FIRST, SECOND), HALVES)
    environment.come_up(SECOND)
    seen = environment.group.observe()
    assert seen.replica_names == (FIRST, SECOND)
    assert seen.assignment == HALVES


def test_a_decision_can_remove_the_oldest_replica(environment: Environment) -> None:
    decide(environment, Action.UP, (FIRST, SECOND), HALVES)
    environment.come_up(SECOND)
    decide(environment, Action.DOWN, (SECOND,), dict.fromkeys(range(PARTITIONS), SECOND))
    environment.settle()
    seen = environment.group.observe()
    assert seen.replica_names == (SECOND,)
    assert set(seen.assignment.values()) == {SECOND}


def test_a_slow_replica_gets_its_own_rate_once_it_has_served(environment: Environment) -> None:
    decide(environment, Action.UP, (FIRST, SECOND), HALVES)
    assert [one.service_rate for one in environment.group.observe().replicas] == [None, None]
    environment.come_up(SECOND)
    for _ in range(4):
        seen = environment.group.observe()
        environment.serve()
    assert [one.service_rate for one in seen.replicas] == [pytest.approx(200, rel=0.05), pytest.approx(100, rel=0.05)]
    assert 120 < seen.service_rate < 180, "a third replica may be fast or slow"
    decide(environment, Action.DOWN, (FIRST,), ALL_ON_FIRST)
    environment.group.observe()
    environment.settle()
    decide(environment, Action.UP, (FIRST, SECOND), HALVES)
    assert environment.group.observe().replicas[1].service_rate is None, "the rate of a new incarnation is unknown"


def test_equal_replicas_have_no_own_rate(environment: Environment) -> None:
    decide(environment, Action.UP, (FIRST, SECOND, THIRD), HALVES)
    environment.come_up(SECOND, THIRD)
    decide(environment, Action.DOWN, (FIRST, THIRD), {0: FIRST, 1: THIRD, 2: FIRST, 3: THIRD})
    environment.settle()
    for _ in range(4):
        seen = environment.group.observe()
        environment.serve()
    assert [one.service_rate for one in seen.replicas] == [None, None]
    assert seen.service_rate == pytest.approx(200, rel=0.02)
