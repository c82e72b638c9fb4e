"""`tailpack kafka`: an embedded broker for one's own experiments."""

import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tailpack.errors import TailpackError
from tailpack.local.cluster import Cluster
from tailpack.local.jars import classpath, ensure
from tailpack.local.java import java
from tailpack.local.places import default_broker_folder

Folder = Annotated[Path | None, typer.Option("--folder", help="Where its data, configuration and log live.")]


def start(
    folder: Folder = None,
    port: Annotated[
        int,
        typer.Option(
            min=0,
            max=65535,
            help="Port on 127.0.0.1, and those after it for further brokers; 0: as last time, or free.",
        ),
    ] = 0,
    brokers: Annotated[
        int | None,
        typer.Option(min=1, max=9, help="How many; with 3, each event has 3 copies.", show_default="1, or as before"),
    ] = None,
) -> None:
    """Start brokers (KRaft nodes) that stay until `tailpack kafka stop`; print their addresses."""
    console = Console()
    cluster = Cluster(folder or default_broker_folder(), brokers)
    ensure("kafka", lambda sentence: console.print(sentence, highlight=False))
    with console.status("starting Apache Kafka"):
        address = cluster.start(port)
    console.print(f"{address}  (log: {cluster.logs})", highlight=False, soft_wrap=True)


def stop(folder: Folder = None) -> None:
    """Stop every broker cleanly; their data stay."""
    cluster = Cluster(folder or default_broker_folder())
    if cluster.address() is None:
        Console().print(f"no broker runs from {cluster.folder}", highlight=False)
        return
    cluster.stop()
    Console().print("stopped", highlight=False)


def status(folder: Folder = None) -> None:
    """Tell of each broker whether it runs, and where. Exit status 3 unless all of them do."""
    cluster = Cluster(folder or default_broker_folder())
    if cluster.address() is None:
        Console().print(f"no broker runs from {cluster.folder}; start one: tailpack kafka start", highlight=False)
        raise typer.Exit(3)
    for number, broker in cluster.nodes.items():
        state = f"up    pid {broker.pid}" if broker.pid else "down"
        line = f"{cluster.addresses[number]}  {state}  (log: {broker.log})"
        Console().print(line, highlight=False, soft_wrap=True)
    if not all(broker.pid for broker in cluster.nodes.values()):
        raise typer.Exit(3)


def consumer_groups(
    context: typer.Context,
    bootstrap_servers: Annotated[
        str, typer.Option(help="host:port; otherwise the broker of `tailpack kafka start`.")
    ] = "",
) -> None:
    """Kafka's own kafka-consumer-groups; its options follow, such as --describe --all-groups --members."""
    address = bootstrap_servers or Cluster(default_broker_folder()).address()
    if not address:
        raise TailpackError("no broker runs; name one with --bootstrap-servers, or start one: tailpack kafka start")
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = [java(), "-cp", classpath(ensure("kafka")), tool, "--bootstrap-server", address, *context.args]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
