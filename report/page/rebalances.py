"""The table of rebalances: how long partitions stood still when they changed hands."""

from typing import Final

from report.result import Rebalances
from report.wording import count, duration

COLUMNS: Final = [
    ("round", ""), ("members", "number"), ("moved", "number"), ("rounds", "number"), ("measured", "number"),
    *((f"pause {name}", "number") for name in ("p50", "p90", "p99", "max")),
    *((f"plan → ready {name}", "number") for name in ("p50", "p99", "max")),
]  # fmt: skip


def rows(found: Rebalances) -> list[list[str]]:
    """Return the rows of the page's table, as COLUMNS names them."""
    return [
        [
            one.kind,
            *map(count, (one.members, one.moved, one.rounds, one.measured)),
            *map(duration, (one.pause_p50_s, one.pause_p90_s, one.pause_p99_s, one.pause_max_s)),
            *map(duration, (one.ready_p50_s, one.ready_p99_s, one.ready_max_s)),
        ]
        for one in found.lengths
    ]
