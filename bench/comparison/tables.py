"""The table of docs/comparison.md."""

from collections.abc import Callable
from typing import Final

from bench.comparison.page import page
from bench.figures import ComparisonRow, load


def comparison() -> str:
    """Return every policy in every scenario, as far as it is committed."""
    found = load(ComparisonRow)
    return page(found, (row.origin for row in found), heading="###")


COMPARISON_TABLES: Final[dict[str, Callable[[], str]]] = {"comparison": comparison}
