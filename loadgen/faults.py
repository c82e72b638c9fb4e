"""Faults of a load: bursts, a customer who suddenly brings most events, unreadable records, repeats, late comers."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from contracts.settings import Values
from loadgen.schedule import SECOND_US
from loadgen.shapes import IntArray

BURST, HOT_KEY, POISON, DUPLICATE, OUT_OF_ORDER = "burst", "hot-key", "poison", "duplicate", "out-of-order"
_FAULT: Final = re.compile(r"(burst|hot-key|poison|duplicate|out-of-order) (\d{1,6})-(\d{1,6}) (\d{1,4}(?:\.\d{1,6})?)")
EXAMPLES: Final = (
    "'burst 120-121 10' (ten times the events of second 120), 'hot-key 60-90 0.5' (one customer brings half), "
    "'poison 30-31 2' (two records that nobody can read), 'duplicate 0-60 0.01' (a hundredth is sent twice), "
    "'out-of-order 60-90 0.1' (a tenth comes up to a second late, after younger events)"
)
MAX_DELAY_US: Final = SECOND_US
"""By so much at most an event comes late that is out of order."""
UNREADABLE: Final = b'{"order_id": "poi'


@dataclass(frozen=True, slots=True)
class Fault:
    """What happens in the seconds from `begin_s` until before `end_s`."""

    kind: str
    begin_s: int
    end_s: int
    amount: float
    """Of a burst by what events are multiplied; of poison how many; of the others a share of the events."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Read one. Raises ValueError."""
        found = _FAULT.fullmatch(text)
        if found is None:
            raise ValueError(f"{text!r} is no fault; write {EXAMPLES}")
        fault = cls(found[1], int(found[2]), int(found[3]), float(found[4]))
        if fault.begin_s >= fault.end_s:
            raise ValueError(f"{text!r} ends before it begins")
        if fault.kind in (HOT_KEY, DUPLICATE, OUT_OF_ORDER) and fault.amount > 1:
            raise ValueError(f"{text!r}: a share is at most 1")
        return fault


def read_faults(texts: Sequence[str], kind: str) -> tuple[Fault, ...]:
    """Return those of one kind. Raises ValueError."""
    return tuple(one for one in map(Fault.of, texts) if one.kind == kind)


def apply_bursts(counts: IntArray, faults: Sequence[str]) -> IntArray:
    """Return events per second with the bursts in them; shape (seconds, …)."""
    for fault in read_faults(faults, BURST):
        counts = counts.copy()
        counts[fault.begin_s : fault.end_s] = (counts[fault.begin_s : fault.end_s] * fault.amount).astype(counts.dtype)
    return counts


def affected_events(faults: Sequence[str], kind: str, offset_us: IntArray, seed: int) -> npt.NDArray[np.bool_]:
    """Return which events are poison, sent twice, or out of order."""
    chance = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(6,)))
    found = np.zeros(len(offset_us), dtype=np.bool_)
    for fault in read_faults(faults, kind):
        inside = (offset_us >= fault.begin_s * SECOND_US) & (offset_us < fault.end_s * SECOND_US)
        if kind == POISON:
            inside[np.flatnonzero(inside)[round(fault.amount) :]] = False
        else:
            inside &= chance.random(len(offset_us)) < fault.amount
        found |= inside
    return found


def due_us(faults: Sequence[str], offset_us: IntArray, seed: int) -> IntArray:
    """Return when each event is to be sent: at its intended time, or later where it is to come out of order."""
    if not read_faults(faults, OUT_OF_ORDER):
        return offset_us
    later_us = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,))).integers(
        1, MAX_DELAY_US, len(offset_us)
    )
    return offset_us + later_us * affected_events(faults, OUT_OF_ORDER, offset_us, seed)


def faults_problem(values: Values) -> str | None:
    """Say what is wrong with the faults of a load: the rule of whoever has the setting."""
    try:
        kinds = [Fault.of(text) for text in values["faults"]]
    except ValueError as error:
        return str(error)
    if values["topology"] == "payment-only" and (dropped := [one for one in kinds if one.kind in (POISON, DUPLICATE)]):
        return f"{dropped[0].kind} needs the pipeline, where Order drops it"
    return None if values["trace"] else fault_after_end(values["faults"], values["duration_s"])


def fault_after_end(faults: Sequence[str], duration_s: int) -> str | None:
    """Say which of the faults begins when all is sent."""
    late = [one for one in map(Fault.of, faults) if one.begin_s >= duration_s]
    return f"{late[0].kind} {late[0].begin_s}-{late[0].end_s} begins after the load, {duration_s} s" if late else None


def live_only_faults(faults: Sequence[str]) -> str | None:
    """Say which of the faults change nothing in a simulation: what Order drops, and when events arrive."""
    kinds = {one.kind for one in map(Fault.of, faults)} & {POISON, DUPLICATE, OUT_OF_ORDER}
    return (
        f"{', '.join(sorted(kinds))}: live only; simulated, these events come in order, once, readable"
        if kinds
        else None
    )
