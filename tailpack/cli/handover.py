"""`tailpack bench handover`, `failover`, `guarantees` and `delivery`: what a change of owner costs."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from bench import results
from bench.handover import courses
from bench.handover.courses import Steps
from bench.handover.experiment import Announce, Start
from bench.handover.guarantees import compare
from bench.handover.outcomes import Outcome
from bench.handover.setup import Setup
from bench.handover.show import keep, keep_timings, show
from contracts.connection import Connection
from contracts.delivery import OUR_DELIVERIES, Delivery
from report.result import Result
from tailpack.cli.cluster import IMAGE, Context, Image
from tailpack.cli.options import AsJson, Into, IntoDocs, Out, Scenario, print_json
from tailpack.cli.progress import progress
from tailpack.errors import INTERRUPTED, TailpackError
from tailpack.local.topics import create_topics, own_kafka
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


class Launcher(StrEnum):
    """What replicas are."""

    PROCESSES = "processes"
    KUBERNETES = "kubernetes"


As = Annotated[Launcher, typer.Option(metavar="NAME", help="What replicas are: processes here, or pods (kubernetes).")]


def handover(
    *,
    runtime: Annotated[Delivery, typer.Option(metavar="NAME", help=f"{', '.join(Delivery)}.")] = Delivery.INCREMENTAL,
    heartbeat: Heartbeat = 3.0,
    handovers: Annotated[int | None, typer.Option(min=1, help="How many; 200 in mixed steps, quick 30.")] = None,
    steps: Annotated[Steps, typer.Option(metavar="NAME", help=f"{', '.join(Steps)}.")] = Steps.MIXED,
    quick: Quick = False,
    launcher: As = Launcher.PROCESSES,
    context: Context = "",
    image: Image = IMAGE,
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
        seed=seed, quick=quick, launcher=launcher,
    )  # fmt: skip
    if problems := courses.contradictions(steps, setup):
        raise TailpackError("; ".join(problems))
    enough = handovers or (courses.QUICKLY if quick else courses.ENOUGH)[steps]
    with _experiment(setup, f"handovers, {runtime}", enough, context, image) as given:
        result, rounds = courses.handover(setup, *given, steps=steps, enough=enough)
    if into and result.valid and (runtime, steps) == (Delivery.INCREMENTAL, Steps.RANDOM):
        keep_timings(rounds, into)
    _finish(result, as_json=as_json, into=into)


def failover(
    *,
    delivery: Planned = Delivery.INCREMENTAL,
    heartbeat: Heartbeat = 3.0,
    quick: Quick = False,
    launcher: As = Launcher.PROCESSES,
    context: Context = "",
    image: Image = IMAGE,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Kill replicas, known and unknown to whoever plans, and stop some in order; say what that cost.

    Exit status 1 when the run does not count: the generator was late, or a step did not come to its end.
    """
    setup = Setup(runtime=delivery, heartbeat_s=heartbeat, quick=quick, launcher=launcher)
    known, sigterms, unknown = (3, 2, 1) if quick else (20, 20, 3)
    with _experiment(setup, "ends of replicas", known + sigterms + unknown, context, image) as given:
        result = courses.failover(setup, *given, known=known, sigterms=sigterms, unknown=unknown)
    _finish(result, as_json=as_json, into=into)


def delivery(
    scenario: Scenario = "w1",
    *,
    policy: Annotated[str, typer.Option(help="Name of a policy.")] = "algorithm-2",
    runtimes: Annotated[
        str, typer.Option(help="Separated by commas: incremental, eager, cooperative-sticky, kip848, faust.")
    ] = "eager,cooperative-sticky,incremental",
    heartbeats: Annotated[str, typer.Option(help="Seconds, separated by commas.")] = "3,0.5",
    out: Out = Path("out"),
    into: Into = results.FOLDER,
) -> None:
    """Run a scenario live under each runtime and heartbeat, one after the other: ten minutes each for w1.

    Runtimes that take no plan get the policy's count, and place partitions by themselves.
    """
    from tailpack.measured_runs import live_row, run_scenario  # noqa: PLC0415

    def question(row: results.DeliveryRow) -> tuple[str, str, float, str]:
        return row.scenario, row.policy, row.heartbeat_s, row.runtime

    for heartbeat in heartbeats.split(","):
        for runtime in runtimes.split(","):
            kind = "payment.delivery" if runtime in OUR_DELIVERIES else "payment.runtime"
            chosen = {"autoscaler.policy": policy, "payment.heartbeat_s": float(heartbeat), kind: runtime}
            live = msgspec.structs.asdict(live_row(Result.load(run_scenario(scenario, chosen, out))))
            row = results.DeliveryRow(**live, runtime=runtime, heartbeat_s=float(heartbeat))
            results.keep("delivery", [row], origin(), into, question)  # after each run: an interruption keeps it


def guarantees(
    *,
    heartbeat: Heartbeat = 3.0,
    rounds: Annotated[int, typer.Option(min=1, help="Runs of each guarantee, alternating.")] = 2,
    handovers: Annotated[int, typer.Option(min=1, help="Of each run.")] = 30,
    events: Annotated[int, typer.Option(min=100, help="Of each throughput run.")] = 10_000,
    as_json: AsJson = False,
) -> None:
    """Compare at_least_once with exactly_once: latency until seen, handovers, and the throughput of one replica.

    Exit status 1 when a run does not count: the generator was late, or a step did not come to its end.
    """
    setup = Setup(heartbeat_s=heartbeat)
    with progress("guarantees", 2 * rounds) as tell:
        rows = compare(
            setup,
            lambda: own_kafka("guarantees", setup.partitions),
            lambda said, done: tell(completed=done, said=said),
            rounds=rounds,
            handovers=handovers,
            events=events,
        )
    if as_json:
        print_json(rows)
    else:
        table = Table("", *(str(row.guarantee) for row in rows), box=None)
        for name in rows[0].__struct_fields__:
            if name != "guarantee":
                table.add_row(name, *(str(getattr(row, name)) for row in rows))
        Console().print(table)
    raise typer.Exit(0 if all(row.valid for row in rows) else 1)


@contextmanager
def _experiment(
    setup: Setup, what: str, total: int, context: str, image: str
) -> Iterator[tuple[Connection, Announce, Start | None]]:
    """Yield a Kafka, what shows on standard error how far it is, and what starts replicas, where these are pods."""
    with progress(what, total) as tell, ExitStack() as stack:
        start = None
        if setup.launcher == Launcher.KUBERNETES:
            from bench.cluster import Cluster  # noqa: PLC0415  Kubernetes' client only where it is needed
            from bench.handover.pods import pods  # noqa: PLC0415

            there = Cluster(context=context, images={"tailpack": image})
            connection, start = stack.enter_context(pods(there, setup, lambda said: tell(said=said)))
            create_topics(connection, setup.partitions)
        else:
            connection = stack.enter_context(own_kafka("handover", setup.partitions))
        yield connection, lambda said, done: tell(completed=min(done, total), said=said), start


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
