"""The packing study: measures of a course, what a study sums up, and the command from its options to the picture."""

import functools
import json
from pathlib import Path
from typing import Any

import command_line
import numpy as np
import pytest

from bench.results import load
from studies.packing.claims import Comparison, claims, draw_points, points
from studies.packing.compare import THE_TWELVE, Job, summarise
from studies.packing.streams import Stream, consumers, moved, pack_all, rscore
from studies.published import DIFFERS, REPRODUCED, UNKNOWN
from tailpack.errors import TailpackError

TINY = ("--streams", "2", "--iterations", "6", "--partitions", "9", "--delta", "10", "--processes", "1")
COURSE = np.array([[0, 0, 1], [0, 1, 1], [2, 1, 1]])
LOADS = np.array([[50, 40, 30], [60, 50, 30], [70, 20, 30]])


run = functools.partial(command_line.run, "packing")


@pytest.fixture(scope="module")
def told() -> dict[str, Any]:
    """What the command says with `--json`: one object and nothing else."""
    found: dict[str, Any] = json.loads(run("compare", *TINY, "--json").stdout)
    return found


def test_a_course_is_measured_by_what_changes_its_owner() -> None:
    assert consumers(COURSE).tolist() == [2, 2, 2]
    assert moved(COURSE).sum(axis=1).tolist() == [0, 1, 1]
    assert rscore(COURSE, LOADS).tolist() == [0.0, 0.5, 0.7], "loads of the new iteration, in capacities"


def test_each_packing_starts_from_the_owners_before_and_in_the_order_that_is_due() -> None:
    asked: list[tuple[dict[int, float], dict[int, int], list[int]]] = []

    def packer(loads: Any, owners: Any, _capacity: float, *, order: Any) -> dict[int, int]:
        asked.append((dict(loads), dict(owners), list(order)))
        return {partition: len(asked) for partition in loads}

    stream = Stream(LOADS, (2, 0, 1), np.array([[0, 1, 2], [1, 2, 0], [2, 1, 0]]))
    pack_all(packer, stream)
    pack_all(packer, stream, as_they_come=True)
    assert [owners for _, owners, _ in asked[:3]] == [{}, {0: 1, 1: 1, 2: 1}, {0: 2, 1: 2, 2: 2}]
    assert [order for *_, order in asked] == [[2, 0, 1]] * 3 + [[0, 1, 2], [1, 2, 0], [2, 1, 0]]
    with pytest.raises(ValueError, match="0 of 3 partitions were placed"):
        pack_all(lambda *_, **__: {}, stream)


def test_a_study_has_means_over_streams_a_front_and_mwf_beside_the_best_existing() -> None:
    def stream(mwf: float) -> dict[str, tuple[float, ...]]:
        alike = dict.fromkeys(THE_TWELVE, (30.0, 0.3, 100.0, 60.0))
        return alike | {
            "mwf": (mwf, 0.12, 90.0, 20.0),
            "nfd": (20.0, 0.24, 95.0, 40.0),
        }

    study = summarise([Job(200, 5, 501, 1, number, None) for number in (0, 1)], [stream(9.0), stream(11.0)])
    by_name = {one.packer: one for one in study.points}
    assert by_name["mwf"].rscore.mean == 10.0
    assert by_name["mwf"].front_of_twelve
    assert study.headline is not None
    assert study.headline.baseline == "nfd"
    assert study.headline.rscore_change.mean == -0.5
    assert study.headline.rscore_change_range.least == -0.55


def test_json_says_what_was_packed_and_what_came_of_it(told: dict[str, Any], tmp_path: Path) -> None:
    (study,) = told["studies"]
    assert (study["partitions"], study["delta"], study["streams"], study["iterations"]) == (9, 10, 2, 6)
    assert {*THE_TWELVE, "least_loaded"} <= {point["packer"] for point in study["points"]}
    assert {claim["verdict"] for claim in told["claims"]} == {UNKNOWN}, "the paper had 200 partitions"
    shown = run("compare", *TINY, "--into", str(tmp_path)).stdout
    assert "9 partitions, δ = 10: 2 streams of 6" in shown
    assert json.loads((tmp_path / "packing.json").read_bytes())[0]["studies"] == told["studies"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (("--delta", "101"), "deltas = .*: must be at least 0, at most 100"),
        (("--start", "250"), "start = 250: must be at least 0, at most 100"),
        (("--iterations", "1"), "iterations = 1: must be at least 2"),
        (("--streams", "0"), "streams = 0: must be at least 1"),
    ],
)
def test_what_no_stream_can_be_is_refused_in_one_line(words: tuple[str, ...], line: str) -> None:
    with pytest.raises(TailpackError, match=line):
        run("compare", *words)


def test_the_committed_comparison_becomes_tables_and_the_same_picture_each_time(tmp_path: Path) -> None:
    kept = load("packing", Comparison)[0].result
    verdicts = [one.verdict for one in kept.claims]
    assert verdicts.count(REPRODUCED) + verdicts.count(DIFFERS) == len(verdicts)
    assert all(claim.claim in claims() for claim in kept.claims)
    assert all(f"| {name} |" in points() for name in THE_TWELVE)
    for name in ("one.svg", "two.svg"):
        draw_points(tmp_path / name)
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
