"""Plans of the experiments: who takes what is balanced, bounded and follows from the seed alone."""

from collections import Counter
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest

from bench.handover.courses import Steps, contradictions
from bench.handover.evidence import Move, Step
from bench.handover.plans import Plans
from bench.handover.setup import Setup
from bench.handover.steps import SLACK, PlannedSteps
from contracts.connection import Connection
from contracts.delivery import Delivery


class Broker:
    """Stands for the producer of the plan log: takes everything, or nothing."""

    def __init__(self, *, answers: bool = True) -> None:
        self.written: list[bytes] = []
        self._answers = answers

    def produce(self, _topic: str, value: bytes, _key: bytes) -> None:
        self.written.append(value)

    def flush(self, _deadline_s: float) -> int:
        return 0 if self._answers else len(self.written)


@pytest.fixture
def plans() -> Plans:
    return made(Broker())


def made(broker: Any) -> Plans:
    return Plans(Connection(bootstrap_servers="nowhere:1", namespace="test"), broker)


def test_a_plan_moves_what_it_gives_to_somebody_else(plans: Plans) -> None:
    first_us, first = plans.write({0: "a", 1: "b", 2: "a"}, ("a", "b"))
    second_us, second = plans.write({0: "b", 1: "b"})
    assert (first, second) == ((), (Move(0, "a", "b"),))
    assert (plans.held_by("a"), plans.replicas, plans.epoch) == ([2], ("a", "b"), 2)
    assert first_us <= second_us


def random_plans(seed: int, count: int) -> list[tuple[Step, Mapping[int, str]]]:
    """Plans for 4 replicas and 24 partitions, in a group in which nothing is served and time does not pass."""
    plans, names = made(Broker()), tuple("abcd")
    plans.write({number: names[number % 4] for number in range(24)}, names)
    group: Any = SimpleNamespace(
        plans=plans, timeline=SimpleNamespace(last_done_us=lambda *_: 0), setup=SimpleNamespace(seed=seed),
        steps=[], handovers=0, pump=lambda _: None,
    )  # fmt: skip
    following = PlannedSteps(group).random_plans()
    told = []
    for _ in range(count):
        next(following)
        told.append((group.steps[-1], dict(plans.assignment)))
    return told


def test_random_plans_move_one_to_six_partitions_and_overload_nobody() -> None:
    told = random_plans(seed=3, count=400)
    assert {step.kind for step, _ in told} == {"gather", "scatter", "swap"}
    assert {len(step.moves or ()) for step, _ in told} >= {1, 6}
    assert all(len(step.moves or ()) <= 6 for step, _ in told)
    for _, assignment in told:
        assert sorted(assignment) == list(range(24))
        assert max(Counter(assignment.values()).values()) <= 24 // 4 + SLACK


def test_random_plans_follow_from_the_seed() -> None:
    first, again, other = ([step.moves for step, _ in random_plans(seed, 50)] for seed in (5, 5, 6))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("steps", "runtime", "replicas", "problem"),
    [
        (Steps.RANDOM, Delivery.KIP848, 3, "steps random need a plan, and kip848 takes none; use mixed"),
        (Steps.SLOW_EVENT, Delivery.EAGER, 2, "steps slow-event need 3 replicas at least"),
    ],
)
def test_steps_that_the_group_cannot_take_are_told(
    steps: Steps, runtime: Delivery, replicas: int, problem: str
) -> None:
    (found,) = contradictions(steps, Setup(runtime=runtime, replicas=replicas))
    assert problem in found
    assert contradictions(Steps.MIXED, Setup(runtime=runtime, replicas=replicas)) == []
