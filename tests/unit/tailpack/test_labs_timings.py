"""Rounds as replicas tell of them become one timing for each round of the group."""

import json
from pathlib import Path

from contracts.progress import Round, RoundKind
from tailpack.labs.timings import FILE, keep


def told(generation: int, *, taken: int, pause_us: int, at_us: int) -> Round:
    return Round(
        generation=generation, epoch=1, kind=RoundKind.PLAN, members=3, moved=2, taken=taken, released=0,
        pause_us=pause_us, plan_us=2 * pause_us, at_us=at_us,
    )  # fmt: skip


def test_a_round_that_two_replicas_tell_of_is_one_timing_with_the_longest_lengths(tmp_path: Path) -> None:
    second = told(5, taken=1, pause_us=9_000, at_us=40)
    keep([second, told(4, taken=1, pause_us=3_000, at_us=10), told(4, taken=1, pause_us=7_000, at_us=20)], tmp_path)

    kept = json.loads((tmp_path / FILE).read_text())

    assert [(one["pause_s"], one["plan_to_ready_s"]) for one in kept] == [(0.007, 0.014), (0.009, 0.018)]


def test_a_round_in_which_nobody_took_anything_is_none(tmp_path: Path) -> None:
    keep([told(4, taken=0, pause_us=0, at_us=10)], tmp_path)

    assert json.loads((tmp_path / FILE).read_text()) == []
