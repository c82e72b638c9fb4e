"""Every test that docs/trust.md and docs/security.md name is there."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "least"), [("trust", 20), ("security", 7)])
def test_what_is_promised_is_tested_where_the_page_says(page: str, least: int):
    named = set(re.findall(r"`([a-z/_]+/test_\w+\.py)`", (ROOT / f"docs/{page}.md").read_text()))
    assert len(named) > least
    assert {one for one in named if not (ROOT / "tests" / one).is_file()} == set()
