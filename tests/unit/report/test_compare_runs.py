"""What is said of runs against each other: over seeds, and when nothing may be said."""

from pathlib import Path
from typing import Any

import pytest
from small_report import small_run

from report.comparison import Entrant, compare, entrant, labelled, markdown


@pytest.fixture
def ran(tmp_path: Path) -> Any:
    def run(name: str, policy: str = "tail-aware", seed: int = 1, **told: Any) -> Path:
        return small_run(tmp_path / name, policy=policy, seed=seed, **told)

    return run


def test_several_pairs_are_judged_over_seeds(ran: Any) -> None:
    runs = [ran(f"a{k}", seed=k, in_sla=0.9 + k / 1000) for k in range(1, 9)]
    runs += [ran(f"b{k}", "linear", k, in_sla=0.89 + k / 1000 + k % 2 / 500) for k in range(1, 9)]
    reference, other = compare(runs).contestants
    assert (reference.pairs, other.pairs) == (0, 8)
    assert other.differences["in_sla"].mean == pytest.approx(-0.009)
    assert other.differences["in_sla"].distinguishable, "each seed varies more than the two differ, pairs do not"
    assert other.differences["replica_minutes"].mean == other.differences["replica_minutes"].low == 0


def test_a_single_pair_shows_its_difference_and_claims_nothing(ran: Any) -> None:
    found = compare([ran("a", in_sla=0.9), ran("b", "linear", in_sla=0.7, replica_minutes=0.05)])
    _, other = found.contestants
    assert other.differences["in_sla"].mean == pytest.approx(-0.2)
    assert not other.differences["in_sla"].distinguishable
    assert "| linear | 1 | 70 % | [−20.000 pp] |" in markdown(found)


def test_what_does_not_stand_is_said(ran: Any) -> None:
    broken = {"valid": False, "problems": ("the generator was late",)}
    assert compare([ran("c"), ran("d", "linear", **broken), ran("e", "static", 7)]).problems == (
        "d: not a valid measurement, because the generator was late",
        "static and tail-aware have no seed in common",
    )


def test_a_setting_that_differs_makes_another_contestant_and_says_so(ran: Any) -> None:
    eager = {"payment.rebalance_protocol": "eager"}
    assert list(labelled(read(ran("a"), ran("b", settings=eager), ran("c", "linear", settings=eager)))) == [
        "tail-aware, payment.rebalance_protocol=incremental",
        "tail-aware, payment.rebalance_protocol=eager",
        "linear, payment.rebalance_protocol=eager",
    ]


def test_live_and_simulated_meet_by_name_and_what_a_live_run_is_not_told_makes_no_difference(ran: Any) -> None:
    started = {"simulation.startup_s": 30.0}
    found = labelled(read(ran("live", world="live", settings=started), ran("simulated")))
    assert list(found) == ["tail-aware (live)", "tail-aware (simulated)"]


def read(*folders: Path) -> list[Entrant]:
    return [entrant(folder) for folder in folders]
