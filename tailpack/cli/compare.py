"""`tailpack compare`: policies against each other in simulated scenarios."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer

if TYPE_CHECKING:
    from bench.comparison.compare import Comparison

app = typer.Typer()

SCENARIOS = "w1,w1-skew9,taxi,taxi-skew9,w3,w4"


@app.command()
def compare(
    *,
    scenarios: Annotated[str, typer.Option(help="Names or paths of TOML files, separated by commas.")] = SCENARIOS,
    policies: Annotated[str, typer.Option(help="Names, separated by commas; none: all but `static`.")] = "",
    seeds: Annotated[int, typer.Option(min=1, max=10_000, help="Runs of each where anything is random.")] = 20,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Put a value over every scenario's: split=random."),
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder of finished runs, tables and plots.")] = Path(
        "out/compare"
    ),
    processes: Annotated[int, typer.Option(min=0, help="How many; 0: one for each core.")] = 0,
    into: Annotated[Path | None, typer.Option("--into", help="Folder that takes the figures of the docs.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the figures on standard output as JSON.")] = False,
) -> None:
    """Simulate every policy in every scenario, and say which differences are more than chance.

    Runs on all cores. What is finished is kept in --out: after an interruption the same command goes on there. Exit
    status 1 when a run failed.
    """
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415  numpy only where it is needed
    from bench.comparison import compare as comparison  # noqa: PLC0415
    from bench.scenario import scenario_names  # noqa: PLC0415
    from tailpack.cli.campaigns import campaign, names  # noqa: PLC0415
    from tailpack.cli.overrides import parse_overrides  # noqa: PLC0415

    asked = names(scenarios, scenario_names(), what="scenario")
    playing = names(policies or ",".join(one for one in POLICIES if one != "static"), POLICIES, what="policy")
    chosen = parse_overrides(changes or ())
    with campaign("simulated runs", out, processes) as running:
        worlds = [comparison.world(scenario, chosen) for scenario in asked]
        found = comparison.compare(running, worlds=worlds, policies=playing, seeds=seeds)
    _write(found, out, into)
    _show(found, out, as_json=as_json)
    raise typer.Exit(1 if found.missing else 0)


def _write(found: "Comparison", out: Path, into: Path | None) -> None:
    """Write page and plots, and the figures of the docs where they are asked for."""
    from bench import figures  # noqa: PLC0415
    from bench.comparison.page import page  # noqa: PLC0415
    from bench.comparison.plot import draw  # noqa: PLC0415
    from bench.comparison.policy_comparison import policies_compared  # noqa: PLC0415
    from bench.scenario import load_scenario  # noqa: PLC0415
    from report.page.comparison_page import COMPARISON_PAGE, write_comparison  # noqa: PLC0415
    from tailpack.cli.bench import origin  # noqa: PLC0415  which imports Kafka's clients

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
        rows = [figures.ComparisonRow(**msgspec.structs.asdict(row), origin=made) for row in found.rows]
        figures.save(rows, figures.ComparisonRow, into)


def _show(found: "Comparison", out: Path, *, as_json: bool) -> None:
    from report.page.comparison_page import COMPARISON_PAGE  # noqa: PLC0415
    from tailpack.cli.campaigns import finish, show  # noqa: PLC0415

    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
    else:
        show((out / "compare.md").read_text(encoding="utf-8"))
    finish(found.missing, out, COMPARISON_PAGE)
