"""`tailpack sweep`: one setting over a range, one page."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from bench.sweeps.sweep import Sweep, SweepResult

app = typer.Typer()

NAMES = "f, decision-interval, rebalance-time, startup, burstiness, partitions"


@app.command()
def sweep(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {NAMES}.")],
    *,
    policies: Annotated[str, typer.Option(help="Names, separated by commas; none: the sweep's own.")] = "",
    scenarios: Annotated[str, typer.Option(help="Names, separated by commas; none: the sweep's own.")] = "",
    seeds: Annotated[int, typer.Option(min=1, max=10_000, help="Runs of each where anything is random.")] = 5,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of finished runs, page and plot.  [default: out/sweep-NAME]")
    ] = None,
    processes: Annotated[int, typer.Option(min=0, help="How many; 0: one for each core.")] = 0,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that takes the figures of the docs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures on standard output as JSON.")] = False,
) -> None:
    """Simulate policies along one setting; write a page with table and plot.

    What is finished is kept in --out: after an interruption the same command goes on there. Exit status 1 when a run
    failed.
    """
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415  numpy only where it is needed
    from bench.scenario import scenario_names  # noqa: PLC0415
    from bench.sweeps.catalogue import SWEEPS  # noqa: PLC0415
    from bench.sweeps.sweep import run  # noqa: PLC0415
    from tailpack.cli.campaigns import campaign, names  # noqa: PLC0415

    (known,) = names(name, SWEEPS, what="sweep")[:1]
    chosen = SWEEPS[known]
    chosen = replace(
        chosen,
        policies=tuple(names(policies or ",".join(chosen.policies), POLICIES, what="policy")),
        scenarios=tuple(names(scenarios or ",".join(chosen.scenarios), scenario_names(), what="scenario")),
    )
    folder = out or Path("out") / f"sweep-{chosen.name}"
    with campaign(f"sweep {chosen.name}", folder, processes) as running:
        found = run(running, chosen, seeds=seeds)
    _write(chosen, found, folder, into)
    _show(found, folder, as_json=as_json)
    raise typer.Exit(1 if found.missing else 0)


def _write(chosen: "Sweep", found: "SweepResult", folder: Path, into: Path | None) -> None:
    """Write page and plot, and the figures of the docs where they are asked for."""
    from bench import figures  # noqa: PLC0415
    from bench.sweeps.page import page  # noqa: PLC0415
    from bench.sweeps.plot import draw  # noqa: PLC0415
    from tailpack.cli.bench import origin  # noqa: PLC0415  which imports Kafka's clients

    made, picture = origin(), f"{chosen.name}.svg"
    text = page(chosen, found.rows, [made], picture=picture if found.rows else "")
    (folder / f"{chosen.name}.md").write_text(text, encoding="utf-8")
    (folder / f"{chosen.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if found.rows:
        draw(chosen, found.rows, folder / picture)
    if into:
        kept = [row for row in figures.load(figures.SweepRow, into) if row.sweep != chosen.name]
        rows = [figures.SweepRow(**msgspec.structs.asdict(row), origin=made) for row in found.rows]
        figures.save([*kept, *rows], figures.SweepRow, into)


def _show(found: "SweepResult", folder: Path, *, as_json: bool) -> None:
    from tailpack.cli.campaigns import finish, show  # noqa: PLC0415

    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        show((folder / f"{found.sweep}.md").read_text(encoding="utf-8"))
    finish(found.missing, folder)
