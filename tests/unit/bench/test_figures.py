"""Figures survive the file in which they are committed, and say what the run said."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from example_report import example

from bench import results
from bench.results import (
    BounceRow,
    ComparisonRow,
    DeliveryRow,
    FailoverRow,
    GrowthRow,
    HandoverRow,
    KafkaReportRow,
    LiveRow,
    Origin,
    ProcessRow,
    ScaleRow,
    ServiceRateRow,
    SimulatorRow,
    SparkRow,
    StartupRow,
    SweepRow,
    TargetRow,
    load,
    save,
)
from studies.packing.claims import PackingRow
from studies.packing_speed import PackingSpeedFigures
from studies.paper.claim import PaperRow
from tailpack import measured_runs, provenance

ORIGIN = Origin(command="tailpack bench all", commit="0123abc", machine="2 cores", measured_on="2026-01-05")
ROWS: dict[type[msgspec.Struct], Any] = {
    ServiceRateRow: ServiceRateRow(
        service_time_s=0.005, events=4000, service_rate=198.2, share_of_ideal=0.991, cpu_per_event_s=0.0004,
        peak_mib=30.5, origin=ORIGIN,
    ),
    ProcessRow: ProcessRow(rate=150, topology="pipeline", name="order", cores=0.21, peak_mib=59.9, origin=ORIGIN),
    StartupRow: StartupRow(step="Kafka answers", at_s=4.5, origin=ORIGIN),
    KafkaReportRow: KafkaReportRow(
        events=1_000_000, wall_s=61.3, events_per_s=16_313.2, peak_mib=1_402.0, origin=ORIGIN
    ),
    SparkRow: SparkRow(
        events=10_000_000, wall_s=25.0, peak_rss_gib=2.5, events_per_s=400_000.0, in_sla=0.99,
        late_by_cause={"burst": 90_000, "handover": 10_000}, origin=ORIGIN,
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _measured_here(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(provenance, "origin", lambda: ORIGIN)


@pytest.mark.parametrize("kind", ROWS, ids=lambda kind: kind.__name__)
def test_rows_come_back_as_they_were_saved(kind: type[msgspec.Struct], tmp_path: Path) -> None:
    folder = tmp_path / "reference"
    assert load(kind, folder) == [], "nothing was measured yet"
    save([ROWS[kind], ROWS[kind]], kind, folder)
    assert load(kind, folder) == [ROWS[kind], ROWS[kind]]
    save([ROWS[kind]], kind, folder)
    assert load(kind, folder) == [ROWS[kind]]


EXPERIMENTS = (HandoverRow, FailoverRow, ScaleRow, GrowthRow, BounceRow)
SIMULATED = (ComparisonRow, PackingRow, PackingSpeedFigures, PaperRow, SimulatorRow, SweepRow, TargetRow)
KINDS = (*ROWS, LiveRow, DeliveryRow, *EXPERIMENTS, *SIMULATED)


def test_every_kind_of_row_has_a_file_of_its_own() -> None:
    assert set(results.FILES) == {kind.__name__ for kind in KINDS}
    assert len(set(results.FILES.values())) == len(results.FILES)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_the_committed_figures_can_be_read_and_say_where_they_come_from(kind: type[msgspec.Struct]) -> None:
    for row in load(kind):
        origin = row.origin  # type: ignore[attr-defined]
        assert origin.command.startswith("tailpack ")
        assert all((origin.commit, origin.machine, origin.measured_on))


def test_a_live_row_says_what_the_result_says(tmp_path: Path) -> None:
    result = example()
    row = measured_runs.live_row(result)
    assert row.origin == ORIGIN
    assert row.lateness_p99_s == result.lateness.p99_s
    for name in set(msgspec.structs.asdict(row)) - {"origin", "lateness_p99_s", "simulated"}:
        assert getattr(row, name) == getattr(result, name)
    save([row], LiveRow, tmp_path)
    assert load(LiveRow, tmp_path) == [row]
