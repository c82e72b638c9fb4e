"""Plans of the experiments: who takes what is balanced, bounded and follows from the seed alone."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bench.handover.evidence import Move, Step
from tailpack.errors import TailpackError
from tailpack.labs import plans as plans_module
from tailpack.labs.dense import SLACK, DenseSteps
from tailpack.labs.journal import Journal
from tailpack.labs.plans import Plans
from tailpack.labs.runtimes import RUNTIMES, planned, runtime


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
def plans(monkeypatch: pytest.MonkeyPatch) -> Plans:
    return made(monkeypatch, Broker())


def made(monkeypatch: pytest.MonkeyPatch, broker: Broker) -> Plans:
    from contracts.connection import Connection

    monkeypatch.setattr(plans_module, "Producer", lambda _settings: broker)
    return Plans(Connection(bootstrap_servers="nowhere:1", namespace="lab"))


def test_a_plan_moves_what_it_gives_to_somebody_else(plans: Plans) -> None:
    plans.write(("a", "b"), {0: "a", 1: "b", 2: "a"})
    assert plans.moves({0: "b", 1: "b"}) == (Move(0, "a", "b"),)
    assert plans.held_by("a") == [0, 2]


def test_epochs_grow_by_one(plans: Plans) -> None:
    times = [plans.write(("a",), {0: "a"}) for _ in range(3)]
    assert plans.epoch == 3
    assert times == sorted(times)


def test_partitions_are_spread_to_the_least_loaded(plans: Plans) -> None:
    plans.write(("a", "b", "c"), {0: "a", 1: "a", 2: "b"})
    assert plans.spread([3, 4, 5], ("a", "b", "c")) == {3: "c", 4: "b", 5: "c"}


def test_a_plan_that_the_broker_does_not_take_is_one_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    plans = made(monkeypatch, Broker(answers=False))
    with pytest.raises(TailpackError, match="plan 1 was not taken by the broker within 10 s"):
        plans.write(("a",), {0: "a"})


def lab(plans: Plans, replicas: int) -> Any:
    """A lab in which nothing is served and time does not pass."""
    timeline = SimpleNamespace(last_done_us=lambda *_: 0)
    return SimpleNamespace(
        plans=plans, timeline=timeline, setup=SimpleNamespace(replicas=replicas), pump=lambda **_: None
    )


def random_plans(plans: Plans, seed: int, count: int) -> list[tuple[Step, Mapping[int, str]]]:
    names = tuple("abcd")
    plans.write(names, {number: names[number % 4] for number in range(24)})
    journal = Journal()
    following = DenseSteps(lab(plans, 4), journal, seed=seed, deadline_s=1.0).random_plans()
    told = []
    for _ in range(count):
        next(following)
        told.append((journal.steps[-1], dict(plans.assignment)))
    return told


def test_random_plans_move_one_to_six_partitions_and_overload_nobody(plans: Plans) -> None:
    told = random_plans(plans, seed=3, count=400)
    assert {step.kind for step, _ in told} == {"gather", "scatter", "swap"}
    assert all(len(step.moves or ()) <= 6 for step, _ in told)
    assert any(len(step.moves or ()) == 6 for step, _ in told)
    for _, assignment in told:
        assert sorted(assignment) == list(range(24))
        assert max(Counter(assignment.values()).values()) <= 24 // 4 + SLACK


def test_random_plans_follow_from_the_seed(plans: Plans) -> None:
    first = [step.moves for step, _ in random_plans(plans, seed=5, count=50)]
    again = [step.moves for step, _ in random_plans(plans, seed=5, count=50)]
    other = [step.moves for step, _ in random_plans(plans, seed=6, count=50)]
    assert first == again
    assert first != other


def test_one_replica_alone_has_nobody_to_hand_over_to(plans: Plans) -> None:
    with pytest.raises(TailpackError, match="--replicas must be at least 2"):
        DenseSteps(lab(plans, 1), Journal(), seed=1, deadline_s=1.0)


def test_every_runtime_is_started_with_its_name() -> None:
    for name, found in RUNTIMES.items():
        assert name in found.environ.values()
        assert found.module in {"services.payment", "services.comparators"}
    assert [name for name, found in RUNTIMES.items() if found.takes_plan] == ["incremental", "eager"]
    assert [name for name, found in RUNTIMES.items() if not found.owned] == ["share"]


def test_an_unknown_runtime_and_one_without_a_plan_are_refused_with_what_would_do() -> None:
    with pytest.raises(TailpackError, match="'stock' is unknown; known are incremental, eager, cooperative-sticky"):
        runtime("stock")
    with pytest.raises(TailpackError, match="faust takes no plan; use incremental, eager"):
        planned("faust")


def test_modules_of_the_runtimes_exist() -> None:
    root = Path(__file__).parents[3]
    assert all((root / found.module.replace(".", "/") / "__main__.py").exists() for found in RUNTIMES.values())
