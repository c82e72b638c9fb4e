"""`tailpack lesson` and `dev league`: list lessons, open one, check an answer, and rank the policies of a class."""

import faulthandler
import os
import shutil
import signal
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Never

import typer
from msgspec.structs import astuple, replace
from rich.console import Console
from rich.table import Table

from bench.jobs import FAILED, Job, Row, run, simulate_job
from bench.matrix import Contender
from tailpack.cli.options import AsJson, Processes, print_json
from tailpack.cli.progress import progress
from tailpack.errors import require

OURS: Final = ("linear", "keda-hpa", "tail-aware")
SHARE: Final = 0.999
MAX_DECISION_S: Final = 0.1
IMPORT_S: Final = 20.0
"""Processor time that the import of a policy may take, in seconds."""
CLOCK_S: Final = 30.0
"""Time by the clock that a policy may take in addition to twice its processor time, in seconds."""
SIMULATOR_S: Final = 60.0
"""Processor time that a scenario may take in addition to its decisions, in seconds."""
MAX_COUNT: Final = 12
FIGURES: Final = {
    "replica_minutes": "{:.1f}", "over_fixed": "{:+.0%}", "moved_partitions": "{:.0f}", "decision_s": "{:.4f} s",
}  # fmt: skip
Number = Annotated[str, typer.Argument(metavar="N", help="Number of a lesson.")]


def _checker() -> Any:
    from tailpack.lab.course import LESSONS, load  # noqa: PLC0415  compiled code only where it is needed

    return load(LESSONS / "checker.py")


def list_lessons(as_json: AsJson = False) -> None:
    """List the lessons, with minutes."""
    known = _checker().exercises()
    if as_json:
        print_json([{"lesson": number, "title": one.title, "minutes": one.minutes} for number, one in known.items()])
        return
    table = Table("lesson", "minutes", "title", box=None)
    for number, one in known.items():
        table.add_row(number, str(one.minutes), one.title)
    Console().print(table)


def open_lesson(number: Number) -> None:
    """Copy a lesson into this folder, unless it is there, and edit it in a browser."""
    name = f"lesson_{_checker().number_of(number)}.py"
    require("marimo")
    if not Path(name).exists():
        shutil.copyfile(Path(_checker().__file__).with_name(name), name)
    os.execv(sys.executable, [sys.executable, "-m", "marimo", "edit", name])  # noqa: S606  Ctrl-C is then marimo's alone


def check_lesson(
    number: Number,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Your answer (Python).")],
    *,
    as_json: AsJson = False,
) -> None:
    """Check an answer in a process of its own; status 1: wrong. TAILPACK_LESSON_SEED draws hidden cases."""
    verdict = _checker().check(number, file)
    if as_json:
        print_json(verdict)
    else:
        typer.echo(str(verdict))
    if not verdict.passed:
        raise typer.Exit(1)


def league(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Python files, each with a policy.")],
    *,
    seed: Annotated[str, typer.Option(help="Secret from which the scenarios are drawn.")],
    scenarios: Annotated[int, typer.Option(min=1, help="Number of scenarios.")] = 20,
    processes: Processes = 0,
    as_json: AsJson = False,
) -> None:
    """Rank policies by the random scenarios that they keep in time, among those that a fixed count keeps."""
    from bench.random_scenarios import random_case  # noqa: PLC0415  numpy only where it is needed
    from report.measures import bootstrap_interval  # noqa: PLC0415

    entries = {str(file.absolute()): file for file in files}
    given = Counter(file.name for file in entries.values())
    shown = {name: file.name if given[file.name] == 1 else str(file) for name, file in entries.items()}
    names = [*entries, *OURS]
    plans: list[dict[str, Job]] = []
    for number in Random(seed).sample(range(10_000, 10**9), scenarios):
        case = random_case(number)
        fixed = [f"static-{count}" for count in range(1, min(MAX_COUNT, case.set["partitions"]) + 1)]
        job = case.jobs(Contender(policy="static"), 1)[0][0]  # only workers import the files, which may fail
        plans.append({name: replace(job, policy=name) for name in [*names, *fixed]})
    jobs = [job for plan in plans for job in plan.values()]
    with TemporaryDirectory() as folder, progress("league") as update:
        rows = run(jobs, Path(folder), processes=processes, announce=update, work=play)
    done: dict[str, list[Row]] = {name: [] for name in names}
    for plan in plans:
        fixed_rows = [rows[job] for name, job in plan.items() if name.startswith("static-")]
        if costs := [row["replica_minutes"] for row in fixed_rows if row.get("in_sla", 0) >= SHARE]:
            for name in names:
                row = rows[plan[name]]
                over = {} if FAILED in row else {"over_fixed": row["replica_minutes"] / min(costs) - 1}
                done[name].append(row | over)
    ranking = []
    for name, some in done.items():
        met = sum(row.get("in_sla", 0) >= SHARE for row in some)
        values = {key: [row[key] for row in some if key in row] for key in FIGURES}
        means = {key: bootstrap_interval(known) if known else None for key, known in values.items()}
        errors = [row[FAILED] for row in some if FAILED in row]
        ranking.append({"policy": shown.get(name, name), "met": met, "of": len(some), "errors": errors, **means})
    ranking.sort(key=lambda one: -one["met"])
    if as_json:
        print_json(ranking)
        return
    table = Table("policy", "met", "failed", *FIGURES, box=None)
    for one in ranking:
        cells = [
            f"{text} ({text} to {text})".format(*astuple(one[key])) if one[key] else "–"
            for key, text in FIGURES.items()
        ]
        table.add_row(one["policy"], f"{one['met']} of {one['of']}", str(len(one["errors"])), *cells)
    Console().print(table)
    for one in ranking:
        for why in dict.fromkeys(one["errors"]):
            sys.stderr.write(f"{one['policy']}: {why}\n")


def play(job: Job) -> Row:
    """Simulate a job. Raises ValueError for a policy whose import or decisions take too long, or never end."""
    from autoscaler.policies.registry import policy_factory  # noqa: PLC0415  compiled code only where it is needed

    with _deadline(IMPORT_S, f"the import takes more than {IMPORT_S:g} s"):
        policy_factory(job.policy)
    scenario = job.read_scenario()
    ticks = 1 + scenario.duration_s / scenario.autoscaler.decision_interval_s
    too_slow = f"a decision takes more than {MAX_DECISION_S * 1e3:.0f} ms"
    with _deadline(SIMULATOR_S + ticks * MAX_DECISION_S, too_slow):
        row = simulate_job(job)
    if row["policy_s"] / ticks > MAX_DECISION_S:
        raise ValueError(too_slow)
    return row | {"decision_s": row["policy_s"] / ticks}


@contextmanager
def _deadline(cpu_s: float, problem: str) -> Iterator[None]:
    """Raise ValueError after `cpu_s` seconds of processor time. End this process if the code goes on nevertheless.

    It goes on if it sleeps, catches every exception, or never returns from a C function.
    """

    def stop(*_: Any) -> Never:
        raise ValueError(problem)

    with Path(os.devnull).open("w") as nowhere:
        signal.signal(signal.SIGVTALRM, stop)
        signal.setitimer(signal.ITIMER_VIRTUAL, cpu_s)
        faulthandler.dump_traceback_later(CLOCK_S + 2 * cpu_s, exit=True, file=nowhere)
        try:
            yield
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            faulthandler.cancel_dump_traceback_later()
