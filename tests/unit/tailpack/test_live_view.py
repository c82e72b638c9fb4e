"""The records of the topics become the state of the live view, and the view draws it."""

from io import StringIO

import pytest
from rich.console import Console

from contracts.events import Timeline
from contracts.journal import PartitionState, PlanWritten, ReplicaChange, ReplicaChanged, TickRecord
from tailpack.live_view import RunStatus, line, render
from tailpack.watch import RunState

REASON = "p0 is hot: " + " ".join(f"{number} events wait" for number in range(20))


def timeline(latency_s: float) -> Timeline:
    return Timeline(intended_us=1_000_000, placed_us=1_000_100, done_us=1_000_000 + round(latency_s * 1e6))


def tick(**changes: object) -> TickRecord:
    seen = (
        PartitionState(partition=0, arrival_rate=30.0, lag=40, owner="payment-0"),
        PartitionState(partition=1, arrival_rate=12.0, lag=0, owner="payment-1"),
    )
    fields = {
        "at_us": 0, "tick": 1, "policy": "algorithm-2", "action": "no-change", "reason": "nothing is at risk",
        "service_rate": 50.0, "partitions": seen, "ready_replicas": 2, "requested_replicas": 2,
        "planned_replicas": 2, "epoch": 3,
    }  # fmt: skip
    return TickRecord(**(fields | changes))  # type: ignore[arg-type]


def drawn(state: RunState, moment: RunStatus, width: int) -> list[str]:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(render(state, moment))
    return console.file.getvalue().splitlines()  # type: ignore[attr-defined]


@pytest.fixture
def state() -> RunState:
    """Two replicas, one plan, three finished events of which one is late."""
    state = RunState(latency_target_s=0.5)
    for order, latency_s in (("a", 0.02), ("b", 0.03), ("c", 0.7)):
        state.record_finished(order, timeline(latency_s))
    state.record_entry(tick())
    state.record_entry(tick(action="up", reason=REASON, at_us=2_000_000))
    state.record_entry(ReplicaChanged(at_us=0, replica="payment-1", change=ReplicaChange.READY))
    plan = PlanWritten(at_us=0, epoch=3, action="up", reason=REASON, replicas=("payment-0", "payment-1"),
                       assignment={0: "payment-0", 1: "payment-1"}, moved=1)  # fmt: skip
    state.record_entry(plan)
    return state


def test_a_replica_that_died_is_an_incident_and_gone(state: RunState) -> None:
    state.record_entry(ReplicaChanged(at_us=0, replica="payment-1", change=ReplicaChange.DIED, detail="signal 9"))
    assert "payment-1" not in state.replicas
    assert list(state.incidents) == ["payment-1 died: signal 9"]


@pytest.mark.parametrize("width", [80, 140])
def test_the_view_shows_owners_latency_and_reasons(state: RunState, width: int) -> None:
    rows = drawn(state, RunStatus("tailpack demo", "replaying", 12.0, 120.0, 900.0), width)
    for expected in ("payment-0", "p0 30 !", "p1 12 ", "700", "12/120 s", "66.666 % in time"):
        assert expected in "\n".join(rows)
    assert max(map(len, rows)) <= width
    words = " ".join("\n".join(rows).replace("│", " ").split())
    assert all(part in words for part in ("2 s up 2 → 2", "p0 is hot: 0 events wait", "19 events", "no change ×1"))


def test_a_problem_of_the_autoscaler_is_shown_in_both_views_until_it_ends(state: RunState) -> None:
    moment = RunStatus("demo", "replaying", 12.0, 60.0, 100.0)
    state.record_entry(tick(problems=("policy: tail-aware failed: OSError",)))
    assert line(state, moment).endswith("PROBLEM: policy: tail-aware failed: OSError")
    assert any("policy: tail-aware failed: OSError" in one for one in drawn(state, moment, 120))
    state.record_entry(tick())
    assert "PROBLEM" not in line(state, moment)
