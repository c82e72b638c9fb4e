"""The result of many runs: means, differences, the Pareto front, and the page."""

from pathlib import Path
from typing import Any

import comparison_work
import numpy as np
import pytest

from bench import matrix_table
from bench.jobs import FAILED, OPTIMUM, Job, Row
from bench.matrix import Axis, Case, Matrix
from bench.matrix_page import draw, page
from bench.matrix_table import Comparison, Line, compare

HARDNESS = np.random.default_rng(1).normal(0, 1, 100)
"""How hard each seed is, for every policy alike."""
FIGURES = {"algorithm-2": (0.99, 30.0), "linear": (0.95, 25.5), "algorithm-1": (0.94, 50.0)}


def row_of(job: Job) -> Row:
    """`algorithm-2` is better and dearer than `linear`; `static` fails with seed 2."""
    if job.policy == "static" and job.seed == 2:
        return {FAILED: "it broke"}
    if job.how == OPTIMUM:
        return {"optimum_replica_minutes": 20.0, "lower": 19.0}
    in_sla, cost = FIGURES.get(job.policy, (1.0, 1.0))
    hard = float(HARDNESS[job.seed])
    return comparison_work.invented_row(job, in_sla=in_sla + 0.002 * hard, replica_minutes=cost + hard)


@pytest.fixture(autouse=True)
def _nothing_is_simulated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matrix_table, "run", lambda jobs, *_, **__: {job: row_of(job) for job in jobs})


def compared(*policies: str, split: str = "random", **how: Any) -> Comparison:
    names = policies or ("linear", "algorithm-2", "algorithm-1", "static")
    case = Case(scenario="w1", set={"split": split})
    return compare(Matrix(title="t", case=[case], contender=list(names), **how), Path())


def lines(found: Comparison) -> dict[str, Line]:
    return {line.policy: line for line in found.rows}


def test_differences_are_taken_seed_by_seed() -> None:
    rows = lines(compared())
    ours, less = rows["linear"].figures["in_sla"], rows["linear"].more["in_sla"]
    assert less.mean == pytest.approx(-0.04)
    assert less.high - less.low < 1e-9, "the effect of a seed cancels out"
    assert ours.high - ours.low > 1e-4, "the mean itself is less certain"
    assert rows["algorithm-2"].more == {}, "the reference is not compared with itself"
    assert {row.reference for row in rows.values()} == {"algorithm-2"}
    assert lines(compared("linear", "tail-aware", "algorithm-2"))["linear"].reference == "tail-aware"


def test_the_pareto_front_excludes_dominated_policies_and_those_that_know_the_future() -> None:
    found = compared("linear", "algorithm-2", "algorithm-1", "clairvoyant")
    assert {row.policy for row in found.rows if row.on_front} == {"linear", "algorithm-2"}
    assert "knows the future" in page(found)


def test_the_page_has_every_contender_and_the_plot_is_drawn(tmp_path: Path) -> None:
    found = compared()
    assert "Random: split; 20 seeds" in page(found)
    assert all(f"| `{line.policy}` |" in page(found) for line in found.rows)
    axis = Axis(varies="seconds until a replica serves", key="startup_s", values=[0, 5, "gke"])
    over_axis = compared("linear", "algorithm-2", axis=axis)
    assert page(over_axis).count("99 %") == 0 < page(over_axis).count("\n| gke |")
    for name, one in (("cases", found), ("axis", over_axis)):
        draw(one, tmp_path / f"{name}.svg")
        assert (tmp_path / f"{name}.svg").stat().st_size > 5_000
