"""A matrix computes each of its jobs once, and a failed job does not end the others."""

import multiprocessing
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import comparison_work
import psutil
import pytest

from bench.jobs import FAILED, FILE, ROOT, ROW_SOURCES, Job, run, run_jobs, sorted_changes
from bench.matrix import Axis, Case, Contender, Matrix, matrix_names, random_parts, read_axes, read_matrix
from bench.random_scenarios import random_case
from bench.scenario import Scenario, load_scenario
from bench.simulation.run import run_scenario
from bench.simulation.sent_events import build_events
from contracts.validation import InvalidSettingsError

JOBS = [Job(scenario="w1", policy="linear", seed=seed) for seed in range(1, 8)]
LINEAR = Contender(policy="linear")


def test_a_key_stands_for_scenario_policy_seed_settings_and_files(tmp_path: Path) -> None:
    own = tmp_path / "own.toml"
    own.write_text('[load]\nworkload = "w1"\n')
    jobs = [
        Job(scenario="w1", policy="linear", changes=sorted_changes({"split": "even", "payment.heartbeat_s": 3})),
        Job(scenario="w1", policy="linear", changes=sorted_changes({"split": "even"})),
        Job(scenario="w1", policy="algorithm-2", changes=sorted_changes({"split": "even"})),
        Job(scenario="w1", policy="algorithm-2", seed=2, changes=sorted_changes({"split": "even"})),
        Job(scenario=str(own), policy="linear"),
    ]
    same = Job(scenario="w1", policy="linear", changes=sorted_changes({"payment": {"heartbeat_s": 3}, "split": "even"}))
    assert jobs[0].key() == same.key(), "neither the order nor the way to write a dotted key makes a difference"
    assert len({job.key() for job in jobs}) == len(jobs)


def test_the_version_covers_every_file_from_which_a_row_follows() -> None:
    script = (
        "import sys; from bench.jobs import Job, simulate_job\n"
        "simulate_job(Job(scenario='w1', policy='tail-aware', changes=(('duration_s', 2),)))\n"
        "print(*(m.__file__ for m in sys.modules.values() if getattr(m, '__file__', None)))"
    )
    listed = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    rooms = [ROOT / name for name in ("autoscaler", "bench/simulation", "contracts", "loadgen", "report/measures.py")]
    inside = {path for path in map(Path, listed.stdout.split()) if any(path.is_relative_to(room) for room in rooms)}
    assert len(inside) > 30
    assert inside <= {path for pattern in ROW_SOURCES for path in ROOT.glob(pattern)}


def test_a_matrix_continues_where_it_stopped(tmp_path: Path) -> None:
    announced: list[tuple[int, int, str]] = []
    run([*JOBS[:2], JOBS[0]], tmp_path, processes=1, work=comparison_work.quick)
    assert len((tmp_path / FILE).read_bytes().splitlines()) == 2, "equal jobs are run once"
    record = lambda *progress: announced.append(progress)  # noqa: E731
    third = run(JOBS[:3], tmp_path, processes=1, work=comparison_work.quick, announce=record)
    assert announced == [(2, 3, ""), (3, 3, "w1, linear, seed 3")], "two rows were stored, one was computed"
    assert run(JOBS[:3], tmp_path, processes=1, work=comparison_work.refused) == third


def test_a_job_that_fails_or_ends_its_process_is_a_failed_row_and_the_others_are_run(tmp_path: Path) -> None:
    rows = run(JOBS, tmp_path, processes=2, work=comparison_work.eventful)
    assert [FAILED in rows[job] for job in JOBS] == [False, True, True, True, False, False, False]
    assert rows[JOBS[1]][FAILED] == "ZeroDivisionError: no replica left"
    assert rows[JOBS[2]][FAILED] == "payment.partitions = 0: must be at least 1"
    assert "its process died" in rows[JOBS[3]][FAILED]
    assert not multiprocessing.active_children()
    again = run(JOBS, tmp_path, processes=1, work=comparison_work.quick)
    assert not any(FAILED in row for row in again.values()), "failed jobs are tried again"


def test_a_matrix_that_is_stopped_leaves_no_process_behind() -> None:
    with closing(run_jobs(JOBS, comparison_work.endless, 2)) as found:
        assert next(found) == (JOBS[0], comparison_work.invented_row(JOBS[0]))
        started = [one.pid for one in multiprocessing.active_children()]
        assert len(started) == 2
    assert not multiprocessing.active_children()
    assert not any(psutil.pid_exists(pid) for pid in started if pid)


def scenario_with(changes: dict[str, object]) -> Scenario:
    return load_scenario("w1", {"split": "even", "policy": "linear", **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"spacing": "smooth", "startup_s": 20},
        {"split": "random"},
        {"spacing": "poisson"},
        {"rebalance_protocol": "eager", "heartbeat_s": 3},
        {"startup_s": "gke"},
        {"distribution": "pareto"},
    ],
)
def test_seeds_make_a_difference_exactly_where_something_is_random(changes: dict[str, object]) -> None:
    runs = (
        run_scenario(scenario_with({**changes, "duration_s": 200, "seed": seed}), keep_events=False)[1]
        for seed in (1, 2)
    )
    one, other = ((run.in_sla, run.p50_s, run.max_s, run.replica_minutes, run.moved_partitions) for run in runs)
    assert (one == other) == (not random_parts(scenario_with(changes)))


def test_a_few_seeds_cover_all_phases() -> None:
    jobs, random = Case(scenario="w1", set={"burst_phase_s": "random"}).jobs(LINEAR, 4)
    assert random == ("bursts",)
    offsets_s = [dict(job.changes)["autoscaler.tick_offset_s"] for job in jobs]
    assert [int(4 * offset_s) for offset_s in offsets_s] == [0, 1, 2, 3]
    assert [job.seed for job in Case(scenario="w1", set={"split": "even"}).jobs(LINEAR, 4)[0]] == [1], (
        "nothing is random"
    )


@pytest.mark.parametrize("name", [name for name in matrix_names() if not name.startswith("random")])
def test_each_matrix_can_be_run(name: str) -> None:
    matrix = read_matrix(name)
    for case in matrix.cases_at_points():
        for contender in matrix.contenders_of(case) if case == matrix.cases_at_points()[0] else matrix.contenders()[:1]:
            case.job(contender).read_scenario()


@pytest.mark.parametrize("axis", read_axes().values())
def test_each_axis_can_be_swept(axis: Axis) -> None:
    for _, changes in axis.points():
        Case(scenario="w1", set=changes).job(LINEAR).read_scenario()


def test_a_mistake_in_a_matrix_is_named_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('title = "x"\ncase = [{ scenari = "w1" }]\n')
    with pytest.raises(InvalidSettingsError, match=r"mine.toml: .*scenari.*case"):
        read_matrix(str(path))
    with pytest.raises(InvalidSettingsError, match="did you mean startup"):
        Matrix(title="x", axis="start-up").resolve_axis()


def test_a_random_scenario_follows_from_its_number_and_leaves_something_to_decide() -> None:
    cases = [random_case(number) for number in range(1, 13)]
    assert random_case(5) == cases[4]
    assert len({case.job(LINEAR) for case in cases}) == 12
    for case in cases:
        asked = case.jobs(LINEAR, 1)[0][0].read_scenario()
        busy_s = build_events(asked).table() * asked.payment.service_time_s
        assert busy_s.max() < (min(1, asked.target.latency_target_s) if asked.load.spacing == "burst" else 1)
        assert busy_s.sum(axis=1).max() > 1
