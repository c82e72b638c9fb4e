"""From the report of a run to an autoscaler that begins with what the run has shown."""

from pathlib import Path

import pytest
from small_report import small_run
from typer.testing import CliRunner

from autoscaler.live.rebalances import Rebalances
from autoscaler.live.state_dir import FILE, LearnedTimes
from report.rebalance_times import RebalanceRound
from report.rebalance_times import Rebalances as RoundsOfARun
from tailpack.cli.main import app
from tailpack.errors import TailpackError


def round_of(number: int, pause_s: float | None) -> RebalanceRound:
    ready_s = None if pause_s is None else pause_s + 0.05
    return RebalanceRound(at_s=float(number), kind="plan", members=3, moved=1, pause_s=pause_s, plan_to_ready_s=ready_s)


def judged_run(folder: Path, rounds: int, delivery: str = "incremental", pause_s: float | None = 0.2) -> Path:
    found = RoundsOfARun.of(delivery, [round_of(number, pause_s) for number in range(rounds)])
    return small_run(folder, rebalances=found)


def ordered(*words: object) -> str:
    result = CliRunner().invoke(app, ["report", "rebalance-times", *map(str, words)])
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def controller(state_dir: Path, group: str) -> Rebalances:
    """What a live autoscaler makes of its state folder when it starts."""
    known = LearnedTimes(state_dir, group=group, say=pytest.fail).read()
    return Rebalances(0.05, learn=True, latency_target_s=0.5, warn=pytest.fail, known=known, clock=lambda: 0.0)


def test_an_autoscaler_begins_with_what_two_runs_have_shown(tmp_path: Path) -> None:
    runs = [judged_run(tmp_path / name, 20) for name in ("first", "second")]
    ordered(*runs, "--to", tmp_path / "state", "--namespace", "shop")
    fresh = controller(tmp_path / "state", "shop.payment, incremental")
    assert fresh.learned(3, 1).samples == 40
    assert fresh.rebalance_time_s(3, 1) == pytest.approx(0.2, rel=0.05), "the setting would have been 0.05"


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        ([("incremental", 0.2), ("eager", 0.2)], "several deliveries"),
        ([("eager", None)], "nothing to learn"),
    ],
)
def test_what_teaches_nothing_is_one_line(tmp_path: Path, runs: list[tuple[str, float | None]], reason: str) -> None:
    folders = [judged_run(tmp_path / f"run-{k}", 30, *run) for k, run in enumerate(runs)]
    with pytest.raises(TailpackError, match=reason):
        ordered(*folders, "--to", tmp_path / "state")


def test_what_an_autoscaler_learned_is_not_forgotten_by_mistake(tmp_path: Path) -> None:
    run, state = judged_run(tmp_path / "run", 30), tmp_path / "state"
    state.mkdir()
    (state / FILE).write_text("learned")
    with pytest.raises(TailpackError, match="--replace"):
        ordered(run, "--to", state)
    assert (state / FILE).read_text() == "learned"
    ordered(run, "--to", state, "--replace")
    assert controller(state, "payment, incremental").learned(3, 1).samples == 30
