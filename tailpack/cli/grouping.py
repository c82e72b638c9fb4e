"""`tailpack grouping`: the grouping paper's streams played with every grouping, and live runs of each."""

from functools import partial
from statistics import fmean
from typing import Annotated

import msgspec
import typer
from msgspec.structs import asdict
from rich.console import Console

from bench import results
from contracts.clock import steady_s
from tailpack.cli.options import AsJson, IntoDocs, Processes, print_json
from tailpack.cli.progress import print_rows, progress
from tailpack.cli.studies import show_claims
from tailpack.provenance import origin


def compare(
    *,
    quick: Annotated[
        bool, typer.Option("--quick", help="Unequal workers alone, 2 million events, one seed: a look.")
    ] = False,
    events: Annotated[
        int | None, typer.Option(min=10_000, help="Of a stream.  [default: 10 million, the paper's]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The first; equal seeds make equal streams.")] = 1,
    processes: Processes = 0,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Play the grouping paper's streams with every grouping: imbalance, memory, latency, and the paper's claims.

    Imbalance: max U − mean U, relative to events ÷ workers, where U is a worker's load ÷ its capacity. Memory: pairs of
    worker and key, for each key. Partial sums: so many must be added up for a figure of one key each 10 s. The table is
    of ten workers, eight with capacity 1, one with 3 and one with 5, given 80 % of what they can serve.
    """
    from bench.experiments.workers import usable_cores  # noqa: PLC0415  the compiler only where it is needed
    from studies.grouping.claims import GroupingStudy, claims  # noqa: PLC0415
    from studies.grouping.compare import (  # noqa: PLC0415
        CAPACITY,
        EVENTS,
        QUICK_EVENTS,
        jobs,
        pack,
        play_all,
        runs,
    )
    from studies.grouping.show import COLUMNS, NAME  # noqa: PLC0415

    began_s = steady_s()
    cores = processes or usable_cores()
    todo = list(jobs(quick=quick, seed=seed, events=events or (QUICK_EVENTS if quick else EVENTS)))
    with progress("groupings", len(todo) + (0 if quick else runs())) as tell:
        announce = partial(tell, advance=1)
        rows, speeds = play_all(todo, processes=cores, announce=lambda said: announce(said=said))
        packed = [] if quick else pack(processes=cores, announce=lambda said: announce(said=said))
    found = GroupingStudy(
        seed=seed,
        rows=tuple(rows),
        speeds=tuple(speeds),
        packed=tuple(packed),
        claims=() if quick else claims(rows),
    )
    if into:
        made = msgspec.structs.replace(origin(), wall_s=round(steady_s() - began_s))
        results.keep(NAME, [found], made, into)
    unequal = [row for row in rows if row.study == CAPACITY]
    if as_json:
        own = {pace.grouping: [row for row in rows if row.grouping is pace.grouping] for pace in speeds}
        said = {
            row.grouping: asdict(row)
            | {"imbalance": fmean(row.imbalance), "memory": fmean(row.memory)}
            | asdict(pace)
            | {"rows": own[row.grouping]}
            for row, pace in zip(unequal, speeds, strict=True)
        }
        print_json(said, indented=True)
        return
    pace_of = {pace.grouping: pace for pace in speeds}
    last = {"M choices/s": lambda row: f"{pace_of[row.grouping].bulk_per_s / 1e6:.1f}"}
    print_rows({**COLUMNS, **last}, unequal, title="ten workers, capacities {3, 5}, 80 % of their time")
    if not quick:
        show_claims(found.claims, "Nasir et al. 2017", Console())
