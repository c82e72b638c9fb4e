"""Streams of the packing and the partitioner study, their measures, and verdicts that follow from them."""

import json
from pathlib import Path

import command_line
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autoscaler.packing.packers import PACKERS
from studies import consistent_grouping
from studies.consistent_grouping import PARTITIONERS
from studies.grouped_streams import imbalance
from studies.landau import CAPACITY as CONSUMER
from studies.landau import consumers, pack_all, random_walk, rscore

OWNERS = np.array([[0, 0, 1], [0, 1, 1], [2, 1, 1]])
LOADS = np.array([[50, 40, 30], [60, 50, 30], [70, 20, 30]])


@given(st.integers(1, 12), st.integers(2, 12), st.integers(0, 100))
def test_a_walk_has_integer_steps_within_delta_and_capacity(partitions: int, iterations: int, delta: int) -> None:
    stream = random_walk(partitions=partitions, iterations=iterations, delta=delta, seed=(3,))
    assert stream.loads.shape == stream.fresh_orders.shape == (iterations, partitions)
    assert (stream.loads.min() >= 0, stream.loads.max() <= CONSUMER) == (True, True)
    assert np.abs(np.diff(stream.loads, axis=0)).max() <= delta
    assert all(sorted(order) == list(range(partitions)) for order in (stream.base_order, *stream.fresh_orders.tolist()))


def test_the_rscore_is_the_load_that_changes_its_owner() -> None:
    assert consumers(OWNERS).tolist() == [2, 2, 2]
    assert rscore(OWNERS, LOADS).tolist() == [0.0, 0.5, 0.7], "loads of the new iteration, in capacities"
    stream = random_walk(partitions=30, iterations=8, delta=5, seed=(1,))
    sticky, repacked = (pack_all(PACKERS[name], stream) for name in ("mwf", "ffd"))
    assert rscore(sticky, stream.loads).sum() < rscore(repacked, stream.loads).sum(), (
        "each packing starts from the previous owners"
    )


def test_imbalance_follows_the_paper_s_definition() -> None:
    ten = np.array([[1.0] * 8 + [3.0, 5.0]])
    # evenly: U is 100 for eight workers, 33.3 and 20 for two: their mean is 85.3, and m/n is 100
    assert imbalance(np.full((1, 10), 100.0), ten) == pytest.approx(1 - (8 + 1 / 3 + 1 / 5) / 10)
    assert imbalance(ten * 7, ten) == pytest.approx(0)
    assert imbalance(np.array([[40.0, 0, 0, 0]]), np.ones((1, 4))) == pytest.approx(3), "n − 1 at most"


def test_a_stream_is_played_with_every_partitioner() -> None:
    study, stream, ways = next(consistent_grouping.streams(1_000_000, first=True))
    row = consistent_grouping.play_job(consistent_grouping._job(study, stream, ways, 1))
    found = {name.split()[0]: measures for name, measures in row.items()}
    assert set(found) == set(PARTITIONERS)
    assert found["cg"]["imbalance"] < 0.02 < min(one["imbalance"] for name, one in found.items() if name != "cg")
    kg, sticky, pkg, sg = (found[name]["memory"] for name in ("kg", "sticky_split", "pkg", "sg"))
    assert kg == 1 <= sticky < pkg < sg


def test_the_command_prints_one_json_object_and_resumes(tmp_path: Path) -> None:
    words = ("dev", "paper", "Landau", "--quick", "--seeds", "1", "--processes", "1", "--out", str(tmp_path), "--json")
    first = command_line.run(*words)
    assert first.exit_code == 0
    rows = json.loads(first.stdout)["rows"]
    assert {row["verdict"] for row in rows} <= {"reproduced", "differs"}
    assert "MWF moves less load" in (tmp_path / "paper.md").read_text(encoding="utf-8")
    assert len((tmp_path / "landau" / "results.jsonl").read_text().splitlines()) == 2
    assert command_line.run(*words).stdout == first.stdout
