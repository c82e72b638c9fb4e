"""`tailpack compare` and `tailpack sweep`: policies against each other, and along one setting."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

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
    several,
    several_policies,
)
from tailpack.cli.progress import campaign, deliver
from tailpack.cli.simulate import say_live_only
from tailpack.provenance import origin

SWEEP_NAMES = (
    "f, decision-interval, rebalance-time, startup, burstiness, burst-phase, burst-period, burst-jitter, "
    "service-rate-error, observation-delay, partitions"
)
SCENARIOS = "w1,w1-skew9,taxi,taxi-skew9,w3,w4"


Optima = Annotated[
    bool,
    typer.Option(
        "--optima", help="Look for the optimum of every world and seed, too: seconds each for w1, a minute for taxi."
    ),
]


def compare(
    *,
    scenarios: Annotated[str, typer.Option(help="Names or paths of TOML files, separated by commas.")] = SCENARIOS,
    policies: Annotated[str, typer.Option(help="Names, separated by commas; none: all of tailpack but `static`.")] = "",
    seeds: Seeds = 20,
    changes: Changes = None,
    best: Optima = False,
    out: Out = Path("out/compare"),
    processes: Processes = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate every policy in every scenario, and say which differences are more than chance.

    Runs on all cores. What is finished is kept in --out: after an interruption the same command goes on there. Exit
    status 1 when a run failed.
    """
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415  numpy only where it is needed
    from bench.experiments.compare import compare as compare_in  # noqa: PLC0415
    from bench.experiments.compare import policies_compared  # noqa: PLC0415
    from bench.experiments.experiment import world  # noqa: PLC0415
    from bench.experiments.tables import page  # noqa: PLC0415
    from bench.scenario import load_scenario, scenario_names  # noqa: PLC0415
    from report.page.comparison_page import COMPARISON_PAGE, write_comparison  # noqa: PLC0415

    asked = several(scenarios, scenario_names(), what="scenario")
    playing = several_policies(policies or ",".join(one for one in POLICIES if one != "static"))
    chosen = parse_changes(changes)
    with campaign("simulated runs", out, processes) as running:
        worlds = [world(scenario, chosen) for scenario in asked]
        say_live_only(load_scenario(one, chosen) for one in asked)
        found = compare_in(running, worlds=worlds, policies=playing, seeds=seeds, optima=best)
    made = origin()
    if found.rows:
        compared = policies_compared(found, target_of=lambda name: load_scenario(name, {}).target, command=made.command)
        write_comparison(compared, out / COMPARISON_PAGE, title="Policies compared")
    text = f"# Policies compared\n\n{page(found.rows, [made])}"
    deliver(found, text, out / "compare", as_json=as_json, page=COMPARISON_PAGE)


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
    from bench.experiments.sweeps import SWEEPS, run  # noqa: PLC0415
    from bench.experiments.tables import draw_sweep, sweep_page  # noqa: PLC0415
    from bench.scenario import load_scenario, scenario_names  # noqa: PLC0415

    chosen = SWEEPS[known(name, SWEEPS, what="sweep")]
    chosen = replace(
        chosen,
        policies=tuple(several_policies(policies or ",".join(chosen.policies))),
        scenarios=tuple(several(scenarios or ",".join(chosen.scenarios), scenario_names(), what="scenario")),
    )
    folder = out or Path("out") / f"sweep-{chosen.name}"
    check_folder(folder)
    say_live_only(load_scenario(one, {}) for one in chosen.scenarios)
    with campaign(f"sweep {chosen.name}", folder, processes) as running:
        found = run(running, chosen, seeds=seeds)
    made = origin()
    if found.rows:
        draw_sweep(chosen, found.rows, folder / f"{chosen.name}.svg")
    if into:
        results.keep("sweeps", found.rows, made, into, lambda row: row.sweep)
    deliver(found, sweep_page(chosen, found.rows, [made]), folder / chosen.name, as_json=as_json)
