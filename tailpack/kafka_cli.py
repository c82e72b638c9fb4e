"""`tailpack kafka`: an embedded broker for one's own experiments."""

import subprocess
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from tailpack.broker import Broker
from tailpack.errors import TailpackError
from tailpack.jars import classpath, ensure
from tailpack.java import java
from tailpack.places import default_broker_folder

app = typer.Typer(
    no_args_is_help=True, help="An embedded Apache Kafka for your own experiments; `tailpack run` uses it."
)

Folder = Annotated[Path | None, typer.Option("--folder", help="Where its data, configuration and log live.")]


@app.command()
def start(
    folder: Folder = None,
    port: Annotated[int, typer.Option(help="Port on 127.0.0.1; 0: that of last time, or a free one.")] = 0,
) -> None:
    """Start a broker (one KRaft node) that stays until `tailpack kafka stop`; print its address."""
    console = Console()
    ensure("kafka", lambda sentence: console.print(sentence, highlight=False))
    broker = Broker(folder or default_broker_folder())
    with console.status("starting Apache Kafka"):
        address = broker.start(port)
    console.print(f"{address}  (log: {broker.log})", highlight=False, soft_wrap=True)


@app.command()
def stop(folder: Folder = None) -> None:
    """Stop the broker cleanly; its data stay."""
    broker = Broker(folder or default_broker_folder())
    if broker.address() is None:
        Console().print(f"no broker runs from {broker.folder}", highlight=False)
        return
    broker.stop()
    Console().print("stopped", highlight=False)


@app.command()
def status(folder: Folder = None) -> None:
    """Tell whether the broker runs, and where. Exit status 3 when it does not."""
    broker = Broker(folder or default_broker_folder())
    address = broker.address()
    if address is None:
        Console().print(f"no broker runs from {broker.folder}; start one: tailpack kafka start", highlight=False)
        raise typer.Exit(3)
    Console().print(f"{address}  pid {broker.pid}  (log: {broker.log})", highlight=False, soft_wrap=True)


@app.command("consumer-groups", context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def consumer_groups(
    context: typer.Context,
    bootstrap_servers: Annotated[
        str, typer.Option(help="host:port; otherwise the broker of `tailpack kafka start`.")
    ] = "",
) -> None:
    """Kafka's own kafka-consumer-groups; its options follow, such as --describe --all-groups --members."""
    address = bootstrap_servers or Broker(default_broker_folder()).address()
    if not address:
        raise TailpackError("no broker runs; name one with --bootstrap-servers, or start one: tailpack kafka start")
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = [java(), "-cp", classpath(ensure("kafka")), tool, "--bootstrap-server", address, *context.args]
    raise typer.Exit(subprocess.run(command, check=False).returncode)
