"""Small models of the laboratory: one burst event by event, an exact packing, and the spreading of keys."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.jit import compiled
from contracts.settings import unknown_name
from contracts.validation import InvalidSettingsError
from partitioners import Partitioner
from partitioners.rules import BUSY, CG, FINE, HELPERS, IDLE, State, choose, mix, record_signal
from partitioners.source import EPSILON, RULES, new_state
from report.picture import BLUE, RED, Picture, picture

ROUNDING_S = 1e-9
MAX_EVENTS = 100_000
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


@dataclass(frozen=True, eq=False)
class Burst:
    """Events and their times in seconds: one entry per event, in order of arrival."""

    arrival_s: NDArray[np.float64]
    start_s: NDArray[np.float64]
    done_s: NDArray[np.float64]
    target_s: float

    @property
    def is_late(self) -> NDArray[np.bool_]:
        """Whether each event took longer than the latency target."""
        return np.asarray(self.done_s - self.arrival_s > self.target_s + ROUNDING_S)

    @property
    def late(self) -> int:
        """Number of events that took longer than the latency target."""
        return int(self.is_late.sum())

    def picture(self) -> Picture:
        """Draw each event as a line from its arrival until it is done; late ones in red."""
        title = f"{self.late} of {len(self.done_s)} events are late (target {self.target_s:g} s)"
        with picture(title) as (drawn, (axes,)):
            for late, colour, label in ((False, BLUE, "in time"), (True, RED, "late")):
                own = np.flatnonzero(self.is_late == late)
                axes.hlines(own, self.arrival_s[own], self.start_s[own], color=colour, alpha=0.35, linewidth=1)
                axes.hlines(own, self.start_s[own], self.done_s[own], color=colour, linewidth=2, label=label)
            axes.set(xlabel="seconds (pale: the event waits)", ylabel="event", xlim=(0, None))
            axes.legend(loc="lower right")
        return drawn


def burst(
    events: int, service_rate: float, target_s: float, *, spread_s: float = 0.0, second_at_s: float | None = None
) -> Burst:
    """Serve events in order of arrival by one replica, and return their times.

    service_rate: events/s of a replica. spread_s: the events arrive evenly over this time; 0: all at once.
    second_at_s: time from which a second replica owns every other event; None: never. Raises ValueError for values
    that are not positive or not finite, or more than 100,000 events.
    """
    if not (0 < events <= MAX_EVENTS and service_rate > 0 and target_s > 0 and 0 <= spread_s < np.inf):
        raise ValueError("events (at most 100,000), service_rate and target_s must be positive, spread_s 0 or finite")
    arrival_s = np.arange(events) * spread_s / events
    second_s = np.inf if second_at_s is None else second_at_s
    start_s, free_s = np.zeros(events), [0.0, second_s]
    for event, at_s in enumerate(arrival_s):
        moves = int(event % 2 == 1 and max(at_s, free_s[0]) >= second_s)
        start_s[event] = max(at_s, free_s[moves])
        free_s[moves] = start_s[event] + 1 / service_rate
    return Burst(arrival_s, start_s, start_s + 1 / service_rate, target_s)


def spread(
    partitioner: str,
    *,
    skew: float = 1.0,
    capacities: Sequence[float] = (1.0,) * 9,
    events: int = 200_000,
    seed: int = 1,
) -> dict[str, float]:
    """Distribute a stream of keys over workers with a partitioner, and return `imbalance` and `memory`.

    skew: exponent of Zipf's law over 10,000 keys. capacities: relative speed of each worker. The imbalance is the share
    by which the busiest worker exceeds the mean. The memory is the mean number of workers that a key reached. Above 1,
    the events of a key may overtake each other. Raises ValueError for an unknown partitioner or an invalid number.
    """
    names = [one.value for one in Partitioner if one is not Partitioner.EXPLICIT]
    if partitioner not in names:
        raise InvalidSettingsError([f"partitioner {partitioner} is {unknown_name(partitioner, names)}"])
    if events < 1 or not len(capacities) or not all(0 < one < np.inf for one in capacities):
        raise ValueError("events and each of the capacities must be positive")
    return play(Partitioner(partitioner), events=events, skew=skew, capacities=capacities, seed=seed)


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
