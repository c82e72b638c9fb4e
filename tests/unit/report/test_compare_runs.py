"""What is said of runs against each other: over seeds, over seconds, and when nothing may be said."""

from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from small_report import small_run
from stored_runs import write_parquet

from contracts.journal import ReplicaChange, ReplicaChanged
from contracts.validation import InvalidSettingsError
from report.compare_runs import Entrant, compare, entrant, labelled
from report.comparison import RunComparison
from report.run_info import EVENTS, JOURNAL

EVERY = 40
"""Events of each of the four seconds."""


@pytest.fixture
def ran(tmp_path: Path) -> Any:
    def run(name: str, policy: str = "tail-aware", seed: int = 1, **told: Any) -> Path:
        return small_run(tmp_path / name, policy=policy, seed=seed, **told)

    return run


def with_events(folder: Path, *, late: int, events: int = EVERY) -> Path:
    """Give a run the events of four seconds, `late` of each second late or never done, and one refused."""
    rows = [
        {
            "intended_us": second * 1_000_000 + 20_000 * k,
            "done_us": None
            if k == 0 and late
            else second * 1_000_000 + 20_000 * k + (600_000 if k < late else 300_000),
            "dead_letters": 0,
        }
        for second in range(4)
        for k in range(events)
    ]
    write_parquet(folder / EVENTS, [*rows, {"intended_us": 5, "done_us": None, "dead_letters": 1}])
    ready = ReplicaChanged(at_us=-1, replica="payment-0", change=ReplicaChange.REQUESTED)
    write_parquet(folder / JOURNAL, [{"position": 0, "entry": msgspec.json.encode(ready).decode()}])
    return folder


def one_pair(ran: Any, *, events: int = EVERY) -> RunComparison:
    here = with_events(ran("a", in_sla=0.9), late=4)
    there = with_events(ran("b", "linear", in_sla=0.7, replica_minutes=0.05), late=12, events=events)
    return compare([here, there], command="tailpack report compare a b")


def test_a_single_pair_is_judged_by_its_seconds(ran: Any) -> None:
    found = one_pair(ran)
    reference, other = found.scenarios[0].contestants
    assert (reference.pairs, reference.in_sla_difference, other.pairs) == (0, None, 1)
    assert other.in_sla_difference.mean == pytest.approx(-0.2)
    assert other.in_sla_difference.distinguishable
    assert other.p99_difference_s is not None
    assert not other.p99_difference_s.distinguishable, "both have the same p99"
    assert [one.on_front for one in (reference, other)] == [True, True], "fewer in time, but cheaper"
    assert found.problems == ()
    assert "linear against tail-aware: −20.000 pp in time" in found.verdict


def test_what_a_run_is_drawn_from_are_its_events_and_what_it_paid(ran: Any) -> None:
    cells = entrant(with_events(ran("a"), late=4)).cells
    assert cells.events.tolist() == [EVERY] * 4, "never done counts, refused does not"
    assert cells.in_sla.tolist() == [EVERY - 4] * 4
    assert cells.within.sum() == 4 * (EVERY - 1)
    assert cells.paid_s.tolist() == [1.0] * 4


def test_several_pairs_are_judged_over_seeds_and_no_events_are_needed(ran: Any) -> None:
    runs = [ran(f"a{k}", seed=k, in_sla=0.9 + k / 1000) for k in range(1, 9)]
    runs += [ran(f"b{k}", "linear", k, in_sla=0.89 + k / 1000 + k % 2 / 500) for k in range(1, 9)]
    found = compare(runs, command="").scenarios[0].contestants[1]
    assert found.pairs == 8
    assert found.in_sla_difference.mean == pytest.approx(-0.009)
    assert found.in_sla_difference.distinguishable, "each seed alone varies more than the two differ, pairs do not"
    assert found.replica_minutes_difference.mean == found.replica_minutes_difference.low == 0


def test_what_does_not_stand_is_said(ran: Any) -> None:
    assert one_pair(ran, events=EVERY - 10).problems == (
        "b and a did not meet the same events: 75 % of them were intended in the same seconds",
    )
    broken = {"valid": False, "problems": ("the generator was late",)}
    runs = [ran("c"), ran("d", "linear", **broken), ran("e", "static", 7)]
    assert compare([with_events(one, late=4) for one in runs], command="").problems == (
        "d: not a valid measurement, because the generator was late",
        "static and tail-aware have no seed in common",
    )


def test_what_cannot_be_compared_is_one_line(ran: Any, tmp_path: Path) -> None:
    a = with_events(ran("a"), late=4)
    longer = ran("b", "linear", settings={"duration_s": 9})
    with pytest.raises(InvalidSettingsError, match=r"b: it met another load than the first \(duration_s is 9, not 4\)"):
        compare([a, longer], command="")
    with pytest.raises(InvalidSettingsError, match="name is taxi, not w1"):
        compare([a, ran("c", "linear", settings={"name": "taxi"})], command="")
    with pytest.raises(InvalidSettingsError, match="differ in no policy and no setting"):
        compare([a, ran("d", seed=2)], command="")
    with pytest.raises(InvalidSettingsError, match=r"it holds no events\.parquet"):
        compare([a, ran("e", "linear")], command="")
    with pytest.raises(InvalidSettingsError, match="no cost to compare"):
        compare([a, ran("f", "linear", replica_minutes=None)], command="")
    torn = ran("g", "linear")
    (torn / EVENTS).write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InvalidSettingsError, match="cannot be read"):
        compare([a, torn], command="")


def test_equal_runs_give_equal_bytes(ran: Any, tmp_path: Path) -> None:
    one_pair(ran).save(tmp_path)
    first = (tmp_path / "comparison.json").read_bytes()
    compare([tmp_path / "a", tmp_path / "b"], command="tailpack report compare a b").save(tmp_path)
    assert (tmp_path / "comparison.json").read_bytes() == first
    assert np.isfinite(
        [one["in_sla"]["mean"] for one in msgspec.json.decode(first)["scenarios"][0]["contestants"]]
    ).all()


def test_a_setting_that_differs_makes_another_contestant_and_says_so(ran: Any) -> None:
    eager = {"payment.delivery": "eager"}
    assert list(labelled(read(ran("a"), ran("b", settings=eager), ran("c", "linear", settings=eager)))) == [
        "tail-aware, payment.delivery=incremental",
        "tail-aware, payment.delivery=eager",
        "linear, payment.delivery=eager",
    ]


def test_live_and_simulated_meet_by_name_and_what_a_live_run_is_not_told_makes_no_difference(ran: Any) -> None:
    started = {"simulation.startup_s": 30.0}
    found = labelled(read(ran("live", world="live", settings=started), ran("simulated")))
    assert list(found) == ["tail-aware (live)", "tail-aware (simulated)"]


def read(*folders: Path) -> list[Entrant]:
    return [entrant(folder) for folder in folders]
