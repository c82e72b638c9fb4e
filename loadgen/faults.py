"""Faults of a load: bursts, a customer with a sudden share of all events, unreadable, repeated and delayed events."""

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
    "'burst 120-121 10' (second 120 has ten times the events), 'hot-key 60-90 0.5' (one customer has half of all), "
    "'poison 30-31 2' (two unreadable records), 'duplicate 0-60 0.01' (1 % is sent twice), "
    "'out-of-order 60-90 0.1' (10 % are sent up to a second late, after younger events)"
)
MAX_DELAY_US: Final = SECOND_US
"""Longest delay of an event that is out of order, µs."""
UNREADABLE: Final = b'{"order_id": "poi'


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault in the seconds from `begin_s` (included) to `end_s` (excluded)."""

    kind: str
    begin_s: int
    end_s: int
    amount: float
    """Size of the fault. Burst: factor; poison: number of events; others: share of the events."""

    @classmethod
    def of(cls, text: str) -> Self:
        """Parse a fault. Raises ValueError."""
        match = _FAULT.fullmatch(text)
        if match is None:
            raise ValueError(f"{text!r} is not a fault; examples: {EXAMPLES}")
        fault = cls(match[1], int(match[2]), int(match[3]), float(match[4]))
        if fault.begin_s >= fault.end_s:
            raise ValueError(f"{text!r} ends before it begins")
        if fault.kind in (HOT_KEY, DUPLICATE, OUT_OF_ORDER) and fault.amount > 1:
            raise ValueError(f"{text!r}: a share must be at most 1")
        return fault


def read_faults(texts: Sequence[str], kind: str) -> tuple[Fault, ...]:
    """Return the faults of one kind. Raises ValueError."""
    return tuple(fault for fault in map(Fault.of, texts) if fault.kind == kind)


def apply_bursts(counts: IntArray, faults: Sequence[str]) -> IntArray:
    """Return the events per second including the bursts, in shape (seconds, …)."""
    for fault in read_faults(faults, BURST):
        counts = counts.copy()
        counts[fault.begin_s : fault.end_s] = (counts[fault.begin_s : fault.end_s] * fault.amount).astype(counts.dtype)
    return counts


def affected_events(faults: Sequence[str], kind: str, offset_us: IntArray, seed: int) -> npt.NDArray[np.bool_]:
    """Return a mask of the events that have this kind of fault: poison, duplicate or out-of-order."""
    random = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(6,)))
    is_affected = np.zeros(len(offset_us), dtype=np.bool_)
    for fault in read_faults(faults, kind):
        inside = (offset_us >= fault.begin_s * SECOND_US) & (offset_us < fault.end_s * SECOND_US)
        if kind == POISON:
            inside[np.flatnonzero(inside)[round(fault.amount) :]] = False
        else:
            inside &= random.random(len(offset_us)) < fault.amount
        is_affected |= inside
    return is_affected


def due_us(faults: Sequence[str], offset_us: IntArray, seed: int) -> IntArray:
    """Return the send time of each event, µs: its intended time, or later if it is out of order."""
    if not read_faults(faults, OUT_OF_ORDER):
        return offset_us
    delay_us = np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(7,))).integers(
        1, MAX_DELAY_US, len(offset_us)
    )
    return offset_us + delay_us * affected_events(faults, OUT_OF_ORDER, offset_us, seed)


def faults_problem(values: Values) -> str | None:
    """Return the first problem of the setting `faults`, or None. Used as a rule of every record with this setting."""
    try:
        faults = [Fault.of(text) for text in values["faults"]]
    except ValueError as error:
        return str(error)
    dropped = [fault.kind for fault in faults if fault.kind in (POISON, DUPLICATE)]
    if dropped and values["topology"] == "payment-only":
        return f"{dropped[0]} needs the pipeline, where Order drops such events"
    return None if values["trace"] else fault_after_end(values["faults"], values["duration_s"])


def fault_after_end(faults: Sequence[str], duration_s: int) -> str | None:
    """Return a message about the first fault that begins after the load ends, or None."""
    late = [fault for fault in map(Fault.of, faults) if fault.begin_s >= duration_s]
    return f"{late[0].kind} {late[0].begin_s}-{late[0].end_s} begins after the load, {duration_s} s" if late else None
