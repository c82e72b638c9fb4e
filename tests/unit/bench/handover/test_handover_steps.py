"""Plans of the experiments: who takes what is balanced, bounded and follows from the seed alone."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bench.handover.courses import Steps, find_steps
from bench.handover.dense import SLACK, DenseSteps
from bench.handover.evidence import Move, Step
from bench.handover.load import Sent, offset_us
from bench.handover.plans import Plans
from bench.handover.setup import RUNTIMES, ExperimentError, Setup, find_runtime
from contracts.connection import Connection
from contracts.validation import InvalidSettingsError


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


def test_partitions_are_spread_to_the_least_loaded(plans: Plans) -> None:
    plans.write({0: "a", 1: "a", 2: "b"}, ("a", "b", "c"))
    assert plans.spread([3, 4, 5], ("a", "b", "c")) == {3: "c", 4: "b", 5: "c"}


def test_a_plan_that_the_broker_does_not_take_is_one_clear_error() -> None:
    plans = made(Broker(answers=False))
    with pytest.raises(ExperimentError, match="plan 1 was not taken by the broker within 10 s"):
        plans.write({0: "a"}, ("a",))


def random_plans(seed: int, count: int) -> list[tuple[Step, Mapping[int, str]]]:
    """Plans for 4 replicas and 24 partitions, in a group in which nothing is served and time does not pass."""
    plans, names = made(Broker()), tuple("abcd")
    plans.write({number: names[number % 4] for number in range(24)}, names)
    group: Any = SimpleNamespace(
        plans=plans, timeline=SimpleNamespace(last_done_us=lambda *_: 0), setup=SimpleNamespace(seed=seed),
        steps=[], handovers=0, pump=lambda _: None,
    )  # fmt: skip
    following = DenseSteps(group).random_plans()
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


def test_every_runtime_is_started_with_its_name() -> None:
    for name, found in RUNTIMES.items():
        assert name in found.environ.values()
        assert found.module in {"services.payment", "services.comparators"}
    assert [name for name, found in RUNTIMES.items() if found.takes_plan] == ["incremental", "eager"]
    assert [name for name, found in RUNTIMES.items() if not found.owned] == ["share"]


def test_an_unknown_runtime_and_one_without_a_plan_are_refused_with_what_would_do() -> None:
    with pytest.raises(InvalidSettingsError, match="'stock' is unknown; use incremental, eager, cooperative-sticky"):
        find_runtime("stock")
    with pytest.raises(InvalidSettingsError, match="'faust' takes no plan; use incremental, eager"):
        find_runtime("faust", takes_plan=True)


@pytest.mark.parametrize(
    ("name", "runtime", "replicas", "problem"),
    [
        ("wild", "incremental", 3, "steps 'wild' are unknown; known are mixed, random, storm, slow-event"),
        ("storm", "faust", 3, "steps storm need a plan, and faust takes none; use mixed"),
        ("slow-event", "incremental", 2, "steps slow-event need 3 replicas at least"),
    ],
)
def test_steps_that_the_group_cannot_take_are_refused(name: str, runtime: str, replicas: int, problem: str) -> None:
    with pytest.raises(InvalidSettingsError, match=problem):
        find_steps(name, Setup(runtime=find_runtime(runtime), replicas=replicas))
    assert find_steps("mixed", Setup(runtime=find_runtime("faust"))) is Steps.MIXED


def test_modules_of_the_runtimes_exist() -> None:
    root = Path(__file__).parents[4]
    assert all((root / found.module.replace(".", "/") / "__main__.py").exists() for found in RUNTIMES.values())


def test_the_load_is_evenly_spaced_and_what_the_broker_refused_was_not_sent() -> None:
    offsets = [offset_us(number, 150.0) for number in range(450)]
    assert (offsets[0], offsets[150]) == (0, 1_000_000)
    assert set(np.diff(offsets).tolist()) == {6666, 6667}
    sent = Sent(started_us=1_000_000, rate=150.0, sent=6, refused=(1, 5), lateness_p99_us=900, lateness_max_us=2000)
    assert sent.acknowledged_us().tolist() == [1_000_000, 1_013_333, 1_020_000, 1_026_666]
