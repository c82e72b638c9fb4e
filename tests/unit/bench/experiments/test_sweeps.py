"""Sweeps: every point is a question that makes sense, and its page shows them all."""

from collections.abc import Iterable

import comparison_work
import pytest

from bench.experiments.campaign import Outcomes
from bench.experiments.experiment import Experiment, experiment
from bench.experiments.sweeps import SWEEPS, Point, Sweep, SweepResult, points, run

SMALL = Sweep(
    name="startup",
    title="Seconds until a new replica serves",
    asks="Who sees it coming?",
    axis="startup_s",
    points=(*points("startup_s", (0, 10, "gke")), Point("0", (("startup_s", 0), ("f_up", 0.5)), "f_up = 0.5")),
    scenarios=("w1", "w1-skew9"),
    policies=("algorithm-2", "linear"),
)


class Told:
    """A campaign in which late starts cost latency; `linear` fails where start-ups are random."""

    def run(self, experiments: Iterable[Experiment]) -> Outcomes:
        asked = list(experiments)
        failed = {one: "it broke" for one in asked if one.policy == "linear" and ("startup_s", "gke") in one.changes}
        return Outcomes({one: self.result(one) for one in asked if one not in failed}, failed)

    def result(self, one: Experiment):  # type: ignore[no-untyped-def]
        late = {0: 0.001, 10: 0.05}.get(dict(one.changes)["startup_s"], 0.1)
        return comparison_work.told(one, in_sla=1 - late)


@pytest.fixture(scope="module")
def found() -> SweepResult:
    return run(Told(), SMALL, seeds=3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", SWEEPS)
def test_every_point_is_a_question_that_makes_sense(name: str) -> None:
    sweep = SWEEPS[name]
    assert sweep.name == name
    for scenario in sweep.scenarios:
        for point in sweep.points:
            question = experiment(scenario, "linear", changes=dict(point.changes)).question()
            assert question.name == scenario
    labels = [(point.label, point.series) for point in sweep.points]
    assert len(set(labels)) == len(labels), "a point is shown once"


def test_rows_come_by_scenario_and_point_with_their_labels(found: SweepResult) -> None:
    seen = [(row.scenario, row.point, row.series, row.policy) for row in found.rows]
    assert seen[:3] == [("w1", "0", "", "algorithm-2"), ("w1", "0", "", "linear"), ("w1", "10", "", "algorithm-2")]
    assert ("w1-skew9", "0", "f_up = 0.5", "linear") in seen
    assert ("w1", "gke", "", "linear") not in seen
    assert len(found.missing) == 6, "three seeds, two scenarios"
    assert {row.seeds for row in found.rows if row.point == "gke"} == {3}
    assert {row.seeds for row in found.rows if row.point != "gke"} == {1}, "nothing is random there"
