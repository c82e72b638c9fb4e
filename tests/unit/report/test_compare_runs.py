"""Runs are compared over seeds, and differences that are not significant are marked."""

from pathlib import Path
from typing import Any

import pytest
from small_report import small_run

from report.comparison import ComparedRun, compare, group_by_label, markdown, read_run


@pytest.fixture
def ran(tmp_path: Path) -> Any:
    def run(name: str, policy: str = "tail-aware", seed: int = 1, **values: Any) -> Path:
        return small_run(tmp_path / name, policy=policy, seed=seed, **values)

    return run


def test_pairs_are_compared_over_seeds(ran: Any) -> None:
    runs = [ran(f"a{k}", seed=k, in_sla=0.9 + k / 1000) for k in range(1, 9)]
    runs += [ran(f"b{k}", "linear", k, in_sla=0.89 + k / 1000 + k % 2 / 500) for k in range(1, 9)]
    reference, other = compare(runs).contestants
    assert (reference.pairs, other.pairs) == (0, 8)
    assert other.differences["in_sla"].mean == pytest.approx(-0.009)
    assert other.differences["in_sla"].distinguishable, "seeds vary more than the policies differ, pairs do not"
    assert other.differences["replica_minutes"].mean == other.differences["replica_minutes"].low == 0


def test_the_difference_of_a_single_pair_is_not_distinguishable(ran: Any) -> None:
    found = compare([ran("a", in_sla=0.9), ran("b", "linear", in_sla=0.7, replica_minutes=0.05)])
    _, other = found.contestants
    assert other.differences["in_sla"].mean == pytest.approx(-0.2)
    assert not other.differences["in_sla"].distinguishable
    assert "| linear | 1 | 70 % | [−20.000 pp] |" in markdown(found)


def test_invalid_runs_and_runs_without_a_pair_are_listed(ran: Any) -> None:
    broken = {"valid": False, "problems": ("the generator was late",)}
    assert compare([ran("c"), ran("d", "linear", **broken), ran("e", "static", 7)]).problems == (
        "d: not a valid measurement, because the generator was late",
        "static and tail-aware have no seed in common",
    )


def test_a_setting_that_differs_makes_another_labelled_contestant(ran: Any) -> None:
    eager = {"payment.rebalance_protocol": "eager"}
    assert list(group_by_label(read(ran("a"), ran("b", settings=eager), ran("c", "linear", settings=eager)))) == [
        "tail-aware, payment.rebalance_protocol=incremental",
        "tail-aware, payment.rebalance_protocol=eager",
        "linear, payment.rebalance_protocol=eager",
    ]


def test_live_runs_pair_with_simulated_runs_and_simulation_settings_do_not_count(ran: Any) -> None:
    started = {"simulation.startup_s": 30.0}
    found = group_by_label(read(ran("live", world="live", settings=started), ran("simulated")))
    assert list(found) == ["tail-aware (live)", "tail-aware (simulated)"]


def read(*folders: Path) -> list[ComparedRun]:
    return [read_run(folder) for folder in folders]
