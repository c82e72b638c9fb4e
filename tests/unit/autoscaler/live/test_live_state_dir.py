"""What one controller has learned of rebalance times, the next one knows."""

from pathlib import Path

import msgspec
import pytest
from live_fakes import FakeClock

from autoscaler.live.rebalances import MERGE_S, Rebalances
from autoscaler.live.state_dir import FILE, VERSION, LearnedTimes
from contracts.progress import Round, RoundKind

GROUP = "payment, incremental"


class Controller:
    """One controller after the other in the same folder, as far as rebalance times go."""

    def __init__(self, folder: Path, group: str = GROUP) -> None:
        self.clock = FakeClock()
        self.said: list[str] = []
        self.learned = LearnedTimes(folder, group=group, say=self.said.append, clock=self.clock)
        self.rebalances = Rebalances(
            0.05,
            learn=True,
            latency_target_s=0.5,
            warn=self.said.append,
            known=self.learned.read(),
            clock=self.clock,
        )

    def sees(self, rounds: int, pause_s: float) -> None:
        first = self.rebalances.rounds
        for number in range(first, first + rounds):
            self.rebalances.observe([round_of(number, pause_s)])
        self.clock.advance(MERGE_S)
        self.rebalances.observe([])


def round_of(number: int, pause_s: float) -> Round:
    return Round(
        generation=number, epoch=number, kind=RoundKind.PLAN, members=3, moved=1, taken=1, released=0,
        pause_us=round(pause_s * 1e6), plan_us=0, at_us=0,
    )  # fmt: skip


def test_the_next_controller_plans_for_what_the_last_one_has_seen(tmp_path: Path) -> None:
    first = Controller(tmp_path)
    assert first.rebalances.rebalance_time_s(3, 1) == 0.05
    first.sees(100, 0.2)
    first.learned.save(first.rebalances.rounds, first.rebalances.remembered, at_once=True)

    second = Controller(tmp_path)
    assert second.rebalances.rebalance_time_s(3, 1) == pytest.approx(first.rebalances.rebalance_time_s(3, 1))
    assert second.rebalances.learned(3, 1).samples == 100
    assert second.rebalances.rounds == 0, "its own"
    assert (first.said, second.said) == ([], [])


def contents(**changes: object) -> bytes:
    timing = {"kind": "plan", "members": 3, "moved": 1, "pause_s": 0.2, "plan_to_ready_s": 0.0}
    return msgspec.json.encode({"v": VERSION, "group": GROUP, "timings": [timing]} | changes)


@pytest.mark.parametrize(
    ("damaged", "reason"),
    [
        (b"", "truncated"),
        (contents(v=VERSION + 1, timings="of another shape"), "version 2 is unknown"),
        (contents(timings=[{"kind": "plan", "members": 0, "moved": 1, "pause_s": 1, "plan_to_ready_s": 0}]), "members"),
        (contents(group="payment, eager"), "it is of payment, eager, this is payment, incremental"),
    ],
)
def test_a_file_that_cannot_be_used_is_one_sentence_and_a_fresh_start_that_replaces_it(
    tmp_path: Path, damaged: bytes, reason: str
) -> None:
    (tmp_path / FILE).write_bytes(damaged)
    controller = Controller(tmp_path)
    (said,) = controller.said
    assert str(tmp_path / FILE) in said
    assert reason in said
    assert "\n" not in said
    assert controller.rebalances.rebalance_time_s(3, 1) == 0.05

    controller.sees(100, 0.2)
    controller.learned.save(controller.rebalances.rounds, controller.rebalances.remembered, at_once=True)
    assert Controller(tmp_path).rebalances.learned(3, 1).samples == 100
