"""Tables of how fast the core's inner loops are."""

from collections.abc import Callable
from typing import Final

from bench.results import SimulatorRow, known, load, table
from studies.packing_speed import PackingSpeedFigures


def simulator() -> str:
    """Return how fast the simulator is, and how that grows."""
    found = load(SimulatorRow)
    rows = [
        (
            row.measured,
            f"{row.events:,}",
            f"{row.partitions:,}",
            str(row.replicas),
            f"{row.process_s:.2f}",
            f"{row.events_per_s:,.0f}",
            f"{row.policy_s:.2f}",
            known(row.peak_mb, 1, ",.0f"),
        )
        for row in found
    ]
    header = ("measured", "events", "partitions", "replicas", "processor, s", "events/s", "its policy, s", "peak, MB")
    return table(header, rows, (row.origin for row in found))


def packing_speed() -> str:
    """Return how long each packer takes, and how that grows."""
    found = load(PackingSpeedFigures)
    sizes = sorted({(row.partitions, row.consumers) for row in found})
    by_packer: dict[str, dict[int, float]] = {}
    for row in found:
        by_packer.setdefault(row.packer, {})[row.partitions] = row.milliseconds
    rows = [(packer, *(f"{milliseconds[size]:.2f}" for size, _ in sizes)) for packer, milliseconds in by_packer.items()]
    header = ("ms", *(f"{size:,} × {consumers:,}" for size, consumers in sizes))
    return table(header, rows, (row.origin for row in found))


SPEED_TABLES: Final[dict[str, Callable[[], str]]] = {"simulator": simulator, "packing-speed": packing_speed}
