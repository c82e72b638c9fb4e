"""A group described in milliseconds: events at a constant rate, served by the replica that owns their partition."""

from collections.abc import Iterable, Mapping

import numpy as np

from bench.handover.evidence import Claim, Evidence, Row, Step, in_order

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


def step(kind: str, ms: float, moves: Mapping[int, str] | None, *, until: float = 5000) -> Step:
    """A step at `ms`; moves: partition → new owner."""
    return Step(kind, at(ms), at(until), moves)


def evidence(
    rows: Iterable[Row],
    steps: Iterable[Step] = (),
    *,
    quiet: Iterable[tuple[float, float]] = (),
    committed: Iterable[Iterable[int]] = (),
    claims: Iterable[tuple[float, str, set[int]]] = (),
    unfinished: int = 0,
) -> Evidence:
    """Put a story together. unfinished: events that the broker has and no replica finished."""
    served = in_order(rows)
    return Evidence(
        ends=np.array([len({(one["partition"], one["offset"]) for one in served}) + unfinished]),
        served=served,
        steps=tuple(steps),
        quiet=tuple((at(begin), at(end)) for begin, end in quiet),
        claims=tuple(Claim(at(ms), name, frozenset(owned)) for ms, name, owned in claims),
        committed=np.array([list(sample) for sample in committed], dtype=np.int64),
    )
