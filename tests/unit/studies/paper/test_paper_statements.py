"""What the papers say, and the runs that are made of it."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import comparison_work
import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.autoscaler.builders import seen

from autoscaler.model import Action, Plan
from bench.experiments.campaign import Outcomes
from bench.experiments.experiment import Experiment
from studies.paper import closer_2024, iccbdc_2022
from studies.paper.statement import Claim, Contrast, Fact, PaperResult, Statement, reproduce
from studies.paper.work import Replayed, equal_counts
from studies.published import CLOSER_2024, CLOSER_2024_HEARTBEAT, CLOSER_2024_REBALANCE, ICCBDC_2022

PAPERS = (list(closer_2024.statements()), list(iccbdc_2022.statements()))


class Told:
    """A campaign in which every run comes to the same; `algorithm-1` fails."""

    def run(self, jobs: Iterable[Experiment]) -> Outcomes:
        asked = list(jobs)
        failed = {one: "it broke" for one in asked if one.policy == "algorithm-1"}
        return Outcomes({one: comparison_work.told(one) for one in asked if one not in failed}, failed)


def claims(paper: list[Statement]) -> list[Claim]:
    return [one for one in paper if isinstance(one, Claim)]


def test_every_printed_row_is_there() -> None:
    closer, iccbdc = (claims(paper) for paper in PAPERS)
    printed = (CLOSER_2024, CLOSER_2024_HEARTBEAT, CLOSER_2024_REBALANCE)
    assert len(closer) == sum(map(len, printed))
    assert len(iccbdc) == len(ICCBDC_2022)
    assert {one.published for one in closer} == {row for table in printed for row in table.values()}


def test_every_run_of_every_reading_is_a_question_that_makes_sense() -> None:
    for paper in PAPERS:
        for one in claims(paper):
            for reading, jobs in one.jobs(1).items():
                question = jobs[0].question()
                assert question.autoscaler.policy == reading.policy
                assert jobs[0].way == reading.way


def test_counts_are_replayed_at_their_times_and_placed_by_the_group() -> None:
    replayed = Replayed("ffd-2022", ((10.1, 3), (50.1, 2)))
    story = [(0.1, 1, Action.HOLD, 1), (10.1, 1, Action.UP, 3), (30.1, 3, Action.HOLD, 3), (50.1, 3, Action.DOWN, 2)]
    for at_s, now, action, count in story:
        decision = replayed.decide(seen([50.0] * 5, at_s=at_s, replicas=now))
        assert (decision.action, decision.plan.count, decision.plan.assignment) == (action, count, None)


@given(owned=st.lists(st.integers(0, 3), min_size=5, max_size=5), replicas=st.integers(1, 4), seed=st.integers(0, 9))
def test_what_is_placed_by_chance_is_placed_equally_and_mostly_stays(
    owned: list[int], replicas: int, seed: int
) -> None:
    before = seen([50.0] * 5, replicas=4, owned=owned)
    names = before.replica_names[:replicas]
    plan = equal_counts(before, Plan(names, None), np.random.default_rng(seed))
    assert plan.assignment is not None
    held = Counter(plan.assignment.values())
    counts = sorted((held[name] for name in names), reverse=True)
    most, larger = divmod(5, replicas)
    assert counts == [most + (place < larger) for place in range(replicas)]
    moved = sum(before.assignment[one] != owner for one, owner in plan.assignment.items())
    kept = sorted((Counter(before.assignment.values())[name] for name in names), reverse=True)
    assert moved == 5 - sum(min(has, room) for has, room in zip(kept, counts, strict=True))


def test_the_papers_own_packing_is_met_without_a_run() -> None:
    facts = {one.what: one for one in PAPERS[0] if isinstance(one, Fact)}
    assert facts["w1, optimal by bins of 85: r-m"].ours() == pytest.approx(32.72, rel=0.005)


def test_one_reading_sets_the_same_for_every_policy_of_a_paper() -> None:
    for paper in PAPERS:
        set_by: dict[str, set[frozenset[tuple[str, Any]]]] = {}
        for one in claims(paper):
            for reading in one.readings:
                own = dict(reading.changes).items() - dict(reading.apart).items() - {("split", "random")}
                set_by.setdefault(reading.name, set()).add(frozenset(own))
        rows_apart = {"heartbeat_s", "rebalance_time_s", "decision_interval_s"}
        for name, sets in set_by.items():
            assert len({frozenset(pair for pair in some if pair[0] not in rows_apart) for some in sets}) == 1, name


def test_every_statement_becomes_a_row_and_every_failure_is_named() -> None:
    found = reproduce(Told(), [*PAPERS[0], *PAPERS[1]], seeds=2)  # type: ignore[arg-type]
    assert len(found.rows) == sum(map(len, PAPERS))
    assert {one.why for one in found.missing} == {"it broke"}
    broken = next(row for row in found.rows if row.what == "t_r 2 s, algorithm-1")
    assert (broken.verdict, broken.why) == ("cannot be checked", "it broke")
    assert msgspec.json.decode(msgspec.json.encode(found), type=PaperResult) == found


def test_contrasts_share_their_readings() -> None:
    for paper in PAPERS:
        for one in paper:
            if isinstance(one, Contrast):
                better, worse = ({reading.name for reading in side.readings} for side in (one.better, one.worse))
                assert better & worse, f"nothing could ever decide {one.what}"
