"""What every ConsumerGroup promises, whatever stands behind it: one suite, run on both worlds.

A world is turned by the test: `come_up` lets what was requested become ready, `settle` lets what was decided happen,
`serve` lets each replica serve some events for a second. The second of three replicas is half as fast as the others.
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


class World(Protocol):
    group: ConsumerGroup

    def come_up(self, *names: str) -> None: ...

    def settle(self) -> None: ...

    def serve(self) -> None: ...


class Simulated:
    """One replica that is ready and owns all; further ones take 5 s."""

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
    """A LiveGroup with brokers and processes faked."""

    def __init__(self) -> None:
        self._world = started(1)
        self.group: ConsumerGroup = self._world.group
        self._served = 0

    def come_up(self, *names: str) -> None:
        for name in names:
            self._world.tell(name, ReplicaState.WARM)
        for name in names:
            self._world.tell(name)

    def settle(self) -> None:
        """What was left out reports that it has drained, and ends."""
        wanted = {one.name for one in self.group.observe().replicas}
        for name in tuple(self._world.scaler.running):
            if name not in wanted:
                self._world.tell(name, ReplicaState.DRAINED)
                self._world.launcher.newest(name).finish()
        self._world.step()

    def serve(self) -> None:
        self._world.clock.advance(1.0)
        self._served += 50
        for name in self._world.scaler.running:
            each_us = 10_000 if name == SECOND else 5_000
            self._world.tell(name, processed=self._served, busy_us=self._served * each_us)


@pytest.fixture(params=[Simulated, Live], ids=["simulated", "live"])
def world(request: pytest.FixtureRequest) -> World:
    make: Callable[[], World] = request.param
    return make()


def decide(world: World, action: Action, replicas: tuple[str, ...], owners: dict[int, str]) -> None:
    world.group.apply(Decision(action, Plan(replicas, owners), f"because of {action}"))


def test_an_observation_is_complete(world: World) -> None:
    seen = world.group.observe()
    assert [load.partition for load in seen.partitions] == list(range(PARTITIONS))
    assert all(load.arrival_rate >= 0 and load.lag >= 0 for load in seen.partitions)
    assert set(seen.assignment) == set(range(PARTITIONS))
    assert set(seen.assignment.values()) <= set(seen.replica_names)
    assert seen.service_rate > 0
    assert seen.rebalance_time_s >= 0


def test_to_observe_changes_nothing(world: World) -> None:
    first, second = world.group.observe(), world.group.observe()
    assert (first.partitions, first.replicas) == (second.partitions, second.replicas)
    assert first.assignment == second.assignment


def test_what_was_decided_is_seen_at_once_and_readiness_when_it_is_there(world: World) -> None:
    decide(world, Action.UP, (FIRST, SECOND), HALVES)
    seen = world.group.observe()
    assert [(one.name, one.ready) for one in seen.replicas] == [(FIRST, True), (SECOND, False)]
    assert seen.assignment == HALVES
    world.come_up(SECOND)
    assert [(one.name, one.ready) for one in world.group.observe().replicas] == [(FIRST, True), (SECOND, True)]


def test_replicas_are_seen_in_the_order_in_which_they_were_requested(world: World) -> None:
    decide(world, Action.UP, (FIRST, THIRD), ALL_ON_FIRST)
    world.come_up(THIRD)
    decide(world, Action.UP, (FIRST, SECOND, THIRD), ALL_ON_FIRST)
    assert world.group.observe().replica_names == (FIRST, THIRD, SECOND)


def test_who_is_being_removed_is_not_seen(world: World) -> None:
    decide(world, Action.UP, (FIRST, SECOND), HALVES)
    world.come_up(SECOND)
    decide(world, Action.DOWN, (FIRST,), ALL_ON_FIRST)
    for _ in range(2):
        seen = world.group.observe()
        assert seen.replica_names == (FIRST,)
        assert seen.requested_replicas == 1
        assert seen.assignment == ALL_ON_FIRST
        world.settle()


def test_a_later_decision_replaces_one_that_was_not_carried_out(world: World) -> None:
    decide(world, Action.UP, (FIRST, SECOND, THIRD), HALVES | {3: THIRD})
    decide(world, Action.DOWN, (FIRST, SECOND), HALVES)
    world.come_up(SECOND)
    seen = world.group.observe()
    assert seen.replica_names == (FIRST, SECOND)
    assert seen.assignment == HALVES


def test_the_oldest_replica_may_be_the_one_that_goes(world: World) -> None:
    decide(world, Action.UP, (FIRST, SECOND), HALVES)
    world.come_up(SECOND)
    decide(world, Action.DOWN, (SECOND,), dict.fromkeys(range(PARTITIONS), SECOND))
    world.settle()
    seen = world.group.observe()
    assert seen.replica_names == (SECOND,)
    assert set(seen.assignment.values()) == {SECOND}


def test_a_replica_that_is_slower_than_the_others_is_known_once_it_has_served(world: World) -> None:
    decide(world, Action.UP, (FIRST, SECOND), HALVES)
    assert [one.service_rate for one in world.group.observe().replicas] == [None, None]
    world.come_up(SECOND)
    for _ in range(4):
        seen = world.group.observe()
        world.serve()
    assert [one.service_rate for one in seen.replicas] == [
        pytest.approx(200, rel=0.05),
        pytest.approx(100, rel=0.05),
    ]
    assert 120 < seen.service_rate < 180, "a third one might be of either kind"
    decide(world, Action.DOWN, (FIRST,), ALL_ON_FIRST)
    world.group.observe()
    world.settle()
    decide(world, Action.UP, (FIRST, SECOND), HALVES)
    assert world.group.observe().replicas[1].service_rate is None, "of one that starts anew nothing is known"


def test_replicas_that_are_alike_have_no_rate_of_their_own(world: World) -> None:
    decide(world, Action.UP, (FIRST, SECOND, THIRD), HALVES)
    world.come_up(SECOND, THIRD)
    decide(world, Action.DOWN, (FIRST, THIRD), {0: FIRST, 1: THIRD, 2: FIRST, 3: THIRD})
    world.settle()
    for _ in range(4):
        seen = world.group.observe()
        world.serve()
    assert [one.service_rate for one in seen.replicas] == [None, None]
    assert seen.service_rate == pytest.approx(200, rel=0.02)


def test_a_name_can_be_used_again(world: World) -> None:
    decide(world, Action.UP, (FIRST, SECOND), HALVES)
    world.come_up(SECOND)
    decide(world, Action.DOWN, (FIRST,), ALL_ON_FIRST)
    world.settle()
    decide(world, Action.UP, (FIRST, SECOND), HALVES)
    assert [(one.name, one.ready) for one in world.group.observe().replicas] == [(FIRST, True), (SECOND, False)]
