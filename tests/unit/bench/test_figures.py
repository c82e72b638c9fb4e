"""Figures survive the file in which they are committed, and say what the run said."""

from pathlib import Path

import msgspec
import pytest
from example_report import example

from bench.experiments.chain import ChainRow
from bench.experiments.classes import ClassesRow
from bench.experiments.drawn import DrawnWorld
from bench.experiments.fronts import FrontFigures
from bench.experiments.sensitivity import SensitivityFigures
from bench.experiments.sweeps import SweepFigures
from bench.experiments.tuning import TunedFigures
from bench.grouping_live import GroupingLiveRow
from bench.handover.show import FILES, TIMINGS_FILE
from bench.live_chain.pairs import NAME as CHAIN_LIVE
from bench.live_chain.pairs import ChainLiveRow
from bench.results import (
    FOLDER,
    ClusterRow,
    DecisionRow,
    Kept,
    LiveRow,
    LiveScaleRow,
    LoadgenRow,
    Origin,
    PipelineRow,
    ProcessRow,
    ServiceRateRow,
    SparkRow,
    SpeedRow,
    StartupRow,
    keep,
    load,
)
from studies.grouping.claims import GroupingStudy
from studies.packing.claims import Comparison
from studies.paper.statement import PaperFigures
from tailpack import measured_runs

ORIGIN = Origin(command="tailpack bench all", commit="0123abc", machine="2 cores", measured_on="2026-01-05")
KINDS: dict[str, type[msgspec.Struct]] = {
    **{name: kind for kind, name in FILES.items()},
    "live": LiveRow,
    "cluster": ClusterRow,
    "service-rate": ServiceRateRow,
    "processes": ProcessRow,
    "startup": StartupRow,
    "spark": SparkRow,
    "live-scale": LiveScaleRow,
    "loadgen": LoadgenRow,
    "pipeline": PipelineRow,
    "simulator": SpeedRow,
    "decisions": DecisionRow,
    "sweeps": SweepFigures,
    "paper": PaperFigures,
    "packing": Comparison,
    "chain": ChainRow,
    CHAIN_LIVE: ChainLiveRow,
    "classes": ClassesRow,
    "fronts": FrontFigures,
    "fronts-drawn": DrawnWorld,
    "fronts-tuned": TunedFigures,
    "sensitivity": SensitivityFigures,
    "grouping": GroupingStudy,
    "grouping-live": GroupingLiveRow,
}


def startup(step: str, at_s: float) -> StartupRow:
    return StartupRow(step=step, at_s=at_s)


def test_results_come_back_as_they_were_kept(tmp_path: Path) -> None:
    folder, first = tmp_path / "reference", startup("Kafka answers", 4.5)
    assert load("startup", StartupRow, folder) == [], "nothing was measured yet"
    keep("startup", [first, first], ORIGIN, folder)
    assert load("startup", StartupRow, folder) == [Kept(first, ORIGIN)] * 2
    keep("startup", [first], ORIGIN, folder)
    assert load("startup", StartupRow, folder) == [Kept(first, ORIGIN)]


def test_the_answer_to_a_question_takes_the_place_of_the_one_before(tmp_path: Path) -> None:
    for one in (startup("b", 1.0), startup("a", 2.0), startup("b", 3.0)):
        keep("startup", [one], ORIGIN, tmp_path, lambda row: row.step)
    assert [row.result for row in load("startup", StartupRow, tmp_path)] == [startup("a", 2.0), startup("b", 3.0)]


def test_every_committed_file_has_a_kind() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {*KINDS, Path(TIMINGS_FILE).stem}


@pytest.mark.parametrize("name", KINDS)
def test_the_committed_figures_can_be_read_and_say_where_they_come_from(name: str) -> None:
    for row in load(name, KINDS[name]):
        assert row.origin.command.startswith("tailpack ")
        assert " /" not in row.origin.command, "a path of one machine"
        assert all((row.origin.commit, row.origin.machine, row.origin.measured_on))


def test_a_live_row_says_what_the_result_says() -> None:
    result = example()
    row = measured_runs.live_row(result)
    assert row.lateness_p99_s == result.lateness.p99_s
    not_of_it = {"lateness_p99_s", "simulated", "forecast", "load_workers", "settings"}
    for name in set(msgspec.structs.asdict(row)) - not_of_it:
        assert getattr(row, name) == getattr(result, name)
