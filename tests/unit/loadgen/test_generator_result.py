"""The result of the generator: percentiles, and the combination of several parts."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from bench.benchmark import all_exist
from loadgen.result import RESULT_FILE, GeneratorResult, lateness_percentile_us

RESULT = GeneratorResult(
    scheduled=10, produced=10, acknowledged=10, failed=0, invalid_orders=0, interrupted=False, started_us=1, ended_us=2,
    lateness_p50_us=1, lateness_p99_us=2, lateness_max_us=3, lateness_limit_us=25_000, valid=True, cpu_s=0.5,
)  # fmt: skip


def test_percentiles_are_nearest_rank() -> None:
    lateness_us = np.array([40, 10, 30, 20])
    assert [lateness_percentile_us(lateness_us, p) for p in (0.25, 0.5, 0.51, 0.99, 1.0)] == [10, 20, 30, 40, 40]
    assert lateness_percentile_us(lateness_us[:0], 0.5) is None


def test_the_results_of_all_parts_are_combined(tmp_path: Path) -> None:
    worse = msgspec.structs.replace(
        RESULT, lateness_p99_us=26_000, valid=False, acknowledged=9, failed=1, started_us=None, first_error="full"
    )
    for number, result in enumerate((RESULT, worse), start=1):
        assert not all_exist(tmp_path, RESULT_FILE, 2)
        result.save(tmp_path, number, 2)
    whole = GeneratorResult.load(tmp_path, 2)
    assert (whole.scheduled, whole.acknowledged, whole.failed, whole.parts) == (20, 19, 1, 2)
    assert (whole.valid, whole.complete, whole.first_error) == (False, False, "full")
    assert (whole.lateness_p99_us, whole.started_us, whole.cpu_s) == (26_000, 1, 1.0)
    with pytest.raises(OSError, match=r"generator-3.json"):
        GeneratorResult.load(tmp_path, 3)
