"""What the fast engine keeps of each event, replica and partition: arrays of records, which compiled loops can use."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.simulator.service import ServiceTimes

Rows = NDArray[np.void]
"""An array of records: one row per event, replica or partition."""

NONE: Final = -1
NEVER: Final = 1 << 62

EVENT: Final = np.dtype(
    [
        ("intended_us", np.int64),
        ("demand_us", np.float64),
        ("started_us", np.int64),
        ("done_us", np.int64),  # NEVER until it has been assigned
        ("next", np.int64),  # the next one in its chain
        ("partition", np.int32),
        ("replica", np.int32),
        ("polls", np.bool_),  # it is the first of a batch, or of a unit
    ],
    align=True,
)
REPLICA: Final = np.dtype(
    [
        ("speed", np.float64),
        ("free_us", np.int64),  # nothing more starts before
        ("first", np.int64),  # chain of events that are not committed
        ("last", np.int64),
        ("polled_us", np.int64),  # when the newest batch was polled
        ("room", np.int64),  # events that it can still hold; 0: it is closed
        ("done_us", np.int64),  # end of the newest committed batch
        ("concerned", np.bool_),  # by a command that has not been carried out
        ("alive", np.bool_),
    ],
    align=True,
)
MEMBER: Final = np.dtype(
    [
        ("speed", np.float64),
        ("free_us", np.int64),  # when it has served what it acquired
        ("first", np.int64),  # chain of events that it acquired and that are not committed
        ("done_us", np.int64),  # end of the newest committed event
    ],
    align=True,
)
"""A replica of a pool."""
PARTITION: Final = np.dtype(
    [
        ("owner", np.int64),
        ("first", np.int64),  # chain of events that nobody serves
        ("last", np.int64),  # its end; in a pool the last event fed
        ("produced", np.int64),
        ("committed", np.int64),
        ("concerned", np.bool_),
    ],
    align=True,
)
SERVICE: Final = np.dtype(
    [
        ("poll_events", np.int64),
        ("slow_from_us", np.int64),
        ("slow_until_us", np.int64),
        ("slow_factor", np.float64),
    ],
    align=True,
)


def service_row(service: ServiceTimes, poll_events: int = 1) -> Rows:
    """Return what loops need to know of how work is done."""
    slow = (service.slow_from_us, service.slow_until_us, service.slow_factor)
    return np.array([(poll_events, *slow)], SERVICE)
