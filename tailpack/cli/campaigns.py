"""Policies against each other, simulated: `compare`, `sweep`, and what `bench` has of them."""

from collections.abc import Sequence
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

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
    several_policies,
)
from tailpack.cli.progress import campaign, deliver, finish, print_rows
from tailpack.cli.simulate import say_live_only
from tailpack.errors import TailpackError
from tailpack.provenance import origin

if TYPE_CHECKING:
    from bench.experiments.campaign import Missing

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


def targets(
    *,
    folder: Annotated[
        Path, typer.Option("--from", help="Folder with fronts.json, live.json and decisions.json.")
    ] = results.FOLDER,
    as_json: AsJson = False,
) -> None:
    """Say of each target whether tail-aware reached it, by the figures of `bench fronts`, `live` and `decisions`.

    Exit status 1 when one was missed.
    """
    from bench.experiments.fronts import FILE, FrontFigures  # noqa: PLC0415
    from bench.experiments.goals import by_world, checked  # noqa: PLC0415

    rows = [kept.result for kept in results.load(FILE, FrontFigures, folder)]
    if not rows:
        raise TailpackError(f"{folder} has no {FILE}.json; tailpack bench fronts --into {folder}")
    live = [kept.result for kept in results.load("live", results.LiveRow, folder)]
    decisions = [kept.result for kept in results.load("decisions", results.DecisionRow, folder)]
    found = list(checked(by_world(rows), live, decisions))
    if as_json:
        print_json(found)
    words = {True: "reached  ", False: "missed   ", None: "not known"}
    for one in found:
        typer.echo(f"{words[one.reached]}  {one.where}: {one.target}: {one.figure}", err=as_json)
    raise typer.Exit(1 if any(one.reached is False for one in found) else 0)


def fronts(
    *,
    worlds: Annotated[str, typer.Option(help="Scenarios, separated by commas; none: all, standard and hard.")] = "",
    seeds: Seeds = 20,
    optima: Annotated[int, typer.Option(min=0, help="For so many of the seeds look for the optimum, too.")] = 0,
    tune: Annotated[
        bool,
        typer.Option("--tune", help="Instead: find the one setting of each opponent that is best over the worlds."),
    ] = False,
    out: Out = Path("out/fronts"),
    processes: Processes = 0,
    into: IntoDocs = None,
    as_json: AsJson = False,
) -> None:
    """Simulate every policy, as it comes and as it is best, constant counts and share groups; say who is beaten.

    Phases are stratified over the seeds. What is finished is kept in --out, and the same command goes on; what --into
    has of other worlds stays. Exit status 1 when a run failed.
    """
    from bench.experiments import fronts as played  # noqa: PLC0415
    from bench.experiments import tuning  # noqa: PLC0415
    from bench.experiments.worlds import all_worlds  # noqa: PLC0415

    asked = all_worlds(worlds)
    with campaign("settings" if tune else "fronts", out, processes, played.played) as running:
        rows, missing = (
            tuning.tune(running, asked, seeds) if tune else played.fronts(running, asked, seeds, optima)
        )  # fmt: skip
    if into and tune:
        results.keep(tuning.FILE, rows, origin(), into)
    elif into:
        results.keep(played.FILE, rows, origin(), into, attrgetter("world"))
    _shown(rows, missing, out, as_json=as_json)


def drawn(
    *,
    count: Annotated[int, typer.Option("--worlds", min=1, max=10_000, help="How many, from the first.")] = 60,
    seeds: Seeds = 1,
    out: Out = Path("out/drawn"),
    processes: Processes = 0,
    into: IntoDocs = None,
    as_json: AsJson = False,
) -> None:
    """Simulate every policy and constant counts in worlds that are drawn at random; say who is beaten.

    World k is the same whenever it is asked for. What is finished is kept in --out, and the same command goes on. Exit
    status 1 when a run failed.
    """
    from bench.experiments import fronts as played  # noqa: PLC0415
    from bench.experiments.drawn import FILE, by_world, drawn_worlds  # noqa: PLC0415

    with campaign("drawn", out, processes, played.played) as running:
        rows, missing = played.fronts(running, drawn_worlds(count), seeds, ordered=True)
    found = list(by_world(rows))
    if into:
        results.keep(FILE, found, origin(), into)
    _shown(found, missing, out, as_json=as_json)


def sensitivity(
    *,
    numbers: Annotated[str, typer.Option(help="Names of constants and settings, separated by commas; none: all.")] = "",
    seeds: Seeds = 3,
    out: Out = Path("out/sensitivity"),
    processes: Processes = 0,
    into: IntoDocs = None,
    as_json: AsJson = False,
) -> None:
    """Simulate tail-aware with each of its numbers a fifth lower and a fifth higher, and say what changes.

    What is finished is kept in --out, and the same command goes on; what --into has of other numbers stays. Exit status
    1 when a run failed.
    """
    from bench.experiments import sensitivity as numbered  # noqa: PLC0415

    with campaign("numbers", out, processes, numbered.varied(out)) as running:
        rows, missing = numbered.sensitivity(running, seeds, numbers)
    if into:
        results.keep(numbered.FILE, rows, origin(), into, attrgetter("file", "name", "factor"))
    _shown(rows, missing, out, as_json=as_json)


def _shown(rows: Sequence[object], missing: "Sequence[Missing]", out: Path, *, as_json: bool) -> NoReturn:
    """Say what each row says of itself, if anything, and end with status 1 when a run failed."""
    if as_json:
        print_json(rows)
    for said in filter(None, map(str, rows)):
        typer.echo(said, err=as_json)
    finish(missing, out)
    raise typer.Exit(1 if missing else 0)


def classes(
    *,
    loads: Annotated[str, typer.Option(help="Some of the worlds, by their names, separated by semicolons.")] = "",
    fleets: Annotated[str, typer.Option(help="Some of the fleets, likewise, and what each is compared with.")] = "",
    seeds: Seeds = 20,
    out: Out = Path("out/classes"),
    processes: Processes = 0,
    as_json: AsJson = False,
    into: IntoDocs = None,
) -> None:
    """Simulate replicas of two classes: a choice among both, one of them alone, and machines as they come."""
    from bench.experiments.classes import COLUMNS, FLEETS, NAME, WORLDS, compare_fleets, place  # noqa: PLC0415

    asked = [known(one.strip(), WORLDS, what="world") for one in loads.split(";")] if loads else list(WORLDS)
    some = [known(one.strip(), FLEETS, what="fleet") for one in fleets.split(";")] if fleets else list(FLEETS)
    with campaign(NAME, out, processes) as running:
        rows = compare_fleets(running, asked, some, seeds)
    if into:
        results.keep(NAME, rows, origin(), into, place)
    if as_json:
        print_json(rows)
    else:
        print_rows(COLUMNS, rows)
