"""The tables of docs/paper.md."""

from collections.abc import Callable
from typing import Final

from bench.results import load
from studies.paper.claim import PaperRow
from studies.paper.page import page


def paper() -> str:
    """Return every row of the papers, ours beside theirs."""
    found = load(PaperRow)
    return page(found, (row.origin for row in found))


PAPER_TABLES: Final[dict[str, Callable[[], str]]] = {"paper": paper}
