"""The generator's own account: when is a run valid, when complete."""

from pathlib import Path

import msgspec
import numpy as np
import pytest

from loadgen.result import GeneratorResult, Part, lateness_percentile_us

ACCOUNT = GeneratorResult(
    scheduled=10,
    produced=10,
    acknowledged=10,
    failed=0,
    invalid_orders=0,
    interrupted=False,
    started_us=1,
    ended_us=2,
    lateness_p50_us=1,
    lateness_p99_us=2,
    lateness_max_us=3,
    lateness_limit_us=25_000,
    valid=True,
    cpu_s=0.5,
)


def test_it_survives_its_file(tmp_path: Path) -> None:
    ACCOUNT.save(tmp_path)
    assert GeneratorResult.load(tmp_path) == ACCOUNT
    assert [path.name for path in tmp_path.iterdir()] == ["generator.json"]


def test_complete_means_that_every_scheduled_event_was_acknowledged() -> None:
    assert ACCOUNT.complete
    assert not msgspec.structs.replace(ACCOUNT, acknowledged=9).complete


def test_percentiles_are_nearest_rank() -> None:
    lateness_us = np.array([40, 10, 30, 20])
    assert [lateness_percentile_us(lateness_us, p) for p in (0.25, 0.5, 0.51, 0.99, 1.0)] == [10, 20, 30, 40, 40]
    assert lateness_percentile_us(lateness_us[:0], 0.5) is None


def part(late_us: int = 9, **changes: object) -> Part:
    lateness = np.full(10, late_us, np.int64).tobytes()
    sent = Part(produced=10, acknowledged=10, failed=0, invalid_orders=0, cpu_s=1.0, lateness=lateness)
    return msgspec.structs.replace(sent, **changes)


@pytest.mark.parametrize(
    ("parts", "error", "valid"),
    [
        ([part(), part()], None, True),
        ([part(), part(26_000)], None, False),
        ([part()], None, False),
        ([part(), part(acknowledged=9, failed=1)], None, False),
        ([part(), part(first_error="the disk is full")], None, False),
        ([part(), part()], "load worker 1 of 2 has died", False),
        ([], None, False),
    ],
)
def test_valid_is_a_load_that_was_whole_without_error_and_on_time(
    parts: list[Part], error: str | None, valid: bool
) -> None:
    result = GeneratorResult.of(
        parts, scheduled=20, events=20, latency_target_s=0.5, started_us=1, error=error, workers=2
    )
    assert result.valid is valid
