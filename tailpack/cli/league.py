"""`tailpack dev league`: rank policies of a class on random scenarios that are drawn from a secret."""

import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Final, Never

import typer

from bench.matrix import FAILED, Contender, Job, Row, run, simulate_job
from report.measures import bootstrap_interval
from report.wording import plural
from tailpack.cli.options import AsJson, Processes, check_policy, print_json
from tailpack.cli.progress import matrix_progress

OURS: Final = ("linear", "keda-hpa", "tail-aware")
SHARE: Final = 0.999
MAX_DECISION_S: Final = 0.1
SIMULATOR_S: Final = 120
"""Processor time that a scenario may take in addition to its decisions, in seconds."""
MAX_COUNT: Final = 12
FORMATS: Final = {
    "replica_minutes": (1, ".1f"),
    "over_fixed": (100, "+.0f"),
    "moved": (1, ".0f"),
    "decision_s": (1e3, ".1f"),
}
HEADER: Final = ("policy", "met", "failed", "replica-minutes", "over the best fixed count", "moved", "ms per decision")


def league(
    files: Annotated[list[Path], typer.Argument(metavar="FILE…", help="Python files, each with a policy.")],
    *,
    seed: Annotated[str, typer.Option(help="Secret from which the scenarios are drawn.")],
    scenarios: Annotated[int, typer.Option(min=1, help="Number of scenarios.")] = 20,
    processes: Processes = 0,
    as_json: AsJson = False,
) -> None:
    """Rank policies by the random scenarios that they keep in time, among those that a fixed count keeps."""
    from bench.matrix_table import interval, table  # noqa: PLC0415  numpy only where it is needed
    from bench.random_scenarios import random_case  # noqa: PLC0415

    names = [*(check_policy(str(file.absolute())) for file in files), *OURS]
    plans: list[dict[str, Job]] = []
    for number in Random(seed).sample(range(10_000, 10**9), scenarios):
        case = random_case(number)
        fixed = [f"static-{count}" for count in range(1, min(MAX_COUNT, case.set["partitions"]) + 1)]
        plans.append({name: case.jobs(Contender(policy=name), 1)[0][0] for name in [*names, *fixed]})
    jobs = [job for plan in plans for job in plan.values()]
    with TemporaryDirectory() as folder, matrix_progress("league", Path(folder)) as announce:
        rows = run(jobs, Path(folder), processes=processes, announce=announce, work=play)
    results = [{name: rows[job] for name, job in plan.items()} for plan in plans]
    best = [min(_costs_of_fixed(one), default=0.0) for one in results]
    ranking = []
    for name in names:
        pairs = [(one[name], least) for one, least in zip(results, best, strict=True) if least]
        done = [(row, least) for row, least in pairs if FAILED not in row]
        figures = {
            "replica_minutes": [row["replica_minutes"] for row, _ in done],
            "over_fixed": [row["replica_minutes"] / least - 1 for row, least in done],
            "moved": [row["moved_partitions"] for row, _ in done],
            "decision_s": [row["decision_s"] for row, _ in done],
        }
        met = sum(row["in_sla"] >= SHARE for row, _ in done)
        errors = sorted({row[FAILED] for row, _ in pairs if FAILED in row})
        means = {key: bootstrap_interval(values) if values else None for key, values in figures.items()}
        ranking.append({"policy": Path(name).name, "met": met, "of": len(pairs), "errors": errors, **means})
    ranking.sort(key=lambda one: -one["met"])
    if as_json:
        print_json(ranking)
        return
    typer.echo(f"{plural(scenarios, 'scenario')}; intervals: 95 %; over the best fixed count: %\n")
    cells = [[interval(one[key], times, form) for key, (times, form) in FORMATS.items()] for one in ranking]
    heads = [(one["policy"], f"{one['met']} of {one['of']}", str(len(one["errors"]))) for one in ranking]
    typer.echo(table(HEADER, [[*head, *some] for head, some in zip(heads, cells, strict=True)]))
    for one in ranking:
        for why in one["errors"]:
            sys.stderr.write(f"{one['policy']}: {why}\n")


def _costs_of_fixed(rows: Mapping[str, Row]) -> list[float]:
    fixed = [row for name, row in rows.items() if name.startswith("static-")]
    return [row["replica_minutes"] for row in fixed if row.get("in_sla", 0) >= SHARE]


def play(job: Job) -> Row:
    """Simulate a job. Raises ValueError if a decision takes more than 100 ms on average, also if it never ends."""
    scenario = job.read_scenario()
    ticks = 1 + scenario.duration_s / scenario.autoscaler.decision_interval_s
    before = signal.signal(signal.SIGVTALRM, _too_slow)
    signal.setitimer(signal.ITIMER_VIRTUAL, SIMULATOR_S + ticks * MAX_DECISION_S)
    try:
        row = simulate_job(job)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if row["policy_s"] / ticks > MAX_DECISION_S:
        _too_slow()
    return row | {"decision_s": row["policy_s"] / ticks}


def _too_slow(*_: Any) -> Never:
    raise ValueError(f"a decision takes more than {MAX_DECISION_S * 1e3:.0f} ms")
