"""`tailpack kafka`: an embedded broker for one's own experiments."""

import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tailpack.cli.options import Servers
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.jars import ensure, java

Folder = Annotated[Path | None, typer.Option("--folder", help="Where its data, configuration and log live.")]


def start(
    folder: Folder = None,
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="Of the first broker, on 127.0.0.1; 0: as last time, or free.")
    ] = 0,
    brokers: Annotated[
        int | None,
        typer.Option(min=1, max=9, help="How many; with 3, each event has 3 copies.", show_default="1, or as before"),
    ] = None,
) -> None:
    """Start brokers (KRaft nodes) that stay until `tailpack kafka stop`; print their addresses."""
    console = Console()
    kafka = Broker(folder, brokers)
    ensure("kafka", lambda sentence: console.print(sentence, highlight=False))
    with console.status("starting Apache Kafka"):
        address = kafka.start(port)
    console.print(f"{address}  (log: {kafka.logs})", highlight=False, soft_wrap=True)


def stop(folder: Folder = None) -> None:
    """Stop every broker cleanly; their data stay."""
    kafka = Broker(folder)
    if kafka.address() is None:
        Console().print(f"no broker runs from {kafka.folder}", highlight=False)
        return
    kafka.stop()
    Console().print("stopped", highlight=False)


def status(folder: Folder = None) -> None:
    """Show whether each broker runs, and its address. Exit status 3 unless all run."""
    kafka = Broker(folder)
    if kafka.address() is None:
        Console().print(f"no broker runs from {kafka.folder}; start one: tailpack kafka start", highlight=False)
        raise typer.Exit(3)
    for number, node in kafka.nodes.items():
        state = f"up    pid {node.pid}" if node.pid else "down"
        line = f"{kafka.addresses[number]}  {state}  (log: {node.log})"
        Console().print(line, highlight=False, soft_wrap=True)
    if not all(node.pid for node in kafka.nodes.values()):
        raise typer.Exit(3)


def groups(
    context: typer.Context,
    bootstrap_servers: Servers = "",
) -> None:
    """Run Kafka's own kafka-consumer-groups; its options follow, such as --describe --all-groups --members."""
    address = bootstrap_servers or Broker().address()
    if not address:
        raise TailpackError("no broker runs; name one with --bootstrap-servers, or start one: tailpack kafka start")
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = [java(), "-cp", str(ensure("kafka") / "*"), tool, "--bootstrap-server", address, *context.args]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
