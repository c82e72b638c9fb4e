"""`tailpack chaos`: faults by a seed, several at once, on a running pipeline; then its promises are checked."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from bench.chaos.faults import schedule
from bench.chaos.suite import Outcome, Pipeline, Schedule, outcome
from tailpack.chaos_world import Cluster, LiveWorld
from tailpack.cli.options import AsJson, Out, print_json
from tailpack.cli.progress import progress
from tailpack.errors import INTERRUPTED

SHOWN = 5
"""Violations of one schedule that are printed."""


def chaos(
    *,
    schedules: Annotated[int, typer.Option(min=1, help="How many, one after the other.")] = 5,
    seed: Annotated[int, typer.Option(help="Of the first schedule; the next one has the next number.")] = 1,
    out: Out = Path("out"),
    as_json: AsJson = False,
) -> None:
    """Kill, stop, cut off and mislead a running pipeline and its three brokers; check that nothing was lost or doubled.

    A schedule with violations says its seed and keeps its logs. Exit status 1 when there are any.
    """
    done: list[Schedule] = []
    left_out: tuple[str, ...] = ()
    interrupted = False
    # A folder for as long as it lasts: what is kept is copied out of it.
    with tempfile.TemporaryDirectory(prefix="tailpack-chaos-", ignore_cleanup_errors=True) as folder:
        try:
            with progress("schedules", schedules) as tell, Cluster(Path(folder)) as cluster:
                left_out = tuple(f"{kind}: {why}" for kind, why in cluster.left_out.items())
                for found in _found(cluster, range(seed, seed + schedules), out, lambda said: tell(said=said)):
                    done.append(found)
                    tell(advance=1)
        except KeyboardInterrupt:
            interrupted = True
    result = outcome(done, left_out)
    if as_json:
        print_json(result)
    else:
        _show(result)
    raise typer.Exit(INTERRUPTED if interrupted else 1 if result.violations else 0)


def _found(cluster: Cluster, seeds: Iterable[int], out: Path, say: Callable[[str], None]) -> Iterator[Schedule]:
    """Yield what each schedule shows; one pipeline lives through them as long as nothing is wrong with it."""
    with ExitStack() as living:
        pipeline: Pipeline | None = None
        for number in seeds:
            if pipeline is None:
                say("the pipeline starts")
                world = living.enter_context(closing(LiveWorld(cluster)))
                world.start()
                pipeline = living.enter_context(closing(Pipeline(world)))
            found = pipeline.run(
                number, schedule(number, frozenset(cluster.left_out)), partial(_tell, say, f"seed {number}")
            )
            if found.violations:
                found.logs = str(out / f"chaos-{number}")
                world.keep(Path(found.logs))
                _complain(found)
                living.close()
                pipeline = None
            yield found


def _tell(say: Callable[[str], None], which: str, said: str) -> None:
    say(f"{which}, {said}")


def _complain(found: Schedule) -> None:
    console = Console(stderr=True)
    again = f"tailpack chaos --schedules 1 --seed {found.seed}"
    console.print(f"seed {found.seed}: {len(found.violations)} violations; repeat it: {again}", highlight=False)
    for line in (*found.faults, *found.violations[:SHOWN], f"logs: {found.logs}"):
        console.print(f"  {line}", highlight=False, soft_wrap=True, markup=False)


def _show(found: Outcome) -> None:
    console = Console()
    for name in found.__struct_fields__[:-2]:
        console.print(f"{name.replace('_', ' '):20} {getattr(found, name)}")
    for one in found.left_out:
        console.print(f"left out: {one}")
