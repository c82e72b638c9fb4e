"""Faults of a load: seconds that bring many times their events, and a customer who suddenly brings most of them."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

from contracts.settings import Values
from loadgen.shapes import IntArray

BURST, HOT_KEY = "burst", "hot-key"
_FAULT: Final = re.compile(r"(burst|hot-key) (\d{1,6})-(\d{1,6}) (\d{1,4}(?:\.\d{1,6})?)")
EXAMPLES: Final = (
    "'burst 120-121 10' (ten times the events of second 120), 'hot-key 60-90 0.5' (one customer brings half)"
)


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens in the seconds from `begin_s` until before `end_s`."""

    kind: str
    begin_s: int
    end_s: int
    amount: float
    """Of a burst by what events are multiplied; of a hot key its share of them."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read one. Raises ValueError."""
        found = _FAULT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no fault; write {EXAMPLES}")
        fault = cls(found[1], int(found[2]), int(found[3]), float(found[4]))
        if fault.begin_s >= fault.end_s:
            raise ValueError(f"{text!r} ends before it begins")
        if fault.kind == HOT_KEY and fault.amount > 1:
            raise ValueError(f"{text!r}: the share of a key is at most 1")
        return fault


def read_faults(texts: Sequence[str], kind: str) -> tuple[Fault, ...]:
    """Return those of one kind. Raises ValueError."""
    return tuple(one for one in map(Fault.of, texts) if one.kind == kind)


def multiplied(counts: IntArray, faults: Sequence[str]) -> IntArray:
    """Return events per second with the bursts in them; shape (seconds, …)."""
    for fault in read_faults(faults, BURST):
        counts = counts.copy()
        counts[fault.begin_s : fault.end_s] = (counts[fault.begin_s : fault.end_s] * fault.amount).astype(counts.dtype)
    return counts


def wrong_faults(values: Values) -> str | None:
    """Say what is wrong with the faults of a load: the rule of whoever has the setting."""
    try:
        kinds = [Fault.of(text) for text in values["faults"]]
    except ValueError as wrong:
        return str(wrong)
    late = [one for one in kinds if not values["trace"] and one.begin_s >= values["duration_s"]]
    return (
        f"{late[0].kind} {late[0].begin_s}-{late[0].end_s} begins after the load, {values['duration_s']} s"
        if late
        else None
    )
