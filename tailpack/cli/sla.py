"""`tailpack sla`: the SLA share of each minute, while a run goes on."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from contracts.processes import uninterrupted
from report.run_info import RUN_FILE
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.jars import ensure, java
from tailpack.local.processes import end_family

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
        if not (run / RUN_FILE).exists():
            raise TailpackError(f"{run} is not the folder of a run: it holds no {RUN_FILE}")
        arguments.append(str(run))
    else:
        arguments += [str(folder), "--topic", topic, "--latency-target-s", str(latency_target_s)]
        arguments += ["--bootstrap-servers", _address(bootstrap_servers), "--client-properties", client_properties]
    raise typer.Exit(_job(arguments))


def _address(named: str) -> str:
    address = named or Broker().address()
    if not address:
        raise TailpackError("no Kafka runs here: name one with --bootstrap-servers, or: tailpack kafka start")
    return address


def _job(arguments: list[str]) -> int:
    """Run the job as a process whose JVM ends with it; return its exit status. It writes its own lines and errors."""
    java()
    jars = ensure("spark", lambda said: Console(stderr=True).print(said, highlight=False))
    command = [sys.executable, "-m", "report.spark", *arguments, "--jars", str(jars)]
    job: subprocess.Popen[bytes] | None = None
    try:
        with uninterrupted():
            job = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=True, env=os.environ)
        return job.wait()
    finally:
        if job:
            with uninterrupted():
                end_family(job, END_DEADLINE_S)
