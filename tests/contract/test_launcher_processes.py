"""Processes keep the launchers' contract."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from launcher_contract import LauncherContract, Processes


@pytest.fixture
def nursery(tmp_path: Path) -> Iterator[Processes]:
    nursery = Processes(tmp_path)
    yield nursery
    nursery.close()


class TestProcesses(LauncherContract): ...
