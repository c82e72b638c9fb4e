"""The how-to guides whose blocks need a cluster, executed from top to bottom in a namespace for the test."""

from pathlib import Path

import pytest
from follow import follow, pages
from pods import Deployed


@pytest.mark.parametrize("page", pages("kubernetes"), ids=lambda page: page.stem)
def test_every_block_of_the_page_runs(page: Path, deployed: Deployed, tmp_path: Path) -> None:
    follow(page, tmp_path, deployed.broker, "kubernetes", **{"-n tailpack": f"-n {deployed.name}"})
