"""Simulate a stream of keys that sources distribute over workers of different speeds."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from partitioners import Partitioner
from partitioners.rules import BUSY, CG, FINE, HELPERS, IDLE, State, choose, mix, record_signal
from partitioners.source import EPSILON, RULES, VIRTUAL_PER_WORKER, new_state

KEYS: Final = 10_000
PARTS: Final = 100
MEAN_RATE: Final = 200.0
"""Mean service rate (μ) of a worker, events/s; the same as in the autoscaling papers."""
UTILISATION: Final = 0.8
WINDOW_S: Final = 2.0
"""Interval at which a worker signals whether it is busy or idle, in seconds."""
BUSY_ABOVE, IDLE_BELOW = 0.85, 0.75
"""A worker is busy if its events take more than the first share of the interval, and idle if less than the second."""
WARM_UP: Final = 0.1
"""If capacities differ, imbalance ignores this share of the events at the start and after each change."""


@dataclass(frozen=True, kw_only=True)
class Stream:
    """Events, keys, workers and sources of a stream."""

    events: int
    skew: float
    """Exponent z of Zipf's law over KEYS keys."""
    capacities: tuple[tuple[float, ...], ...]
    """Capacity of each worker, relative to an ordinary machine. Each row applies to an equal part of the run."""
    sources: int = 1
    seed: int = 1


class Arrivals:
    """Keys and times of a stream, which are generated once for all partitioners."""

    def __init__(self, stream: Stream) -> None:
        self.stream = stream
        chance = np.random.default_rng(stream.seed)
        weights = 1 / np.arange(1, KEYS + 1) ** stream.skew
        edges = np.cumsum(weights / weights.sum())
        self.keys = np.minimum(np.searchsorted(edges, chance.random(stream.events)), KEYS - 1).astype(np.int32)
        key_ids = chance.integers(0, 2**32, KEYS).tolist()
        self.hashes = np.array([mix(key, 9) for key in key_ids], dtype=np.int64)
        shares = np.asarray(stream.capacities, dtype=float)
        self.rates = shares * (MEAN_RATE / shares.mean(axis=1, keepdims=True))
        gap_s = 1 / (UTILISATION * MEAN_RATE * shares.shape[1])
        self.at_s = np.cumsum(chance.exponential(gap_s, stream.events))


def play(
    arrivals: Arrivals, partitioner: Partitioner, *, epsilon: float = EPSILON, virtual: int = VIRTUAL_PER_WORKER
) -> dict[str, float]:
    """Distribute the events over the workers with one partitioner, serve them in order, and return measures.

    imbalance: see `imbalance`. memory: mean number of workers that a key reached. queue_half_s, queue_end_s: work in
    the longest queue after half of the events, and at the end.
    """
    stream, rates = arrivals.stream, arrivals.rates
    workers = rates.shape[1]
    reached = np.zeros((workers, KEYS), dtype=np.bool_)
    tally, queue_s = np.zeros((PARTS, workers)), np.zeros((PARTS, workers))
    states = stack_states(partitioner, workers, stream.sources, virtual)
    _compiled_pass(
        RULES[partitioner], epsilon, states, arrivals.keys, arrivals.hashes, arrivals.at_s, rates,
        (BUSY_ABOVE, IDLE_BELOW, WINDOW_S), reached, tally, queue_s,
    )  # fmt: skip
    loads = np.array_split(tally, len(rates))
    learning = WARM_UP if np.ptp(rates) else 0
    steady = [load[int(np.ceil(learning * len(load))) :].sum(axis=0) for load in loads]
    return {
        "imbalance": float(np.mean(imbalance(np.array(steady), np.asarray(stream.capacities, dtype=float)))),
        "memory": float(reached.sum() / reached.any(axis=0).sum()),
        "queue_half_s": float(queue_s[PARTS // 2 - 1].max()),
        "queue_end_s": float(queue_s[-1].max()),
    }


def imbalance(loads: NDArray[np.float64], capacities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return (max U − mean U) / mean load of each row, where U is the load of a worker divided by its capacity.

    Capacities are relative to an ordinary machine. Both arguments have the shape (rows, workers).
    """
    normalised = loads / capacities
    found: NDArray[np.float64] = (normalised.max(axis=1) - normalised.mean(axis=1)) / loads.mean(axis=1)
    return found


def stack_states(partitioner: Partitioner, workers: int, sources: int, virtual: int) -> Any:
    """Return the states of all sources in one record. Each of its arrays has one row per source."""
    each = [new_state(partitioner, workers, number=source, virtual=virtual) for source in range(sources)]
    rows: list[Any] = [np.array(some, dtype=np.int64) for some in zip(*each, strict=True)]
    return State(*rows)


def state_of(states: Any, source: int) -> Any:
    """Return the state of one source."""
    return State(
        states.loads[source], states.numbers[source], states.ring_at[source], states.ring_worker[source],
        states.owner[source], states.signal[source], states.signal_since[source], states.sketch[source],
        states.split_key[source], states.split_over[source],
    )  # fmt: skip


def _partition_and_serve(
    rule: int, epsilon: float, states: Any, keys: Any, hashes: Any, at_s: Any, rates: Any,
    thresholds: tuple[float, float, float], reached: Any, tally: Any, queue_s: Any,
) -> None:  # fmt: skip
    events, workers, sources = len(keys), rates.shape[1], len(states.loads)
    busy_above, idle_below, window_s = thresholds
    free_s = np.zeros(workers)
    work_s = np.zeros(workers)
    signals = np.zeros(workers, dtype=np.int64)
    unsent = np.zeros((sources, workers), dtype=np.bool_)
    window_ends_s = window_s
    state = state_of(states, 0)
    for part in range(PARTS):
        rate = rates[part * len(rates) // PARTS]
        for number in range(part * events // PARTS, (part + 1) * events // PARTS):
            now_s = at_s[number]
            if now_s >= window_ends_s:
                for worker in range(workers):
                    share = work_s[worker] / window_s
                    signals[worker] = BUSY if share > busy_above else IDLE if share < idle_below else FINE
                    work_s[worker] = 0
                unsent[:, :] = True
                window_ends_s += window_s
            source = 0
            if sources > 1:
                source = number % sources
                state = state_of(states, source)
            key = keys[number]
            worker = choose(rule, epsilon, state, hashes[key])
            takes_s = 1 / rate[worker]
            free_s[worker] = max(free_s[worker], now_s) + takes_s
            work_s[worker] += takes_s
            reached[worker, key] = True
            tally[part, worker] += 1
            if rule == CG and unsent[source, worker]:  # the acknowledgement carries the signal
                unsent[source, worker] = False
                record_signal(state, worker, signals[worker])
        for worker in range(workers):
            queue_s[part, worker] = max(free_s[worker] - now_s, 0.0)


_compiled_pass = compiled(_partition_and_serve, (*HELPERS, state_of))
