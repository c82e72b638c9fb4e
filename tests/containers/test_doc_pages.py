"""The how-to guides whose blocks need containers, executed from top to bottom on a real Docker engine."""

from pathlib import Path

import pytest
from follow import follow, pages

pytestmark = [pytest.mark.containers, pytest.mark.timeout(1800)]


SHORT = {"docker compose build": "sed -i 's/load demo /&--duration 20s /' docker-compose.yml\ndocker compose build"}
"""The demo of the page for 20 s; test_compose_demo.py runs all of it."""


@pytest.mark.parametrize("page", pages("containers"), ids=lambda page: page.stem)
def test_every_block_of_the_page_runs(page: Path, images: None, tmp_path: Path) -> None:
    follow(page, tmp_path, "kafka:9092", "containers", **SHORT)
