"""`tailpack bench loadgen` says what others rely on, of loads that were really sent."""

import json
from pathlib import Path

import command_line
import pytest

from bench import results

pytestmark = [pytest.mark.kafka, pytest.mark.long]


def test_the_quick_form_has_its_figures_and_keeps_a_row_for_each_way(tmp_path: Path):
    ways = ("--workers", "1,2", "--entries", "kafka,http")
    found = json.loads(command_line.run("bench", "loadgen", "--quick", *ways, "--into", tmp_path, "--json").stdout)
    assert 0 < found["within_2ms"] <= 1
    assert found["lateness_p99_s"] > 0
    assert 0 <= found["on_time_per_s"] < found["max_rate_per_s"]
    kept = [row.result for row in results.load("loadgen", results.LoadgenRow, tmp_path)]
    assert [(row.entry, row.workers) for row in kept] == [("kafka", 1), ("kafka", 2), ("http", 1), ("http", 2)]
    assert all(row.max_rate_per_s > 0 for row in kept)
