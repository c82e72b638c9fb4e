"""`tailpack compare`: compare policies by simulation."""

import re
from pathlib import Path
from typing import Annotated, Final

import msgspec
import typer
from msgspec.structs import replace

from bench.matrix import Matrix, matrix_names, read_axes, read_matrix
from tailpack.cli import options
from tailpack.cli.progress import finish, matrix_progress, next_step, show
from tailpack.cli.simulate import warn_live_only_faults

MATRIX_KEY: Final = re.compile(r"^(contender|\[\[contender\]\]|like)\b", re.MULTILINE)
"""Keys by which a matrix file is distinguished from a scenario file."""
AXES: Final = "\n\n".join(
    f"{name}: {axis.varies} ({'; '.join(label for label, _ in axis.points())})" for name, axis in read_axes().items()
)


def compare(
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO|MATRIX",
            help=f"Scenarios; or one matrix: {', '.join(matrix_names())}, or the path of a matrix file (TOML).",
            autocompletion=options.complete_scenario,
        ),
    ],
    *,
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="Policy to compare. Repeatable; default: all, or those of the matrix."),
    ] = None,
    seeds: Annotated[
        int | None,
        typer.Option(min=1, max=10_000, help="Number of seeds for each case with random parts.  [default: 20]"),
    ] = None,
    axis: Annotated[str | None, typer.Option(metavar="NAME", help=f"Vary one setting over a range:\n\n{AXES}")] = None,
    trace: options.Trace = None,
    latency: options.Latency = None,
    percentile: options.Percentile = None,
    service_time: options.ServiceTime = None,
    startup: options.Startup = None,
    most: options.Max = None,
    changes: options.Changes = None,
    best: Annotated[
        bool, typer.Option("--optimum", help="Also compute the cheapest possible schedule for each case and seed.")
    ] = False,
    out: options.Out = Path("out/compare"),
    processes: options.Processes = 0,
    as_json: options.AsJson = False,
) -> None:
    """Simulate every policy in every scenario, and print which differences are statistically significant.

    Finished runs are stored in --out: after an interruption the same command continues there. Exit status 1 if a run
    failed.
    """
    from bench.matrix_page import draw, page  # noqa: PLC0415  numpy only where it is needed
    from bench.matrix_table import compare as run_matrix  # noqa: PLC0415

    chosen = _matrix(names)
    if policies:
        chosen = replace(
            chosen, contender=[options.check_policy(policy) for policy in dict.fromkeys(policies)], counts=[]
        )
    settings = options.parse_changes(changes) | options.slo_changes(latency, percentile, service_time, startup, most)
    if trace:
        settings = {"load.trace": str(trace.absolute()), "load.spacing": "smooth"} | settings
    chosen = replace(
        chosen,
        seeds=seeds or chosen.seeds,
        axis=axis or chosen.axis,
        optimum=best or chosen.optimum,
        set={**chosen.set, **settings},
    )
    cases = chosen.cases_at_points()
    warn_live_only_faults(case.job(chosen.contenders()[0]).read_scenario() for case in cases)
    typer.echo(f"compare: {len(cases)} cases, and {chosen.seeds} seeds for each case with random parts", err=True)
    with matrix_progress("simulated runs", out) as announce:
        found = run_matrix(chosen, out, processes=processes, announce=announce)
    text = page(found)
    (out / "compare.md").write_text(text, encoding="utf-8")
    (out / "compare.json").write_bytes(msgspec.json.format(msgspec.json.encode(found), indent=1) + b"\n")
    if found.rows:
        draw(found, out / "compare.svg")
    if as_json:
        options.print_json(found)
    else:
        show(text)
    finish([(missing.run, missing.why) for missing in found.missing], out)
    next_step(f"open {out / 'compare.svg'}", "tailpack compare … --axis NAME   (names: --help)", as_json=as_json)
    raise typer.Exit(1 if found.missing else 0)


def _matrix(names: list[str]) -> Matrix:
    """Return the named matrix, or a matrix of the named scenarios with every policy except `static`."""
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415  numpy only where it is needed
    from bench.scenario import scenario_names  # noqa: PLC0415

    file = Path(names[0])
    is_file = len(names) == 1 and file.suffix == ".toml" and file.is_file()
    if (len(names) == 1 and names[0] in matrix_names()) or (is_file and MATRIX_KEY.search(file.read_text("utf-8"))):
        return read_matrix(names[0])
    known = scenario_names()
    scenarios = [
        name if name.endswith(".toml") else options.match_name(name.lower(), known, what="scenario") for name in names
    ]
    return Matrix(
        title="Policies compared",
        case=list(dict.fromkeys(scenarios)),
        contender=[policy for policy in POLICIES if policy != "static"],
    )
