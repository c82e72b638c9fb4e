"""`tailpack bench handover`, `failover` and the experiments beside them: what a change of owner costs."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from bench.handover.outcome import Outcome

app = typer.Typer()

AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output; everything else on error.")]
Into = Annotated[
    Path | None, typer.Option("--into", help="Folder that keeps the row; a run that does not count is not kept.")
]
Planned = Annotated[str, typer.Option("--runtime", help="incremental or eager.")]
Heartbeat = Annotated[float, typer.Option("--heartbeat", min=0.05, max=60, help="Heartbeat of the members, s.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer steps: ends within 50 s, start of Kafka included.")]
Seed = Annotated[int, typer.Option(help="Decides what moves, and what the load says.")]
ReplicaCount = Annotated[int, typer.Option("--replicas", min=2, max=64)]
PartitionCount = Annotated[int, typer.Option("--partitions", min=1, max=2000)]
Rate = Annotated[float, typer.Option("--rate", min=1, max=5000, help="Events/s; 5 ms of work each.")]


@app.command()
def handover(
    *,
    runtime: Annotated[
        str, typer.Option(help="incremental, eager, cooperative-sticky, kip848, share or faust.")
    ] = "incremental",
    heartbeat: Heartbeat = 3.0,
    handovers: Annotated[int | None, typer.Option(min=1, help="How many; 200 in mixed steps, quick 30.")] = None,
    steps: Annotated[str, typer.Option(help="mixed, random, storm or slow-event.")] = "mixed",
    quick: Quick = False,
    replicas: ReplicaCount = 3,
    partitions: PartitionCount = 6,
    rate: Rate = 150.0,
    seed: Seed = 1,
    as_json: AsJson = False,
    into: Into = None,
) -> None:
    """Move partitions between live replicas under load; judge what that cost them, and all others.

    Exit status 1 when the run does not count: the generator was late, or a step did not come to its end.
    """
    from tailpack.labs import handover as lab  # noqa: PLC0415  numpy and Kafka's client only where they are needed
    from tailpack.labs import timings  # noqa: PLC0415
    from tailpack.labs.lab import Setup  # noqa: PLC0415
    from tailpack.labs.runtimes import runtime as known  # noqa: PLC0415
    from tailpack.labs.shown import show_handover  # noqa: PLC0415

    chosen = lab.Steps.named(steps)
    setup = Setup(
        runtime=known(runtime),
        heartbeat_s=heartbeat,
        replicas=replicas,
        partitions=partitions,
        rate=rate,
        seed=seed,
        environ={"TAILPACK_SLOW_EVENT_S": "1"} if chosen is lab.Steps.SLOW_EVENT else {},
    )
    course = lab.Course(
        setup=setup,
        handovers=handovers or (lab.QUICKLY if quick else lab.ENOUGH)[chosen],
        steps=chosen,
        quick=quick,
        began_s=time.monotonic(),
    )
    with _progress(f"handovers, {runtime}", course.handovers) as announce:
        result = lab.run(course, announce)
    if into and result.valid and (runtime, course.steps) == ("incremental", lab.Steps.RANDOM):
        timings.keep(course.rounds, into)
    _finish(result, partial(show_handover, result), as_json=as_json, into=into)


@app.command()
def failover(
    *,
    runtime: Planned = "incremental",
    heartbeat: Heartbeat = 3.0,
    quick: Quick = False,
    replicas: ReplicaCount = 3,
    partitions: PartitionCount = 6,
    rate: Rate = 150.0,
    seed: Seed = 1,
    as_json: AsJson = False,
    into: Into = None,
) -> None:
    """Kill replicas, known and unknown to whoever plans, and stop some in order; judge what that cost.

    Exit status 1 when the run does not count: the generator was late, or a step did not come to its end.
    """
    from tailpack.labs import failover as lab  # noqa: PLC0415
    from tailpack.labs.lab import Setup  # noqa: PLC0415
    from tailpack.labs.runtimes import planned  # noqa: PLC0415
    from tailpack.labs.shown import show_failover  # noqa: PLC0415

    setup = Setup(
        runtime=planned(runtime), heartbeat_s=heartbeat, replicas=replicas, partitions=partitions, rate=rate, seed=seed
    )
    counts = {"known": 3, "sigterms": 2, "unknown": 1} if quick else {"known": 20, "sigterms": 20, "unknown": 3}
    course = lab.Course(setup=setup, **counts, quick=quick, began_s=time.monotonic())
    with _progress("ends of replicas", course.steps) as announce:
        result = lab.run(course, announce)
    _finish(result, partial(show_failover, result), as_json=as_json, into=into)


@app.command()
def scale(
    *,
    runtime: Planned = "incremental",
    heartbeat: Heartbeat = 3.0,
    replicas: ReplicaCount = 24,
    partitions: PartitionCount = 200,
    rate: Rate = 100.0,
    moved: Annotated[int, typer.Option(min=1, help="Partitions that each plan moves.")] = 50,
    plans: Annotated[int, typer.Option(min=1, help="How many plans.")] = 10,
    seed: Seed = 1,
    as_json: AsJson = False,
    into: Into = None,
) -> None:
    """Let a large group carry out plans that move many partitions at once; time each until the last has arrived."""
    from tailpack.labs import scale as lab  # noqa: PLC0415
    from tailpack.labs.lab import Setup  # noqa: PLC0415
    from tailpack.labs.runtimes import planned  # noqa: PLC0415
    from tailpack.labs.shown import show_scale  # noqa: PLC0415

    if moved > partitions:
        raise typer.BadParameter(f"--moved {moved} is more than --partitions {partitions}")
    setup = Setup(
        runtime=planned(runtime), heartbeat_s=heartbeat, replicas=replicas, partitions=partitions, rate=rate, seed=seed
    )
    course = lab.Course(setup=setup, plans=plans, moved=moved, began_s=time.monotonic())
    with _progress(f"plans that move {moved} partitions", plans) as announce:
        result = lab.run(course, announce)
    _finish(result, partial(show_scale, result), as_json=as_json, into=into)


@app.command()
def growth(
    *,
    delivery: Annotated[str, typer.Option(help="incremental or eager.")] = "incremental",
    heartbeat: Heartbeat = 3.0,
    replicas: ReplicaCount = 3,
    partitions: Annotated[int, typer.Option(min=2, max=2000, help="How far the topic grows.")] = 900,
    step: Annotated[int, typer.Option(min=1, help="Partitions that come at a time; so many are there before.")] = 10,
    rate: Rate = 150.0,
    seed: Seed = 1,
    as_json: AsJson = False,
    into: Into = None,
) -> None:
    """Grow a topic step by step under load, then give one replica all of it; time each until the group is stable."""
    from tailpack.labs import growth as lab  # noqa: PLC0415
    from tailpack.labs.lab import Setup  # noqa: PLC0415
    from tailpack.labs.runtimes import planned  # noqa: PLC0415
    from tailpack.labs.shown import show_growth  # noqa: PLC0415

    setup = Setup(
        runtime=planned(delivery), heartbeat_s=heartbeat, replicas=replicas, partitions=step, rate=rate, seed=seed
    )
    course = lab.Course(setup=setup, partitions=partitions, step=step, began_s=time.monotonic())
    with _progress("partitions", partitions) as announce:
        result = lab.run(course, announce)
    _finish(result, partial(show_growth, result), as_json=as_json, into=into)


@app.command()
def bounce(
    *,
    runtime: Planned = "incremental",
    heartbeat: Heartbeat = 3.0,
    rounds: Annotated[int, typer.Option(min=1, help="How often each place in the group is refilled.")] = 3,
    target: Annotated[float, typer.Option(min=0.001, help="W: an event with a latency above it is late, s.")] = 0.5,
    replicas: ReplicaCount = 3,
    partitions: PartitionCount = 6,
    rate: Rate = 150.0,
    seed: Seed = 1,
    as_json: AsJson = False,
    into: Into = None,
) -> None:
    """Stop every replica under load and start another in its place, one by one; count the late events."""
    from tailpack.labs import bounce as lab  # noqa: PLC0415
    from tailpack.labs.lab import Setup  # noqa: PLC0415
    from tailpack.labs.runtimes import planned  # noqa: PLC0415
    from tailpack.labs.shown import show_bounce  # noqa: PLC0415

    setup = Setup(
        runtime=planned(runtime), heartbeat_s=heartbeat, replicas=replicas, partitions=partitions, rate=rate, seed=seed
    )
    course = lab.Course(setup=setup, rounds=rounds, latency_target_s=target, began_s=time.monotonic())
    with _progress("replicas replaced", course.bounces) as announce:
        result = lab.run(course, announce)
    _finish(result, partial(show_bounce, result), as_json=as_json, into=into)


@contextmanager
def _progress(what: str, total: int) -> Iterator[Callable[[str, int], None]]:
    """Show on standard error how far it is; yield what to tell (words, number done)."""
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TextColumn("{task.fields[said]}"), console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(what, total=total, said="")
        yield lambda said, done: shown.update(task, completed=min(done, total), said=said)


def _finish(result: "Outcome", show: Callable[[Console], None], *, as_json: bool, into: Path | None) -> None:
    """Keep and print the result; exit status 1 when it does not count, 130 after Ctrl-C. Kept is only what counts."""
    from tailpack.cli.bench import origin  # noqa: PLC0415  which registers these commands
    from tailpack.labs.keep import keep  # noqa: PLC0415

    if into and result.valid and not result.interrupted:
        keep(result, origin(), into)
    if as_json:
        sys.stdout.write(result.to_json().decode() + "\n")
    else:
        show(Console())
    if result.problem:
        Console(stderr=True).print(f"tailpack: {result.problem}", highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(130 if result.interrupted else 0 if result.valid else 1)
