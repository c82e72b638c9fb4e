"""Every tutorial and how-to guide is executed from top to bottom on a real Kafka."""

from pathlib import Path

import pytest
from follow import follow, pages

from tailpack.local.broker import Broker

pytestmark = [pytest.mark.kafka, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.stem)
def test_every_block_of_the_page_runs(page: Path, private_broker: Broker, tmp_path: Path) -> None:
    follow(page, tmp_path, private_broker.address())
