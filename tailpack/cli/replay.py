"""`tailpack replay`: a finished live run through the simulator, with its own events and times; both side by side."""

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from tailpack.cli.overrides import parse_overrides
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from bench.replay.measured import Measured
    from bench.replay.side_by_side import Replayed

app = typer.Typer()


@app.command()
def replay(
    folder: Annotated[Path, typer.Argument(metavar="RUN_DIR", help="Folder of a run that is over and has its report.")],
    *,
    policy: Annotated[
        str | None, typer.Option(help="Simulate this one instead of the run's own; see `tailpack policies`.")
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="KEY=VALUE", help="Put a value over what the run was told or showed: pause_s=0.2."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    out: Annotated[
        Path | None, typer.Option(help="Folder that takes the simulated run; `tailpack report compare` takes both.")
    ] = None,
) -> None:
    """Feed the simulator with a run's own events and measured times, and compare: does live equal simulated?

    The distributions of both latencies are drawn into the run's folder.
    """
    from bench.replay.replay import PLOT, replay  # noqa: PLC0415
    from bench.replay.side_by_side import draw  # noqa: PLC0415  compiled code and matplotlib only where they are needed

    named = {} if policy is None else {"autoscaler.policy": policy}
    command = shlex.join(["tailpack", *sys.argv[1:]])
    told = parse_overrides(changes or ()) | named
    found, live_us, simulated_us = replay(folder, told, kept=out, command=command)
    title = f"{found.run}: live {found.live_policy}, simulated {found.policy}"
    try:
        draw(live_us, simulated_us, folder / PLOT, title=title, latency_target_s=found.latency_target_s)
    except OSError as wrong:
        raise TailpackError(f"{folder / PLOT}: cannot be written ({wrong.strerror})") from wrong
    Console(stderr=True).print(f"written: {folder / PLOT}", highlight=False, soft_wrap=True)
    if as_json:
        sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
        return
    console = Console()
    console.print(table_of(found))
    console.print(measured_in(found.measured), style="dim", highlight=False, soft_wrap=True)


def table_of(found: "Replayed") -> Table:
    """Return live, simulated, difference and verdict of each figure."""
    live, simulated, difference = found.live, found.simulated, found.differences
    same = found.policy == found.live_policy
    title = f"{found.run}, " + (found.policy if same else f"live {found.live_policy}, simulated {found.policy}")
    table = Table("", "live", "simulated", "difference", "", box=None, title=title)
    for column in table.columns[1:4]:
        column.justify = "right"
    table.add_row(
        f"within {found.latency_target_s:g} s",
        f"{100 * live.in_sla:.3f} %",
        f"{100 * simulated.in_sla:.3f} %",
        f"{difference.in_sla_points:+.3f} points",
        _verdict(found.within.in_sla, "0.5 points") if same else "",
    )
    table.add_row(
        "replica-minutes",
        f"{live.replica_minutes:.2f}",
        f"{simulated.replica_minutes:.2f}",
        f"{100 * difference.replica_minutes_share:+.2f} %",
        _verdict(found.within.replica_minutes, "3 %") if same else "",
    )
    for name, key in (("p50", "p50_s"), ("p99", "p99_s"), ("p99.9", "p999_s"), ("worst", "max_s")):
        values = [getattr(side, key) for side in (live, simulated)]
        table.add_row(name, *[f"{value:.3f} s" for value in values], f"{getattr(difference, key):+.3f} s", "")
    for name, key in (
        ("scaled up", "scale_ups"),
        ("scaled down", "scale_downs"),
        ("reassigned", "reassignments"),
        ("partitions moved", "moved_partitions"),
    ):
        counts = [getattr(side, key) for side in (live, simulated)]
        change = getattr(difference, key)
        table.add_row(
            name, *["–" if n is None else f"{n}" for n in counts], "–" if change is None else f"{change:+d}", ""
        )
    return table


def measured_in(measured: "Measured") -> str:
    """Return in words what the simulator was fed with."""
    known = {
        "μ": f"{measured.service_rate:.1f} events/s",
        "way through the broker": _milliseconds(measured.transit_s),
        "pause of a moved partition": f"{_milliseconds(measured.pause_s)} (seen {measured.pauses} times)",
        "notice of a move": _milliseconds(measured.notice_s),
        "start-up": _milliseconds(measured.startup_s),
        "stop": _milliseconds(measured.stop_s),
        "age of commits": _milliseconds(measured.commit_age_s),
        "from commit to commit": _milliseconds(measured.commit_interval_s),
        "ticks after whole intervals": _milliseconds(measured.tick_offset_s),
        "replicas at the start": f"{measured.initial_replicas}",
    }
    return "measured in the run: " + ", ".join(f"{name} {value}" for name, value in known.items())


def _milliseconds(value_s: float | None) -> str:
    return "unknown" if value_s is None else f"{1e3 * value_s:.1f} ms"


def _verdict(good: bool, limit: str) -> str:
    return f"within {limit}" if good else f"more than {limit}"
