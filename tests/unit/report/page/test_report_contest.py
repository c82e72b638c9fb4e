"""Which runs meet: the same load in one group, a contestant for each policy and setting, runs of a seed in pairs."""

from pathlib import Path
from typing import Any

import pytest
from small_report import small_run

from report.page.contest import Entrant, contests
from report.result import Result
from report.run_info import RunInfo


@pytest.fixture
def ran(tmp_path: Path) -> Any:
    def run(name: str, policy: str = "tail-aware", seed: int = 1, **told: Any) -> Entrant:
        folder = small_run(tmp_path / name, policy=policy, seed=seed, **told)
        return Entrant(folder, RunInfo.load(folder), Result.load(folder))

    return run


def test_policies_are_contestants_and_seeds_their_runs(ran: Any) -> None:
    entrants = [ran(f"{policy}-{seed}", policy, seed) for policy in ("linear", "tail-aware") for seed in (1, 2, 3)]
    (found,) = contests(entrants)
    assert {label: len(runs) for label, runs in found.contestants.items()} == {"linear": 3, "tail-aware": 3}
    assert found.reference == "linear", "the first that was named"
    assert [(one.folder.name, other.folder.name) for one, other in found.pairs("tail-aware")] == [
        (f"tail-aware-{seed}", f"linear-{seed}") for seed in (1, 2, 3)
    ]


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


def test_repeated_runs_of_a_seed_meet_in_turn_and_what_has_no_partner_meets_nobody(ran: Any) -> None:
    entrants = [ran("a1"), ran("a2"), ran("a3", seed=4), ran("b1", "linear"), ran("b2", "linear"), ran("b3", "linear")]
    (found,) = contests(entrants)
    assert [(one.folder.name, other.folder.name) for one, other in found.pairs("linear")] == [
        ("b1", "a1"),
        ("b2", "a2"),
    ]
