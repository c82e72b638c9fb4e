"""`tailpack sla`: the SLA share of each minute, while a run goes on."""

from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.report_job import spark_job
from tailpack.reporting import check_run

END_DEADLINE_S: Final = 30.0
"""So that it leaves its checkpoint whole."""


def sla(
    run: Annotated[Path | None, typer.Argument(metavar="RUN_DIR", help="Folder of a run, over or not.")] = None,
    *,
    topic: Annotated[str, typer.Option(help="Instead of a run: a timeline topic.")] = "",
    bootstrap_servers: Annotated[str, typer.Option(help="With --topic: your own Kafka, host:port.")] = "",
    client_properties: Annotated[str, typer.Option(help="With --topic: properties file for TLS and SASL.")] = "",
    latency_target_s: Annotated[float, typer.Option(help="With --topic; a run brings its own.")] = 0.5,
    window: Annotated[int, typer.Option(help="Length of a window, seconds.")] = 60,
    delay: Annotated[float, typer.Option(help="How long a window waits for its events, seconds.")] = 10.0,
    out: Annotated[Path | None, typer.Option("--out", help="Folder of windows and checkpoint [RUN_DIR/sla].")] = None,
    once: Annotated[bool, typer.Option("--once", help="Count what is there now, and end.")] = False,
    ended: Annotated[bool, typer.Option("--ended", help="Nothing more comes: close every window.")] = False,
    master: Annotated[str, typer.Option(help="Spark master; local[*] uses every core.")] = "local[2]",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object for each window.")] = False,
) -> None:
    """Print how many events of each window kept the promise, as soon as it is over, until the run is.

    Each window is counted once. The same command goes on where it was stopped: the folder holds a checkpoint.
    """
    if (run is None) == (not topic):
        raise TailpackError("name the folder of a run, or a topic with --topic")
    folder = out or (run / "sla" if run else Path("out") / f"sla-{topic}")
    flags = [name for name, wanted in (("--once", once), ("--ended", ended), ("--json", as_json)) if wanted]
    arguments = [*flags, "--out", str(folder), "--window", str(window), "--delay", str(delay), "--master", master]
    if run:
        check_run(run)
        arguments.append(str(run))
    else:
        arguments += [str(folder), "--topic", topic, "--latency-target-s", str(latency_target_s)]
        arguments += ["--bootstrap-servers", _address(bootstrap_servers), "--client-properties", client_properties]
    say = Console(stderr=True).print
    with spark_job(arguments, lambda said: say(said, highlight=False), end_within_s=END_DEADLINE_S) as job:
        raise typer.Exit(job.wait())


def _address(named: str) -> str:
    address = named or Broker().address()
    if not address:
        raise TailpackError("no Kafka runs here: name one with --bootstrap-servers, or: tailpack kafka start")
    return address
