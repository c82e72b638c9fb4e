"""How long rebalances took in an experiment, as data: for the learner's calibration and for models of handovers."""

from collections.abc import Iterable
from pathlib import Path
from typing import Final

import msgspec

from autoscaler.estimation import RebalanceTiming
from autoscaler.live.rebalances import timing_of
from contracts.progress import Round

FILE: Final = "rebalance-timings.json"


def timings(told: Iterable[Round]) -> list[RebalanceTiming]:
    """Return one timing for each round of the group, in the order of the rounds."""
    rounds: dict[tuple[int, int], list[Round]] = {}
    for one in sorted(told, key=lambda one: one.at_us):
        rounds.setdefault((one.epoch, one.generation), []).append(one)
    return [timing for reports in rounds.values() if (timing := timing_of(reports)) is not None]


def keep(told: Iterable[Round], into: Path) -> None:
    """Replace the file in `into`: one object for each line, so that a change of it can be read."""
    lines = [msgspec.json.encode(timing).decode() for timing in timings(told)]
    into.mkdir(parents=True, exist_ok=True)
    (into / FILE).write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
