"""Every test that the pages of guarantees and security name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("page", "least"), [("guarantees", 20), ("security", 7)])
def test_each_guarantee_is_tested_where_the_page_says(page: str, least: int):
    named = set(re.findall(r"`([a-z/_]+/test_\w+\.py)`", (ROOT / f"docs/reference/{page}.md").read_text()))
    assert len(named) > least
    assert {one for one in named if not (ROOT / "tests" / one).is_file()} == set()
