"""Tests of a tick of the control loop, with a fake group and journal."""

from unit.autoscaler.builders import Wants, seen

from autoscaler.controller import Controller
from autoscaler.model import Action
from autoscaler.ports import NotReadyError


class FakeGroup:
    def __init__(self, *observations):
        self.observations = list(observations)
        self.applied = []

    def observe(self):
        following = self.observations.pop(0)
        if isinstance(following, Exception):
            raise following
        return following

    def apply(self, decision):
        self.applied.append(decision)


class FakeJournal:
    def __init__(self):
        self.decisions = []
        self.missing = []

    def record(self, observation, decision):
        self.decisions.append((observation, decision))

    def record_not_ready(self, missing):
        self.missing.append(missing.missing)


def test_a_decision_is_applied_and_recorded_with_its_observation():
    observation = seen([10, 10])
    group, journal = FakeGroup(observation), FakeJournal()

    Controller(group, Wants(2), journal).tick()

    ((recorded, decision),) = journal.decisions
    assert recorded is observation
    assert decision.action is Action.UP
    assert group.applied == [decision]


def test_no_change_is_recorded_and_not_applied():
    group, journal = FakeGroup(seen([10, 10])), FakeJournal()

    Controller(group, Wants(1), journal).tick()

    assert group.applied == []
    assert [decision.action for _, decision in journal.decisions] == [Action.NO_CHANGE]


def test_a_missing_value_is_recorded_and_the_next_tick_decides_again():
    group, journal = FakeGroup(NotReadyError("end offset of partition 3"), seen([10, 10])), FakeJournal()
    controller = Controller(group, Wants(2), journal)

    controller.tick()
    assert (group.applied, journal.decisions, journal.missing) == ([], [], ["end offset of partition 3"])

    controller.tick()
    assert len(group.applied) == len(journal.decisions) == len(journal.missing) == 1
