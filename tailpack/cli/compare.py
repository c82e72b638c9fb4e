"""`tailpack compare` and `tailpack sweep`: policies against each other, and along one setting."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

from bench import results
from tailpack.cli.options import (
    AsJson,
    Changes,
    IntoDocs,
    Out,
    Processes,
    Seeds,
    check_folder,
    known,
    parse_changes,
    print_json,
    several,
)
from tailpack.cli.progress import campaign, finish, show
from tailpack.provenance import origin

if TYPE_CHECKING:
    from bench.experiments.compare import Comparison
    from bench.experiments.sweeps import Sweep, SweepResult

SWEEP_NAMES = "f, decision-interval, rebalance-time, startup, burstiness, partitions"
SCENARIOS = "w1,w1-skew9,taxi,taxi-skew9,w3,w4"


def compare(
    *,
    scenarios: Annotated[str, typer.Option(help="Names or paths of TOML files, separated by commas.")] = SCENARIOS,
    policies: Annotated[str, typer.Option(help="Names, separated by commas; none: all but `static`.")] = "",
    seeds: Seeds = 20,
    changes: Changes = None,
    out: Out = Path("out/compare"),
    processes: Processes = 0,
    into: IntoDocs = None,
    as_json: AsJson = False,
) -> None:
    """Simulate every policy in every scenario, and say which differences are more than chance.

    Runs on all cores. What is finished is kept in --out: after an interruption the same command goes on there. Exit
    status 1 when a run failed.
    """
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415  numpy only where it is needed
    from bench.experiments.compare import compare as compare_in  # noqa: PLC0415
    from bench.experiments.experiment import world  # noqa: PLC0415
    from bench.scenario import scenario_names  # noqa: PLC0415

    asked = several(scenarios, scenario_names(), what="scenario")
    playing = several(policies or ",".join(one for one in POLICIES if one != "static"), POLICIES, what="policy")
    chosen = parse_changes(changes)
    with campaign("simulated runs", out, processes) as running:
        worlds = [world(scenario, chosen) for scenario in asked]
        found = compare_in(running, worlds=worlds, policies=playing, seeds=seeds)
    _write_comparison(found, out, into)
    _show_comparison(found, out, as_json=as_json)
    raise typer.Exit(1 if found.missing else 0)


def _write_comparison(found: "Comparison", out: Path, into: Path | None) -> None:
    """Write page and plots, and the figures of the docs where they are asked for."""
    from bench.experiments.plot import draw  # noqa: PLC0415
    from bench.experiments.report_page import policies_compared  # noqa: PLC0415
    from bench.experiments.tables import page  # noqa: PLC0415
    from bench.scenario import load_scenario  # noqa: PLC0415
    from report.page.comparison_page import COMPARISON_PAGE, write_comparison  # noqa: PLC0415

    made = origin()
    text = "# Policies compared\n\n" + page(found.rows, [made]) + "\n![Pareto fronts](fronts.svg)\n"
    (out / "compare.md").write_text(text, encoding="utf-8")
    (out / "compare.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if found.rows:
        draw(found.rows, out / "fronts.svg")
        for scenario in dict.fromkeys(row.scenario for row in found.rows):
            draw([row for row in found.rows if row.scenario == scenario], out / f"{Path(scenario).stem}.svg")
        compared = policies_compared(found, target_of=lambda name: load_scenario(name, {}).target, command=made.command)
        write_comparison(compared, out / COMPARISON_PAGE, title="Policies compared")
    if into:
        results.keep("comparison", found.rows, made, into)


def _show_comparison(found: "Comparison", out: Path, *, as_json: bool) -> None:
    from report.page.comparison_page import COMPARISON_PAGE  # noqa: PLC0415

    if as_json:
        print_json(found)
    else:
        show((out / "compare.md").read_text(encoding="utf-8"))
    finish(found.missing, out, COMPARISON_PAGE)


def sweep(
    name: Annotated[str, typer.Argument(metavar="NAME", help=f"One of {SWEEP_NAMES}.")],
    *,
    policies: Annotated[str, typer.Option(help="Names, separated by commas; none: the sweep's own.")] = "",
    scenarios: Annotated[str, typer.Option(help="Names, separated by commas; none: the sweep's own.")] = "",
    seeds: Seeds = 5,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder of finished runs, page and plot.  [default: out/sweep-NAME]")
    ] = None,
    processes: Processes = 0,
    into: IntoDocs = None,
    as_json: AsJson = False,
) -> None:
    """Simulate policies along one setting; write a page with table and plot.

    What is finished is kept in --out: after an interruption the same command goes on there. Exit status 1 when a run
    failed.
    """
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415  numpy only where it is needed
    from bench.experiments.sweeps import SWEEPS, run  # noqa: PLC0415
    from bench.scenario import scenario_names  # noqa: PLC0415

    chosen = SWEEPS[known(name, SWEEPS, what="sweep")]
    chosen = replace(
        chosen,
        policies=tuple(several(policies or ",".join(chosen.policies), POLICIES, what="policy")),
        scenarios=tuple(several(scenarios or ",".join(chosen.scenarios), scenario_names(), what="scenario")),
    )
    folder = out or Path("out") / f"sweep-{chosen.name}"
    check_folder(folder)
    with campaign(f"sweep {chosen.name}", folder, processes) as running:
        found = run(running, chosen, seeds=seeds)
    _write_sweep(chosen, found, folder, into)
    _show_sweep(found, folder, as_json=as_json)
    raise typer.Exit(1 if found.missing else 0)


def _write_sweep(chosen: "Sweep", found: "SweepResult", folder: Path, into: Path | None) -> None:
    """Write page and plot, and the figures of the docs where they are asked for."""
    from bench.experiments.plot import draw_sweep  # noqa: PLC0415
    from bench.experiments.tables import sweep_page  # noqa: PLC0415

    made, picture = origin(), f"{chosen.name}.svg"
    text = sweep_page(chosen, found.rows, [made], picture=picture if found.rows else "")
    (folder / f"{chosen.name}.md").write_text(text, encoding="utf-8")
    (folder / f"{chosen.name}.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if found.rows:
        draw_sweep(chosen, found.rows, folder / picture)
    if into:
        results.keep("sweeps", found.rows, made, into, lambda row: row.sweep)


def _show_sweep(found: "SweepResult", folder: Path, *, as_json: bool) -> None:
    if as_json:
        print_json(found)
    else:
        show((folder / f"{found.sweep}.md").read_text(encoding="utf-8"))
    finish(found.missing, folder)
