"""Small models of the laboratory: one burst event by event, an exact packing, and the spreading of keys."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from contracts.settings import unknown_name
from contracts.validation import InvalidSettingsError
from partitioners import Partitioner
from report.picture import BLUE, RED, Picture, picture

ROUNDING_S = 1e-9
MAX_EVENTS = 100_000


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
    from tailpack.lab.streams import play  # noqa: PLC0415  compiled code

    names = [one.value for one in Partitioner if one is not Partitioner.EXPLICIT]
    if partitioner not in names:
        raise InvalidSettingsError([f"partitioner {partitioner} is {unknown_name(partitioner, names)}"])
    if events < 1 or not len(capacities) or not all(0 < one < np.inf for one in capacities):
        raise ValueError("events and each of the capacities must be positive")
    return play(Partitioner(partitioner), events=events, skew=skew, capacities=capacities, seed=seed)
