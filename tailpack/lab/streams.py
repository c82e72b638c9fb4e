"""Simulate a stream of keys that a source distributes over workers of different speeds."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from autoscaler.jit import compiled
from partitioners import Partitioner
from partitioners.rules import BUSY, CG, FINE, HELPERS, IDLE, State, choose, mix, record_signal
from partitioners.source import EPSILON, RULES, new_state

KEYS: Final = 10_000
MEAN_RATE: Final = 200.0
"""Mean service rate (μ) of a worker, events/s; the same as in the autoscaling papers."""
UTILISATION: Final = 0.8
WINDOW_S: Final = 2.0
"""Interval at which a worker signals whether it is busy or idle, in seconds."""
BUSY_ABOVE, IDLE_BELOW = 0.85, 0.75
"""A worker is busy if its events take more than the first share of the interval, and idle if less than the second."""
WARM_UP: Final = 10
"""If capacities differ, imbalance ignores the first of this many equal parts of the events."""


def play(
    partitioner: Partitioner, *, events: int, skew: float, capacities: Sequence[float], seed: int = 1
) -> dict[str, float]:
    """Distribute a stream over workers with one partitioner, and return measures.

    skew: exponent z of Zipf's law over KEYS keys. capacities: capacity of each worker, relative to an ordinary machine.
    imbalance: (max U − mean U) / mean load, where U is the load of a worker divided by its capacity. memory: mean
    number of workers that a key reached.
    """
    keys, hashes, at_s = _arrivals(events, skew, len(capacities), np.random.default_rng(seed))
    shares = np.asarray(capacities, dtype=float)
    reached, loads = np.zeros((len(shares), KEYS), dtype=np.bool_), np.zeros(len(shares))
    counted = events // WARM_UP if np.ptp(shares) else 0
    rates, thresholds = shares * (MEAN_RATE / shares.mean()), (BUSY_ABOVE, IDLE_BELOW, WINDOW_S)
    state = array_state(partitioner, len(shares))
    _compiled_pass(RULES[partitioner], state, keys, hashes, at_s, rates, thresholds, counted, reached, loads)
    normalised = loads / shares
    return {
        "imbalance": float((normalised.max() - normalised.mean()) / loads.mean()),
        "memory": float(reached.sum() / reached.any(axis=0).sum()),
    }


def _arrivals(events: int, skew: float, workers: int, chance: np.random.Generator) -> tuple[Any, Any, Any]:
    """Return the key of each event, the hash of each key, and the arrival times in seconds."""
    weights = 1 / np.arange(1, KEYS + 1) ** skew
    edges = np.cumsum(weights / weights.sum())
    keys = np.minimum(np.searchsorted(edges, chance.random(events)), KEYS - 1).astype(np.int32)
    hashes = np.array([mix(key, 9) for key in chance.integers(0, 2**32, KEYS).tolist()], dtype=np.int64)
    return keys, hashes, np.cumsum(chance.exponential(1 / (UTILISATION * MEAN_RATE * workers), events))


def array_state(partitioner: Partitioner, workers: int) -> Any:
    """Return the initial state of a source as arrays, for compiled code."""
    return State(*(np.array(column, dtype=np.int64) for column in new_state(partitioner, workers)))  # type: ignore[arg-type]


def _distribute(
    rule: int, state: Any, keys: Any, hashes: Any, at_s: Any, rates: Any, thresholds: tuple[float, float, float],
    counted: int, reached: Any, loads: Any,
) -> None:  # fmt: skip
    workers = len(rates)
    busy_above, idle_below, window_s = thresholds
    work_s = np.zeros(workers)
    signals = np.zeros(workers, dtype=np.int64)
    unsent = np.zeros(workers, dtype=np.bool_)
    window_ends_s = window_s
    for number in range(len(keys)):
        now_s = at_s[number]
        if now_s >= window_ends_s:
            for worker in range(workers):
                share = work_s[worker] / window_s
                signals[worker] = BUSY if share > busy_above else IDLE if share < idle_below else FINE
                work_s[worker] = 0
            unsent[:] = True
            window_ends_s += window_s
        key = keys[number]
        worker = choose(rule, EPSILON, state, hashes[key])
        work_s[worker] += 1 / rates[worker]
        reached[worker, key] = True
        if number >= counted:
            loads[worker] += 1
        if rule == CG and unsent[worker]:  # the acknowledgement carries the signal
            unsent[worker] = False
            record_signal(state, worker, signals[worker])


_compiled_pass = compiled(_distribute, HELPERS)
