"""The pages of what is simulated show the committed figures."""

from pathlib import Path

import pytest

from bench.experiments.sweeps import SWEEPS
from studies.tables import EVERY_TABLE, renew

DOCS = Path(__file__).parents[4] / "docs"
PAGES = {"comparison.md": ["comparison"], "paper.md": ["paper"], "sweeps.md": [f"sweep-{name}" for name in SWEEPS]}


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_the_committed_figures(page: str) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    assert all(f"<!-- table: {name} -->" in text for name in PAGES[page])
    assert set(PAGES[page]) <= set(EVERY_TABLE)
    assert renew(text) == text, f"run `tailpack bench tables docs/{page}`"
