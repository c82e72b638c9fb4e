"""pandas and DuckDB answer what the report answers, by its definitions: nearest ranks, losses, refusals."""

from pathlib import Path
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from bench.report_speed import by_duckdb, by_pandas
from bench.report_speed.answer import RANKS, SECOND_RANKS, Figures, Question
from report.measures import percentile_us
from report.run_info import RunInfo
from report.spark.measures import PARTS_PER_MILLION

STARTED_US = 1_700_000_000_000_000
ENGINES = pytest.mark.parametrize("engine", [by_pandas, by_duckdb], ids=lambda engine: engine.__name__)


def asked(folder: Path, intended: list[int], done: list[int | None], letters: list[int] | None = None) -> Question:
    """Write events (µs since the start) and ask about them."""
    place = folder / "events.parquet"
    place.mkdir()
    table = {
        "intended_us": pa.array([STARTED_US + at for at in intended], pa.int64()),
        "done_us": pa.array([None if at is None else STARTED_US + at for at in done], pa.int64()),
        "dead_letters": pa.array(letters or [0] * len(intended), pa.int64()),
    }
    half = len(intended) // 2
    for number, part in enumerate((pa.table(table)[:half], pa.table(table)[half:])):
        pq.write_table(part, place / f"part-{number}.parquet")
    run = RunInfo(
        run="r",
        scenario={},
        policy="p",
        seed=1,
        topology="payment-only",
        bootstrap_servers="",
        client_properties="",
        payment_partitions=1,
        latency_target_s=0.5,
        percentile=0.999,
        duration_s=10.0,
        started_us=STARTED_US,
    )
    return Question(folder=folder, run=run, scratch=folder, master="local[2]", jars=())


def test_percentiles_are_those_of_the_report() -> None:
    assert tuple(PARTS_PER_MILLION.values()) == RANKS
    assert tuple(PARTS_PER_MILLION[name] for name in ("p50", "p99", "max")) == SECOND_RANKS


@ENGINES
@pytest.mark.parametrize("count", [1, 2, 999, 1_000, 1_001, 20_000])
def test_percentiles_are_nearest_ranks_over_all_and_by_second(engine: ModuleType, count: int, tmp_path: Path) -> None:
    chance = np.random.default_rng(count)
    intended = np.sort(chance.integers(0, 9_000_000, count))
    latency = chance.integers(0, 1_000_000, count)
    done = intended + latency

    found = engine.answer(asked(tmp_path, intended.tolist(), done.tolist())).figures

    assert found.latency_us == tuple(percentile_us(latency, ppm / 1e6) for ppm in RANKS)
    assert (found.events, found.lost, found.refused) == (count, 0, 0)
    assert found.in_sla == int((latency <= 500_000).sum())
    seconds = intended // 1_000_000
    assert found.seconds == tuple(
        (
            second,
            int((seconds == second).sum()),
            *(percentile_us(latency[seconds == second], p) for p in (0.5, 0.99, 1.0)),
        )
        for second in np.unique(seconds).tolist()
    )
    assert found.done == tuple(
        (int(at), int(n)) for at, n in zip(*np.unique(done // 1_000_000, return_counts=True), strict=True)
    )


@ENGINES
def test_lost_and_refused_events_arrive_and_have_no_latency(engine: ModuleType, tmp_path: Path) -> None:
    intended = [0, 100, 1_000_000, 2_000_000, 2_000_001]
    done = [500_000, 500_101, None, None, 4_000_000]
    question = asked(tmp_path, intended, done, letters=[0, 0, 1, 0, 3])

    assert engine.answer(question).figures == Figures(
        events=4,
        in_sla=1,
        lost=1,
        refused=1,
        latency_us=(500_001, *[1_999_999] * 6),
        seconds=((0, 2, 500_000, 500_001, 500_001), (1, 1, None, None, None), (2, 2, *[1_999_999] * 3)),
        done=((0, 2), (4, 1)),
    )


@ENGINES
def test_a_run_in_which_nothing_was_done_has_no_percentiles(engine: ModuleType, tmp_path: Path) -> None:
    found = engine.answer(asked(tmp_path, [0, 1_000_000], [None, None])).figures

    assert (found.events, found.in_sla, found.lost, found.latency_us, found.done) == (2, 0, 2, (), ())
    assert found.seconds == ((0, 1, None, None, None), (1, 1, None, None, None))
