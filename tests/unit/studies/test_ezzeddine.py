"""The rule of reproduction, and the runs for the statements of the autoscaling papers."""

from collections import Counter
from pathlib import Path
from typing import Any

import comparison_work
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import seen

from autoscaler.model import Plan
from bench.matrix import FAILED, Job, Row
from studies import ezzeddine
from studies.same_counts import equal_counts
from studies.statements import Contrast, Run, interpretations, under_best_interpretation
from studies.verdict import DIFFERS, REPRODUCED, UNKNOWN, Statement

PAPERS = (list(ezzeddine.closer()), list(ezzeddine.iccbdc()))
RUNS = [[one for one in paper if isinstance(one, Run)] for paper in PAPERS]
PRINTED = {"in_sla": 0.974, "replica_minutes": 30.0, "ups": 6, "downs": 6}
INTERPRETATIONS = {"text": {}, "all switches": {"heartbeat_s": 0.5}}


def printed(figures: dict[str, float] | None = None, what: str = "a") -> Run:
    tried = interpretations("algorithm-2", INTERPRETATIONS)
    return Run(paper="p", table="t", what=what, scenario="w1", printed=figures or PRINTED, interpretations=tried)


def ran(**figures: Any) -> Row:
    usual = {"in_sla": 0.974, "replica_minutes": 30.0, "replicas_added": 6, "replicas_removed": 6, "max_s": 0.9}
    return comparison_work.invented_row(Job(scenario="w1", policy="algorithm-2")) | usual | figures


def row(*seeds: Row, figures: dict[str, float] | None = None) -> Statement:
    one = printed(figures)
    return one.row({one: {"text": seeds}}, "text")


@pytest.mark.parametrize(
    ("figures", "verdict", "why"),
    [
        ({}, REPRODUCED, ""),
        ({"in_sla": 0.9839}, REPRODUCED, ""),
        ({"in_sla": 0.9851}, DIFFERS, "nearest seed: 98.51 %"),
        ({"replica_minutes": 30.9}, REPRODUCED, ""),
        ({"replica_minutes": 31.2}, DIFFERS, "nearest seed: 31.2 r-m"),
        ({"replicas_removed": 7}, REPRODUCED, ""),
        ({"in_sla": 0.9, "replicas_added": 9}, DIFFERS, "nearest seed: 90 %, 9 ups"),
    ],
)
def test_every_printed_figure_must_match(figures: dict[str, float], verdict: str, why: str) -> None:
    found = row(ran(**figures))
    assert (found.verdict, found.why) == (verdict, why)


def test_a_paper_is_judged_under_the_interpretation_that_reproduces_most_of_it() -> None:
    rows = [printed(what=name) for name in "abc"]
    jobs = {one: {name: [Job(scenario=one.what, policy=name)] for name in INTERPRETATIONS} for one in rows}
    good = {("a", "text"), ("b", "all switches"), ("c", "all switches")}
    every = [job for by_reading in jobs.values() for (job,) in by_reading.values()]
    rows_by_job = {job: ran(in_sla=0.974 if (job.scenario, job.policy) in good else 0.5) for job in every}
    contrast = Contrast(paper="p", table="t", what="a > b", better=rows[0], worse=rows[1])
    found = list(under_best_interpretation([*rows, contrast], jobs, rows_by_job))
    assert [one.verdict for one in found] == [DIFFERS, REPRODUCED, REPRODUCED, DIFFERS]
    assert {one.reading for one in found} == {"all switches"}
    assert found[3].why == "-47.4 points off", "the difference of a and b has a size, not only a sign"


def test_an_interpretation_has_the_same_valid_settings_in_all_rows() -> None:
    set_by: dict[str, set[frozenset[tuple[str, Any]]]] = {}
    for one in (one for runs in RUNS for one in runs):
        for reading, (job,) in zip(one.interpretations, one.jobs(1).values(), strict=True):
            assert job.read_scenario().autoscaler.policy == reading.policy
            row_s = {"heartbeat_s", "rebalance_time_s", "decision_interval_s", "split", "autoscaler.initial_replicas"}
            own = {pair for pair in job.changes if pair[0] not in row_s} - set(reading.row_changes)
            set_by.setdefault(reading.name, set()).add(frozenset(own))
    assert all(len(some) == 1 for some in set_by.values()), set_by


def test_every_statement_becomes_a_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(jobs: Any, *_: Any, **__: Any) -> dict[Job, Row]:
        failed = {FAILED: "it broke"}
        return {job: failed if job.policy == "algorithm-1" else comparison_work.invented_row(job) for job in jobs}

    monkeypatch.setattr("studies.verdict.run", run)
    found = ezzeddine.reproduce(tmp_path, seeds=2)
    assert len(found.rows) == sum(map(len, PAPERS)) == 43
    assert {one.why for one in found.missing} == {"it broke"}
    broken = next(one for one in found.rows if one.what == "t_r 2 s, algorithm-1")
    assert broken.verdict == UNKNOWN


@given(owned=st.lists(st.integers(0, 3), min_size=5, max_size=5), replicas=st.integers(1, 4), seed=st.integers(0, 9))
def test_random_placement_is_equal_and_moves_little(owned: list[int], replicas: int, seed: int) -> None:
    before = seen([50.0] * 5, replicas=4, owned=owned)
    names = before.replica_names[:replicas]
    plan = equal_counts(before, Plan(names, None), np.random.default_rng(seed))
    assert plan.assignment is not None
    owned_now = Counter(plan.assignment.values())
    counts = sorted((owned_now[name] for name in names), reverse=True)
    most, larger = divmod(5, replicas)
    assert counts == [most + (place < larger) for place in range(replicas)]
    moved = sum(before.assignment[one] != owner for one, owner in plan.assignment.items())
    owned_before = sorted((Counter(before.assignment.values())[name] for name in names), reverse=True)
    assert moved == 5 - sum(min(has, room) for has, room in zip(owned_before, counts, strict=True))
