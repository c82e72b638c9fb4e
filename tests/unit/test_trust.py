"""Every test that docs/trust.md names is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_is_promised_is_tested_where_the_page_says():
    named = set(re.findall(r"`([a-z/_]+/test_\w+\.py)`", (ROOT / "docs/trust.md").read_text()))
    assert len(named) > 20
    assert {one for one in named if not (ROOT / "tests" / one).is_file()} == set()
