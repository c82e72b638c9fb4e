"""A group told in milliseconds: events at a steady pace, served by whichever replica owns their partition."""

from collections.abc import Iterable

import numpy as np

from bench.handover.evidence import Evidence, Move, Row, Served, Step

MS = 1000
START_US = 1_700_000_000_000_000


def at(ms: float) -> int:
    """Return a moment of the story, µs since the epoch."""
    return START_US + round(ms * MS)


def row(ms: float, partition: int, offset: int, replica: str, *, latency_ms: float = 5.0) -> Row:
    """An event intended at `ms`."""
    return Row(at(ms), at(ms + latency_ms), partition, offset, replica)


def steady(
    partition: int, replica: str, *, begin: int, end: int, every: int = 20, latency_ms: float = 5.0
) -> list[Row]:
    """Events of one partition every `every` ms in [begin, end), all served by `replica`."""
    return [row(ms, partition, ms // every, replica, latency_ms=latency_ms) for ms in range(begin, end, every)]


def step(kind: str, ms: float, moves: Iterable[tuple[int, str, str]] | None, *, until: float = 5000) -> Step:
    """A step at `ms`; moves: (partition, from, to)."""
    return Step(kind, at(ms), at(until), None if moves is None else tuple(Move(*move) for move in moves))


def evidence(
    rows: Iterable[Row],
    steps: Iterable[Step] = (),
    *,
    quiet: Iterable[tuple[float, float]] = (),
    committed: Iterable[Iterable[int]] = (),
    unfinished: Iterable[float] = (),
) -> Evidence:
    """Put a story together. unfinished: intended times (ms) of events that the broker took and no replica finished."""
    served = Served.of(tuple(rows))
    return Evidence(
        sent_us=np.unique(np.append(served.intended_us, np.array([at(ms) for ms in unfinished], dtype=np.int64))),
        served=served,
        steps=tuple(steps),
        quiet=tuple((at(begin), at(end)) for begin, end in quiet),
        committed=np.array([list(sample) for sample in committed], dtype=np.int64),
    )
