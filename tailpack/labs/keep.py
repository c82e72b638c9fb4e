"""Keeps results as rows under bench/reference: one for each question asked, the newest answer."""

from pathlib import Path
from typing import Final

import msgspec

from bench import figures
from bench.figures import BounceRow, FailoverRow, GrowthRow, HandoverRow, Origin, ScaleRow
from bench.handover.outcome import BounceResult, FailoverResult, GrowthResult, HandoverResult, Outcome, ScaleResult

ROWS: Final[dict[type[Outcome], type[msgspec.Struct]]] = {
    HandoverResult: HandoverRow,
    FailoverResult: FailoverRow,
    ScaleResult: ScaleRow,
    GrowthResult: GrowthRow,
    BounceResult: BounceRow,
}
QUESTION: Final = ("steps", "replicas", "partitions", "rate", "quick", "runtime", "heartbeat_s")
"""What tells one question from another; a field that a result does not have tells nothing."""


def keep(result: Outcome, origin: Origin, into: Path) -> None:
    """Keep it in the place of the answer before."""
    kind = ROWS[type(result)]
    row = kind(**msgspec.structs.asdict(result), origin=origin)
    others = [one for one in figures.load(kind, into) if _question(one) != _question(row)]
    figures.save(sorted([*others, row], key=_question), kind, into)


def _question(row: msgspec.Struct) -> tuple[str | float, ...]:
    return tuple(getattr(row, name, "") for name in QUESTION)
