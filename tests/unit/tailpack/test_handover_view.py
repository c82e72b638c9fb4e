"""The live view shows that partitions move, beside the latency."""

from io import StringIO

import pytest
from rich.console import Console

from contracts.events import Timeline
from contracts.journal import PlanWritten
from tailpack.handovers import SECONDS
from tailpack.view import Moment, line, render
from tailpack.watch import LiveState


@pytest.fixture
def state() -> LiveState:
    """A minute and more of quick events, with two handovers in it."""
    state = LiveState(latency_target_s=0.5)
    for second in range(1000, 1000 + SECONDS + 10):
        done_us = second * 1_000_000
        state.finish(str(second), Timeline(intended_us=done_us - 60_000, placed_us=0, done_us=done_us), now=second)
    for epoch, at_s, moved in ((1, 1030, 3), (2, 1050, 12)):
        state.note(
            PlanWritten(
                at_us=at_s * 1_000_000, epoch=epoch, action="up", reason="p0 is hot", replicas=(), assignment=None,
                moved=moved,
            )
        )  # fmt: skip
    state.handovers.pauses_s = {1: 0.021}
    return state


@pytest.mark.parametrize("width", [80, 140])
def test_moves_stand_beneath_the_latency_of_their_second(state: LiveState, width: int) -> None:
    console = Console(file=StringIO(), width=width, force_terminal=False)
    console.print(render(state, Moment("tailpack demo", "replaying", 70.0, 120.0, 900.0)))
    rows = console.file.getvalue().splitlines()  # type: ignore[attr-defined]
    latency = next(row for row in rows if " worst " in row and "▁" in row)
    moves = next(row for row in rows if " moved " in row and "·" in row)
    assert latency.count("▁") == SECONDS, "60 ms of 500"
    assert moves.index("3") - latency.index("▁") == 1030 - 1010
    assert moves.index("9") - latency.index("▁") == 1050 - 1010, "nine and more"
    assert any("15 partitions moved by 2 plans, nobody served one for at most 21 ms" in row for row in rows)
    assert any("3 moved, 21 ms" in row for row in rows)
    assert max(len(row) for row in rows) <= width


def test_logs_say_it_in_a_few_words(state: LiveState) -> None:
    assert "moved 15, pause ≤ 21 ms" in line(state, 70.0)


def test_a_late_second_is_red(state: LiveState) -> None:
    done_us = 1_070_000_000
    state.finish("late", Timeline(intended_us=done_us - 700_000, placed_us=0, done_us=done_us), now=1070)
    console = Console(file=StringIO(), width=100, force_terminal=True, color_system="standard")
    console.print(render(state, Moment("tailpack demo", "replaying", 70.0, 120.0, 900.0)))
    assert "\x1b[1;31m█" in console.file.getvalue()  # type: ignore[attr-defined]
