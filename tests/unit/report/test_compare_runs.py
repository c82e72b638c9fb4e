"""What is said of runs against each other: over seeds, over seconds, and when nothing may be said."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_report import small_run

from report.compare_runs import Contest, Counted, Entrant, compared, contests, lone_pairs, to_draw
from report.comparison import RunComparison, SameEvents
from report.result import Result
from report.run_info import RunInfo
from report.statistics import Cells


@pytest.fixture
def ran(tmp_path: Path) -> Any:
    def run(name: str, policy: str = "tail-aware", seed: int = 1, **told: Any) -> Entrant:
        folder = small_run(tmp_path / name, policy=policy, seed=seed, **told)
        return Entrant(folder, RunInfo.load(folder), Result.load(folder))

    return run


def seconds(in_sla: int, replicas: float) -> Cells:
    """200 seconds of ten events each."""
    cells = 200
    within = np.tile([in_sla, 10 - in_sla], (cells, 1))
    return Cells(np.full(cells, 10), np.full(cells, in_sla), np.full(cells, replicas), np.array([0.3, 0.6]), within)


def counted(contest: Contest, in_sla: dict[str, int], *, paired: int = 100) -> Counted:
    same = SameEvents(
        paired=paired, of=100, late_in_both=1, late_only_here=1, late_only_in_reference=0, mean_difference_s=0.01
    )
    return Counted(
        cells={one.folder: seconds(in_sla.get(one.info.policy, 9), 1.0) for one in to_draw(contest)},
        same={(one.folder, other.folder): same for one, other in lone_pairs(contest)},
    )


def one_pair(ran: Any, **told: Any) -> RunComparison:
    found = contests([ran("a", in_sla=0.9), ran("b", "linear", in_sla=0.7, replica_minutes=0.05, **told)])
    return compared(found, counted(found[0], {"linear": 7}), command="tailpack report compare a b")


def test_a_single_pair_is_judged_by_its_seconds(ran: Any) -> None:
    (scenario,) = one_pair(ran).scenarios
    (found,) = scenario.differences
    assert (found.over, found.pairs) == ("seconds", 1)
    assert found.in_sla.mean == pytest.approx(-0.2)
    assert found.in_sla.distinguishable
    assert found.p99_s is not None
    assert not found.p99_s.distinguishable, "both have the same p99"
    assert found.same_events is not None
    assert [one.on_front for one in scenario.contestants] == [True, True], "fewer in time, but cheaper"


def test_several_pairs_are_judged_over_seeds_and_no_seconds_are_needed(ran: Any) -> None:
    runs = [ran(f"a{k}", seed=k, in_sla=0.9 + k / 1000) for k in range(1, 9)]
    runs += [ran(f"b{k}", "linear", k, in_sla=0.89 + k / 1000 + k % 2 / 500) for k in range(1, 9)]
    (contest,) = contests(runs)
    assert to_draw(contest) == lone_pairs(contest) == []
    (found,) = compared([contest], Counted(), command="").scenarios[0].differences
    assert (found.over, found.pairs, found.same_events) == ("seeds", 8, None)
    assert found.in_sla.mean == pytest.approx(-0.009)
    assert found.in_sla.distinguishable, "each seed alone varies more than the two differ, pairs do not"
    assert found.replica_minutes.mean == found.replica_minutes.low == 0


def test_what_does_not_stand_is_said(ran: Any) -> None:
    runs = [ran("a"), ran("b", "linear", valid=False, problems=("the generator was late",)), ran("c", "static", 7)]
    found = contests([*runs, ran("d", scenario="taxi")])
    problems = compared(
        found,
        Counted(
            cells={one.folder: seconds(9, 1.0) for each in found for one in to_draw(each)},
            same=counted(found[0], {}, paired=9).same,
        ),
        command="",
    ).problems
    assert problems == (
        "b: not a valid measurement, because the generator was late",
        "w1: static and tail-aware have no seed in common",
        "b and a did not meet the same events: 9 % of them have place and intended time in common",
        "taxi: only tail-aware met this load: nothing to compare",
    )


def test_it_is_saved_whole_and_read_again(ran: Any, tmp_path: Path) -> None:
    found = one_pair(ran)
    found.save(tmp_path)
    assert RunComparison.load(tmp_path) == found
    assert [path.name for path in tmp_path.glob("comparison.json*")] == ["comparison.json"]


def test_a_setting_that_differs_makes_another_contestant_and_says_so(ran: Any) -> None:
    eager = {"payment.delivery": "eager"}
    (found,) = contests([ran("a"), ran("b", settings=eager), ran("c", "linear", settings=eager)])
    assert list(found.contestants) == [
        "tail-aware, payment.delivery=incremental",
        "tail-aware, payment.delivery=eager",
        "linear, payment.delivery=eager",
    ]


def test_other_loads_and_other_promises_never_meet(ran: Any) -> None:
    longer, wider = {"duration_s": 9}, {"payment.partitions": 3}
    patient, other = {"target.latency_target_s": 1.0}, ran("e", scenario="taxi")
    found = contests([ran("a"), ran("b", settings=longer), ran("c", settings=wider), ran("d", settings=patient), other])
    assert [(one.scenario, len(one.contestants)) for one in found] == [("w1", 1)] * 4 + [("taxi", 1)]
    assert "duration_s=9" in found[1].settings
    assert found[4].settings == ()


def test_live_and_simulated_meet_by_name_and_what_a_live_run_is_not_told_makes_no_difference(ran: Any) -> None:
    started = {"simulation.startup_s": 30.0}
    (found,) = contests([ran("live", world="live", settings=started), ran("simulated")])
    assert list(found.contestants) == ["tail-aware (live)", "tail-aware (simulated)"]
