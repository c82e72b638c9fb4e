"""What follows from many runs: means, differences, the front, and how it is said."""

from collections.abc import Iterable

import comparison_work
import msgspec
import numpy as np
import pytest

from bench.experiments.campaign import Outcomes
from bench.experiments.compare import Comparison, PolicyFigures, compare, reference_of
from bench.experiments.experiment import Experiment, random_parts, world
from bench.experiments.tables import against, page
from bench.results import Origin
from bench.scenario import Scenario, load_scenario
from bench.simulation.result import SimulationResult
from bench.simulation.run import run_scenario

ORIGIN = Origin(command="tailpack compare", commit="0123abc", machine="2 cores", measured_on="2026-01-05")
WORLDS = np.random.default_rng(1).normal(0, 1, 100)
"""How hard each seed is, for every policy alike."""


class Told:
    """A campaign whose results are known: `algorithm-2` is better and dearer than `linear`, `static` fails once."""

    def __init__(self) -> None:
        self.asked: list[Experiment] = []

    def run(self, experiments: Iterable[Experiment]) -> Outcomes:
        self.asked = list(experiments)
        failed = {one: "it broke" for one in self.asked if one.policy == "static" and one.seed == 2}
        return Outcomes({one: self.result(one) for one in self.asked if one not in failed}, failed)

    def result(self, one: Experiment) -> SimulationResult:
        world = float(WORLDS[one.seed])
        in_sla, cost = {"algorithm-2": (0.99, 30.0), "linear": (0.95, 25.5), "algorithm-1": (0.94, 50.0)}.get(
            one.policy, (1.0, 1.0)
        )
        return comparison_work.told(one, in_sla=in_sla + 0.002 * world, replica_minutes=cost + world)


def compared(
    scenarios: list[str], policies: list[str], *, seeds: int = 20, changes: dict[str, object] | None = None
) -> Comparison:
    worlds = [world(scenario, changes) for scenario in scenarios]
    return compare(Told(), worlds=worlds, policies=policies, seeds=seeds)  # type: ignore[arg-type]


def rows_of(found: Comparison) -> dict[tuple[str, str], PolicyFigures]:
    return {(row.scenario, row.policy): row for row in found.rows}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spacing": "smooth", "startup_s": 20},
        {"delivery": "share", "policy": "static"},
        {"split": "random"},
        {"spacing": "poisson"},
        {"delivery": "eager", "heartbeat_s": 3},
        {"delivery": "kip848"},
        {"startup_s": "gke"},
        {"distribution": "pareto"},
        {"observation_loss": 0.2, "policy": "algorithm-1"},
    ],
)
def test_seeds_make_a_difference_exactly_where_something_is_random(changes: dict[str, object]) -> None:
    one, other = (
        run_scenario(question({**changes, "duration_s": 200, "seed": seed}), keep_events=False)[1] for seed in (1, 2)
    )
    measured = {"seed": 0, "wall_s": 0.0, "policy_s": 0.0}
    same = msgspec.structs.replace(one, **measured) == msgspec.structs.replace(other, **measured)
    assert same == (not random_parts(question(changes)))


def question(changes: dict[str, object]) -> Scenario:
    return load_scenario("w1", {"split": "even", "policy": "linear", **changes})


def test_differences_are_taken_seed_by_seed() -> None:
    rows = rows_of(compare_random())
    ours = rows["w1", "linear"]
    assert ours.in_sla_difference is not None
    assert ours.in_sla_difference.mean == pytest.approx(-0.04)
    assert ours.in_sla_difference.high - ours.in_sla_difference.low < 1e-9, "what the seeds do cancels out"
    assert ours.in_sla.high - ours.in_sla.low > 1e-4, "the mean itself is less certain"
    assert rows["w1", "algorithm-2"].in_sla_difference is None, "nobody is compared with himself"
    assert {row.reference for row in rows.values()} == {"algorithm-2"}


def compare_random() -> Comparison:
    return compared(["w1"], ["linear", "algorithm-2", "algorithm-1", "static"], changes={"split": "random"})


def test_the_front_leaves_out_who_is_beaten() -> None:
    rows = rows_of(compare_random())
    assert {policy for (_, policy), row in rows.items() if row.on_front} == {"linear", "algorithm-2"}


def test_who_knows_the_future_is_in_nobodys_way_on_the_front() -> None:
    rows = rows_of(compared(["w1"], ["linear", "algorithm-2", "clairvoyant"]))
    assert rows["w1", "clairvoyant"].replica_minutes.mean < rows["w1", "linear"].replica_minutes.mean
    assert {policy for (_, policy), row in rows.items() if row.on_front} == {"linear", "algorithm-2"}
    assert "| `clairvoyant` |" in page(list(rows.values()), [ORIGIN])
    assert "knows the future |" in page(list(rows.values()), [ORIGIN])


def test_a_policy_that_failed_with_a_seed_has_no_row_but_a_reason() -> None:
    found = compare_random()
    assert ("w1", "static") not in rows_of(found)
    assert [(one.run, one.why) for one in found.missing] == [("w1, static, seed 2, split=random", "it broke")]


def test_tail_aware_is_what_others_are_compared_with() -> None:
    assert reference_of(["linear", "algorithm-2", "tail-aware"]) == "tail-aware"
    assert reference_of(["linear", "algorithm-2"]) == "algorithm-2"
    assert reference_of(["linear", "static"]) == "linear"


def test_one_seed_distinguishes_nothing_where_something_is_random() -> None:
    random = rows_of(compared(["w1"], ["linear", "algorithm-2"], seeds=1, changes={"split": "random"}))
    difference = random["w1", "linear"].in_sla_difference
    assert difference is not None
    assert not difference.distinguishable
    assert against(difference, 100, ".1f") == "-4.0, one seed"
    fixed = rows_of(compared(["w1"], ["linear", "algorithm-2"], seeds=1, changes={"split": "even"}))
    exact = fixed["w1", "linear"].in_sla_difference
    assert exact is not None
    assert exact.distinguishable
