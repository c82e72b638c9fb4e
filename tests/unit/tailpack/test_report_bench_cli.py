"""`tailpack bench report` as a script or a person meets it; the processes that answer are replaced by answers."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from bench import figures
from bench.figures import Alternative, Origin, SparkRow
from bench.report_speed import made_up
from bench.report_speed.answer import Answer, Figures, Way
from report.run_info import RUN_FILE
from tailpack import report_speed
from tailpack.cli import bench as bench_cli
from tailpack.cli import bench_report as report_bench_cli
from tailpack.errors import TailpackError

ORIGIN = Origin(command="tailpack bench report", commit="0123abc", machine="2 cores", measured_on="2026-01-05")
EVENTS = 1_000
FIGURES = Figures(
    events=EVENTS,
    in_sla=990,
    lost=0,
    refused=0,
    latency_us=(1, 2, 3, 4, 5, 6, 7),
    seconds=((0, EVENTS, 1, 2, 3),),
    done=((0, EVENTS),),
)
CAUSES = {"burst": 7, "handover": 3}


class Processes:
    """Stands in for `job`: writes an answer for each way that is asked for."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.figures: dict[str, Figures] = {}
        self.instead: dict[str, Callable[[], None]] = {}

    def __call__(self, what: str, module: str, words: list[str], *_: object, **__: object) -> None:
        how, folder, answer = words
        assert module == "bench.report_speed.once"
        assert (Path(folder) / RUN_FILE).exists()
        self.asked.append(how)
        self.instead.get(how, lambda: None)()
        found = None if how == Way.WHOLE else self.figures.get(how, figures_of(int(Path(folder).name.split("-")[0])))
        causes = CAUSES if how in {Way.SPARK, Way.WHOLE} else {}
        Answer(figures=found, causes=causes, peak_rss_bytes=3 * 2**29, version="1.2").save(Path(answer))


def figures_of(events: int) -> Figures:
    return msgspec.structs.replace(FIGURES, events=events, in_sla=events)


@pytest.fixture(autouse=True)
def processes(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Processes:
    """No process is started, and no run is made."""
    stand_in = Processes()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(report_speed, "job", stand_in)
    clock = itertools.count(10.0, 4.0)
    monkeypatch.setattr(report_speed, "time", SimpleNamespace(monotonic=lambda: next(clock)))
    monkeypatch.setattr(bench_cli, "origin", lambda: ORIGIN)
    monkeypatch.setattr(made_up, "make_up", lambda folder, *_: (folder / RUN_FILE).write_text("{}"))
    return stand_in


def run(*words: str) -> Result:
    return CliRunner().invoke(report_bench_cli.app, list(words), catch_exceptions=False)


def measured(*words: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--events", str(EVENTS), "--json", *words).stdout)
    return found


def test_without_more_words_spark_answers_once(processes: Processes) -> None:
    found = measured()
    assert processes.asked == ["spark"]
    assert found["events"] == EVENTS
    assert (found["wall_s"], found["events_per_s"]) == (4.0, 250.0)
    assert found["peak_rss_gib"] == 1.5
    assert found["late_by_cause"] == CAUSES
    assert not {"whole_wall_s", "against", "wall_without_causes_s", "growth"} & set(found), "nobody asked for them"


def test_the_others_answer_in_the_same_run_and_spark_once_more_as_they_do(processes: Processes) -> None:
    found = measured("--against", "pandas,duckdb", "--whole", "--rounds", "2")
    assert processes.asked == 2 * ["spark", "spark-without-causes", "pandas", "duckdb", "spark-whole"]
    assert set(found["against"]) == {"pandas", "duckdb"}
    assert set(found["against"]["pandas"]) == {"engine", "version", "wall_s", "peak_rss_gib", "events_per_s"}
    assert found["whole_peak_rss_gib"] == 1.5
    assert {"whole_wall_s", "wall_without_causes_s"} <= set(found)


def test_one_different_digit_fails_the_command_and_nothing_is_kept(processes: Processes, tmp_path: Path) -> None:
    processes.figures["duckdb"] = msgspec.structs.replace(figures_of(EVENTS), latency_us=(1, 2, 3, 4, 5, 6, 8))
    with pytest.raises(
        TailpackError, match=r"^duckdb and spark answer differently \(latency_us\); one of them is wrong"
    ):
        measured("--against", "duckdb", "--into", str(tmp_path))
    assert figures.load(SparkRow, tmp_path) == []


def test_an_answer_about_fewer_events_is_no_measurement(processes: Processes) -> None:
    processes.figures["spark"] = figures_of(999)
    with pytest.raises(TailpackError, match="spark saw 999 of 1,000 events"):
        measured()


def test_what_was_measured_before_something_failed_is_kept(processes: Processes, tmp_path: Path) -> None:
    processes.instead["pandas"] = raising(TailpackError("the answer of pandas failed: not enough memory"))
    with pytest.raises(TailpackError, match="not enough memory"):
        run("--sizes", "10,1000", "--against", "pandas", "--into", str(tmp_path))
    assert [(row.events, row.against) for row in figures.load(SparkRow, tmp_path)] == [(10, ())]


def test_what_was_measured_before_ctrl_c_is_kept_and_shown(processes: Processes, tmp_path: Path) -> None:
    processes.instead["pandas"] = raising(KeyboardInterrupt())
    ended = run("--sizes", "10,1000", "--against", "pandas", "--into", str(tmp_path), "--json")
    assert ended.exit_code == 130
    assert json.loads(ended.stdout)["wall_without_causes_s"] == 4.0
    assert [(row.events, row.against) for row in figures.load(SparkRow, tmp_path)] == [(10, ())]


def raising(error: BaseException) -> Callable[[], None]:
    def act() -> None:
        raise error

    return act


def test_growth_is_a_row_for_each_size_beside_those_of_other_sizes(tmp_path: Path) -> None:
    run("--events", "77", "--into", str(tmp_path))
    found = json.loads(run("--sizes", "1_000,10", "--json", "--into", str(tmp_path)).stdout)
    assert [row["events"] for row in found["growth"]] == [1_000, 10]
    assert [row.events for row in figures.load(SparkRow, tmp_path)] == [10, 77, 1_000]


def test_a_run_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[int] = []

    def make_up(folder: Path, events: int, *_: object) -> None:
        made.append(events)
        (folder / RUN_FILE).write_text("{}")

    monkeypatch.setattr(made_up, "make_up", make_up)
    first, again = report_speed.ensure_input(5), report_speed.ensure_input(5)
    assert first == again
    assert report_speed.ensure_input(6) != first
    assert made == [5, 6]


def test_a_run_that_other_code_made_gives_way(monkeypatch: pytest.MonkeyPatch) -> None:
    old, other_size = report_speed.ensure_input(5), report_speed.ensure_input(6)
    monkeypatch.setattr(report_speed, "MADE_BY", ("made_up",))
    new = report_speed.ensure_input(5)
    assert sorted(place.name for place in new.parent.iterdir()) == sorted([new.name, other_size.name])
    assert old != new


def test_a_run_that_was_not_made_to_its_end_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def make_up(folder: Path, *_: object) -> None:
        (folder / "half").touch()
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(made_up, "make_up", make_up)
    with pytest.raises(TailpackError, match="cannot be written"):
        report_speed.ensure_input(5)
    assert list(report_speed.input_folder(5).parent.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--against", "polars"], "--against polars: is unknown; known are pandas, duckdb"),
        (["--sizes", "10,many"], "--sizes 10,many: must be whole numbers"),
        (["--sizes", "0"], "--sizes 0: a run has at least one event"),
    ],
)
def test_a_mistake_is_one_line_and_nothing_starts(processes: Processes, words: list[str], said: str) -> None:
    with pytest.raises(TailpackError, match=said):
        run(*words)
    assert processes.asked == []


def test_what_is_not_installed_is_said_with_the_way_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report_speed.importlib.util, "find_spec", lambda name: None if name == "duckdb" else object())
    with pytest.raises(TailpackError, match=r"^duckdb: not installed; pip install duckdb$"):
        run("--against", "pandas,duckdb")


def test_on_the_terminal_each_way_is_a_line() -> None:
    row = SparkRow(
        events=1_000_000,
        wall_s=20.04,
        peak_rss_gib=1.5,
        events_per_s=49_900.0,
        in_sla=0.99,
        late_by_cause=CAUSES,
        wall_without_causes_s=12.0,
        whole_wall_s=60.0,
        whole_peak_rss_gib=2.0,
        against=(Alternative(engine="duckdb", version="1.2", wall_s=2.0, peak_rss_gib=0.5, events_per_s=500_000.0),),
        origin=ORIGIN,
    )
    assert report_bench_cli.table_of([row, row]).row_count == 8
