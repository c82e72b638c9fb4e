"""`tailpack bench`: measure this machine, and keep the figures that docs/results.md shows."""

import dataclasses
import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product
from pathlib import Path
from typing import Annotated

import msgspec
import psutil
import typer
from rich.console import Console

from bench import markdown, results
from contracts.connection import Connection
from contracts.topics import PIPELINE_PARTITIONS
from contracts.validation import InvalidSettingsError, as_environment
from tailpack.cli.cluster import IMAGE, Context, Image
from tailpack.cli.options import (
    AsJson,
    IntoDocs,
    known,
    print_json,
    several,
)
from tailpack.cli.progress import print_rows, progress
from tailpack.errors import INTERRUPTED, TailpackError
from tailpack.provenance import origin


def startup(
    *,
    launcher: Annotated[str, typer.Option(help="What starts replicas: processes or kubernetes.")] = "processes",
    context: Context = "",
    image: Image = IMAGE,
    as_json: AsJson = False,
) -> None:
    """Measure how long a replica takes from its request until it is ready."""
    known(launcher, ("processes", "kubernetes"), what="launcher")
    from autoscaler.live.launcher import LauncherError  # noqa: PLC0415
    from bench.cluster import Cluster, startup_there  # noqa: PLC0415
    from bench.startup import measure  # noqa: PLC0415
    from tailpack.local.topics import own_kafka  # noqa: PLC0415

    try:
        with progress("startup") as tell, ExitStack() as stack:
            if launcher == "kubernetes":
                found = startup_there(
                    Cluster(context=context, images={"tailpack": image}), lambda said: tell(said=said)
                )
            else:
                connection = stack.enter_context(own_kafka("startup", 4))
                folder = stack.enter_context(tempfile.TemporaryDirectory())
                found = measure(connection, launcher, Path(folder), lambda said: tell(said=said))
    except (LauncherError, InvalidSettingsError) as wrong:
        raise TailpackError(str(wrong)) from wrong
    if as_json:
        print_json(found)
    else:
        said = f"{found.n} starts: from asked for to ready {found.asked_to_ready_p50_s:.2f} s, p99 {found.p99_s:.2f} s"
        Console().print(said, highlight=False, soft_wrap=True)


def report(
    *,
    events: Annotated[int, typer.Option(min=1, help="Size of the made-up run.")] = 1_000_000,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Wall time and memory of `tailpack report` on a made-up run, the start of the JVM included."""
    from tailpack.report_speed import measure  # noqa: PLC0415  the simulator only where something is measured

    made = results.Kept(measure(events, Console(stderr=True)), origin())
    if into:
        results.keep("spark", [made.result], made.origin, into, lambda one: one.events)
    if as_json:
        print_json(made.flat())
    else:
        said = f"{events:,} events in {made.result.wall_s:.1f} s, {made.result.peak_rss_gib:.2f} GiB"
        Console().print(said, highlight=False)


def simulator(
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Without the largest runs: within 50 s.")] = False,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Events that the simulator serves per second of one core: by size of the run and of the group, and as a whole."""
    from bench.simulator_speed import measure_all  # noqa: PLC0415  the compiler only where it is needed

    console = Console(stderr=True)
    with console.status("serving"):
        found = measure_all(quick=quick, report=lambda row: console.print(_speed(row), highlight=False))
    if into:
        results.keep("simulator", found.growth, origin(), into)
    if as_json:
        print_json(found)
        return
    print_rows(markdown.SIMULATOR, found.growth)


def decisions(*, as_json: AsJson = False, into: IntoDocs = None) -> None:
    """Processor time of whole decisions, from 100 partitions on 20 replicas to 10,000 on 1,000."""
    from bench.decision_speed import measure  # noqa: PLC0415  the compiler only where it is needed

    with Console(stderr=True).status("deciding"):
        found = list(measure())
    if into:
        results.keep("decisions", found, origin(), into)
    if as_json:
        print_json(found)
    else:
        print_rows(markdown.DECISIONS, found)


def live_scale(
    *,
    sizes: Annotated[
        str, typer.Option(help="MEMBERSxPARTITIONS, separated by commas.  [default: 10x100,50x1000; --quick: 10x100]")
    ] = "",
    quick: Annotated[bool, typer.Option("--quick", help="Two plans and six seconds at rest for each size.")] = False,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """The controller and light members, many in one process, against one broker: ticks, plans, requests, journal.

    Exit status 1 when a plan was not taken in time. What was measured before Ctrl-C is kept.
    Two cores are enough for 50x1000; 200x10000 wants more.
    """
    from bench.live_scale.measure import measure  # noqa: PLC0415  aiokafka and the compiler only where needed
    from tailpack.local.topics import own_kafka  # noqa: PLC0415

    asked = [_size(text) for text in (sizes or ("10x100" if quick else "10x100,50x1000")).split(",")]
    rows: list[results.LiveScaleRow] = []
    interrupted = False
    for members, partitions in asked:
        try:
            with progress(f"{members} × {partitions}") as tell, own_kafka("live-scale", partitions) as connection:
                broker = next(child.pid for child in psutil.Process().children() if "java" in child.name())
                row = measure(
                    connection, broker, members=members, partitions=partitions, quick=quick,
                    announce=lambda said: tell(said=said),
                )  # fmt: skip
        except KeyboardInterrupt:  # while Kafka starts or stops
            row = None
        if row is None:
            interrupted = True
            break
        rows.append(row)
        if row.problem:
            Console(stderr=True).print(f"tailpack: {members} × {partitions}: {row.problem}", markup=False)
    if into and rows:
        results.keep("live-scale", rows, origin(), into, lambda row: (row.members, row.partitions))
    if as_json:
        print_json(rows)
    else:
        print_rows(markdown.LIVE_SCALE, rows)
    raise typer.Exit(INTERRUPTED if interrupted else 1 if any(row.problem for row in rows) else 0)


def loadgen(
    *,
    workers: Annotated[
        str, typer.Option(help="Processes that share a load, separated by commas.  [default: 1,2; --quick: 1]")
    ] = "",
    entries: Annotated[
        str,
        typer.Option(
            help="kafka, and http: through an Order on the same cores.  [default: kafka,http; --quick: kafka]"
        ),
    ] = "",
    quick: Annotated[
        bool, typer.Option("--quick", help="Seconds for each load, not half a minute: within 50 s.")
    ] = False,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """How punctual the load generator is, and what it sends sustained and on time, to a broker of its own."""
    from bench.loadgen import ENTRIES, PARTITIONS, Place, measure  # noqa: PLC0415
    from tailpack.local.ports import free_port  # noqa: PLC0415
    from tailpack.local.topics import own_kafka  # noqa: PLC0415

    ways = several(entries or ("kafka" if quick else "kafka,http"), ENTRIES, what="entry")
    counts = several(workers or ("1" if quick else "1,2"), map(str, range(1, 101)), what="number of workers")
    rows: list[results.LoadgenRow] = []
    with (
        progress("load generator") as tell,
        own_kafka("loadgen", PARTITIONS) as connection,
        tempfile.TemporaryDirectory() as folder,
        _order(connection, Path(folder), PARTITIONS) if "http" in ways else nullcontext("") as order_url,
    ):
        for number, (way, count) in enumerate(product(ways, counts)):
            own = Path(folder, f"load-{number}")
            own.mkdir()
            place = Place(connection, order_url, f"127.0.0.1:{free_port()}", own)
            rows.append(measure(place, way, int(count), quick=quick, announce=lambda said: tell(said=said)))
    if into:
        results.keep("loadgen", rows, origin(), into, lambda row: (ENTRIES.index(row.entry), row.workers))
    if as_json:
        print_json(msgspec.to_builtins(rows[0]) | {"rows": rows})
    else:
        print_rows(markdown.LOADGEN, rows)


def pipeline(
    *,
    stages: Annotated[str, typer.Option(help="Some of order, shipment and notification.")] = "",
    instances: Annotated[str, typer.Option(help="How many of a stage.  [default: 1,2,4; --quick: 1,2]")] = "",
    partitions: Annotated[int, typer.Option(min=1, max=1_000, help="Of each topic.")] = PIPELINE_PARTITIONS,
    orders: Annotated[
        int | None, typer.Option(min=100, max=200_000, help="In the backlog.  [default: 20,000; --quick: 1,500]")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="A few seconds for each.")] = False,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """What Order, Shipment and Notification serve, each alone, by one, two and four instances."""
    from bench.pipeline import WRITES, Stage  # noqa: PLC0415
    from tailpack.local.topics import create_topics, own_kafka  # noqa: PLC0415

    asked = several(stages or ",".join(WRITES), WRITES, what="stage")
    counts = several(instances or ("1,2" if quick else "1,2,4"), map(str, range(1, 101)), what="number of instances")
    rows: list[results.PipelineRow] = []
    with (
        progress("pipeline") as tell,
        own_kafka("pipeline", 1) as connection,
        tempfile.TemporaryDirectory() as folder,
    ):
        for stage, count in product(asked, map(int, counts)):
            within = dataclasses.replace(connection, namespace=f"{connection.namespace}-{stage}-{count}")
            create_topics(within, partitions, partitions)
            own = Path(folder, f"{stage}-{count}")
            own.mkdir()
            alone = Stage(stage, within, partitions, own)
            rows.append(alone.measure(count, orders or (1_500 if quick else 20_000), lambda said: tell(said=said)))
    if into:
        order = list(WRITES)
        results.keep(
            "pipeline", rows, origin(), into, lambda row: (order.index(row.stage), row.partitions, row.instances)
        )
    if as_json:
        print_json(rows)
    else:
        print_rows(markdown.PIPELINE, rows)


@contextmanager
def _order(connection: Connection, folder: Path, partitions: int) -> Iterator[str]:
    """Run an Order service; yield its address. Who sends to it waits until it answers."""
    from contracts.children import Child, python_module  # noqa: PLC0415
    from tailpack.local.ports import free_port  # noqa: PLC0415

    port = free_port()
    settings = {"HTTP_PORT": port, "DATA_DIR": folder / "order", "PAYMENT_PARTITIONS": partitions, "DEMO": "true"}
    environ = os.environ | as_environment(connection) | {f"TAILPACK_{key}": str(one) for key, one in settings.items()}
    order = Child("order", python_module("services.order"), environ, folder / "order.log")
    order.start()
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        order.terminate()
        order.wait()


def _size(text: str) -> tuple[int, int]:
    members, cross, partitions = text.strip().partition("x")
    if not (cross and members.isdigit() and partitions.isdigit() and 0 < int(members) <= int(partitions)):
        raise TailpackError(
            f"--sizes {text!r}: must be MEMBERSxPARTITIONS, as 50x1000, with a partition for each member"
        )
    return int(members), int(partitions)


def _speed(row: results.SpeedRow) -> str:
    return f"{row.measured}: {row.events:,} events, {row.partitions:,} partitions: {row.events_per_s:,.0f} events/s"
