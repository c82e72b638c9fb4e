"""Tables of how fast the core's inner loops are."""

from collections.abc import Callable
from typing import Final

from bench.figures import SimulatorRow, load
from bench.markdown import table


def simulator() -> str:
    """Return how fast the simulator is, and how that grows."""
    found = load(SimulatorRow)
    rows = [
        (
            f"{row.events:,}",
            f"{row.partitions:,}",
            str(row.replicas),
            f"{row.process_s:.2f}",
            f"{row.events_per_s:,.0f}",
        )
        for row in found
    ]
    return table(("events", "partitions", "replicas", "processor, s", "events/s"), rows, (row.origin for row in found))


SPEED_TABLES: Final[dict[str, Callable[[], str]]] = {"simulator": simulator}
