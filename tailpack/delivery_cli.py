"""`tailpack bench delivery`: what the way in which plans are delivered does to the tail of a scenario."""

from pathlib import Path
from typing import Annotated

import msgspec
import typer

from bench import figures
from bench.figures import DeliveryRow
from report.result import Result

app = typer.Typer()


@app.command()
def delivery(
    *,
    scenario: Annotated[str, typer.Option(help="Name of a scenario.")] = "w1",
    policy: Annotated[str, typer.Option(help="Name of a policy.")] = "algorithm-2",
    runtimes: Annotated[
        str, typer.Option(help="Separated by commas: incremental, eager, cooperative-sticky, kip848, faust.")
    ] = "eager,cooperative-sticky,incremental",
    heartbeats: Annotated[str, typer.Option(help="Seconds, separated by commas.")] = "3,0.5",
    out: Annotated[Path, typer.Option("--out", help="Folder that takes a folder for each run.")] = Path("out"),
    into: Annotated[Path, typer.Option("--into", help="Folder that takes the figures.")] = figures.FOLDER,
) -> None:
    """Run a scenario live under each runtime and heartbeat, one after the other: ten minutes each for w1.

    Runtimes that take no plan get the policy's count, and place partitions by themselves.
    """
    from tailpack.cli.bench import live_row, run_scenario  # noqa: PLC0415  which registers this command

    for heartbeat in heartbeats.split(","):
        for runtime in runtimes.split(","):
            chosen = {"autoscaler.policy": policy, "payment.heartbeat_s": float(heartbeat), **delivered_by(runtime)}
            row = DeliveryRow(
                **msgspec.structs.asdict(live_row(Result.load(run_scenario(scenario, chosen, out)))),
                runtime=runtime,
                heartbeat_s=float(heartbeat),
            )
            kept = [one for one in figures.load(DeliveryRow, into) if question(one) != question(row)]
            # After each run: an interruption keeps what was measured.
            figures.save(sorted([*kept, row], key=question), DeliveryRow, into)


def delivered_by(runtime: str) -> dict[str, object]:
    """Return the scenario's settings for a runtime."""
    return {"payment.delivery": runtime} if runtime in {"incremental", "eager"} else {"payment.runtime": runtime}


def question(row: DeliveryRow) -> tuple[str, str, float, str]:
    """Return what tells one question from another."""
    return row.scenario, row.policy, row.heartbeat_s, row.runtime
