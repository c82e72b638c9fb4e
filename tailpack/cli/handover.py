"""`tailpack bench handover`, `failover`: what a change of owner costs."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.handover import courses
from bench.handover.courses import Steps
from bench.handover.experiment import Announce
from bench.handover.outcomes import Outcome
from bench.handover.setup import Setup
from bench.handover.show import keep, show
from contracts.connection import Connection
from contracts.delivery import OUR_DELIVERIES, Delivery
from tailpack.cli.options import AsJson, IntoDocs
from tailpack.cli.progress import progress
from tailpack.errors import INTERRUPTED, TailpackError
from tailpack.local.topics import own_kafka
from tailpack.provenance import origin


def _planned(delivery: Delivery) -> Delivery:
    if delivery not in OUR_DELIVERIES:
        raise typer.BadParameter(f"{delivery} takes no plan; use {' or '.join(OUR_DELIVERIES)}")
    return delivery


Planned = Annotated[
    Delivery, typer.Option("--delivery", callback=_planned, metavar="NAME", help=f"{' or '.join(OUR_DELIVERIES)}.")
]
Heartbeat = Annotated[float, typer.Option("--heartbeat", min=0.05, max=60, help="Heartbeat of the members, s.")]
Quick = Annotated[bool, typer.Option("--quick", help="Fewer steps: ends within 50 s, start of Kafka included.")]


def handover(
    *,
    runtime: Annotated[Delivery, typer.Option(metavar="NAME", help=f"{', '.join(Delivery)}.")] = Delivery.INCREMENTAL,
    heartbeat: Heartbeat = 3.0,
    handovers: Annotated[int | None, typer.Option(min=1, help="How many; 200 in mixed steps, quick 30.")] = None,
    steps: Annotated[Steps, typer.Option(metavar="NAME", help=f"{', '.join(Steps)}.")] = Steps.MIXED,
    quick: Quick = False,
    replicas: Annotated[int, typer.Option(min=2, max=64)] = 3,
    partitions: Annotated[int, typer.Option(min=1, max=2000)] = 6,
    rate: Annotated[float, typer.Option(min=1, max=5000, help="Events/s; 5 ms of work each.")] = 150.0,
    seed: Annotated[int, typer.Option(help="Decides what moves, and what the load says.")] = 1,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Move partitions between live replicas under load; say what that cost them, and all others.

    Exit status 1 when the run does not count: the generator was late, or a step did not come to its end.
    """
    setup = Setup(
        runtime=runtime, heartbeat_s=heartbeat, replicas=replicas, partitions=partitions, rate=rate,
        seed=seed, quick=quick,
    )  # fmt: skip
    if problems := courses.contradictions(steps, setup):
        raise TailpackError("; ".join(problems))
    enough = handovers or (courses.QUICKLY if quick else courses.ENOUGH)[steps]
    with _experiment(setup, f"handovers, {runtime}", enough) as given:
        result = courses.handover(setup, *given, steps=steps, enough=enough)
    _finish(result, as_json=as_json, into=into)


def failover(
    *,
    delivery: Planned = Delivery.INCREMENTAL,
    heartbeat: Heartbeat = 3.0,
    quick: Quick = False,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Kill replicas, known and unknown to whoever plans, and stop some in order; say what that cost.

    Exit status 1 when the run does not count: the generator was late, or a step did not come to its end.
    """
    setup = Setup(runtime=delivery, heartbeat_s=heartbeat, quick=quick)
    known, sigterms, unknown = (3, 2, 1) if quick else (20, 20, 3)
    with _experiment(setup, "ends of replicas", known + sigterms + unknown) as given:
        result = courses.failover(setup, *given, known=known, sigterms=sigterms, unknown=unknown)
    _finish(result, as_json=as_json, into=into)


@contextmanager
def _experiment(setup: Setup, what: str, total: int) -> Iterator[tuple[Connection, Announce]]:
    """Yield a Kafka, and what shows on standard error how far it is."""
    with progress(what, total) as tell, own_kafka("handover", setup.partitions) as connection:
        yield connection, lambda said, done: tell(completed=min(done, total), said=said)


def _finish(result: Outcome, *, as_json: bool, into: Path | None) -> None:
    """Keep and print the result; exit status 1 when it does not count, 130 after Ctrl-C. Kept is only what counts."""
    if into and result.valid and not result.interrupted:
        keep(result, origin(), into)
    if as_json:
        sys.stdout.write(result.to_json().decode() + "\n")
    else:
        show(result, Console())
    if result.problem:
        Console(stderr=True).print(f"tailpack: {result.problem}", highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(INTERRUPTED if result.interrupted else 0 if result.valid else 1)
