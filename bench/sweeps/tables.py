"""The tables of docs/sweeps.md."""

from collections.abc import Callable
from functools import partial
from typing import Final

from bench.figures import SweepRow, load
from bench.sweeps.catalogue import SWEEPS
from bench.sweeps.page import tables


def sweep_table(name: str) -> str:
    """Return the tables of one sweep, as far as it is committed."""
    found = [row for row in load(SweepRow) if row.sweep == name]
    return tables(SWEEPS[name], found, (row.origin for row in found))


SWEEP_TABLES: Final[dict[str, Callable[[], str]]] = {f"sweep-{name}": partial(sweep_table, name) for name in SWEEPS}
