"""The pictures of the documentation say what their captions and the committed figures say."""

import re
from pathlib import Path

import numpy as np

from studies.pictures import EVENTS, LATENCY_TARGET_S, PICTURES, Halves, latencies_s

DOCS = Path(__file__).parents[3] / "docs"


def test_a_burst_is_late_on_one_replica_and_in_time_when_half_of_it_moves() -> None:
    alone, moved = latencies_s(Halves(act=False)), latencies_s(Halves(act=True))
    assert np.count_nonzero(alone > LATENCY_TARGET_S) == EVENTS - 100
    assert np.count_nonzero(moved > LATENCY_TARGET_S) == 0


def test_the_committed_pictures_are_what_simulator_and_committed_figures_give(tmp_path: Path) -> None:
    """`tailpack bench pictures` makes them; what a picture says is compared, not how matplotlib draws it."""
    for name, draw in PICTURES.items():
        draw(tmp_path / name)
        assert words(tmp_path / name) == words(DOCS / name), f"{name}: run `tailpack bench pictures`"


def words(picture: Path) -> list[str]:
    return re.findall(r"<text[^>]*>([^<]+)</text>", picture.read_text(encoding="utf-8"))
