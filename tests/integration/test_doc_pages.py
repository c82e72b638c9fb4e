"""Every tutorial and how-to guide is executed from top to bottom on a real Kafka."""

from pathlib import Path

import pytest
from follow import KAFKA, blocks, follow, pages

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]

SHORT = {"--seeds 5": "--seeds 2", "--seeds 3": "--seeds 2", "run smoke": "run smoke --duration 6s"} | {
    "compare spike": "compare --set duration_s=120 spike"
}
"""Fewer seeds and shorter loads than on the page."""


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_every_block_of_the_page_runs(page: Path, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    named = any(address in block.text for block in blocks(page) if block.of("") for address in KAFKA)
    address = request.getfixturevalue("private_broker").address() if named else KAFKA[0]
    follow(page, tmp_path, address, **SHORT)
