"""`tailpack kafka` runs an embedded broker. `tailpack topics create` creates topics and rights of a run or a group."""

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contracts.connection import Connection
from contracts.topics import CONTROL, ScaledGroup, qualified
from tailpack.cli.options import PipelinePartitions, Properties, Servers, checked_name, complete_scenario, lowercase
from tailpack.errors import TailpackError
from tailpack.local.broker import Broker
from tailpack.local.jars import java, kafka_jars

Folder = Annotated[Path | None, typer.Option("--folder", help="Folder of its data, configuration and log.")]


def start(
    folder: Folder = None,
    port: Annotated[
        int,
        typer.Option(min=0, max=65535, help="Port of the first broker; 0: the port of its last start, or a free one."),
    ] = 0,
    brokers: Annotated[
        int | None,
        typer.Option(
            min=1, max=9, help="Number of brokers; with 3, each event has 3 copies.", show_default="1, or as before"
        ),
    ] = None,
    planned: Annotated[
        bool | None, typer.Option(help="Assignor for consumers = assigned.", show_default="no, or as before")
    ] = None,
) -> None:
    """Start brokers (KRaft nodes) that run until `tailpack kafka stop`; print their addresses."""
    console = Console()
    kafka = Broker(folder, brokers, is_planned=planned)
    kafka_jars(lambda sentence: console.print(sentence, highlight=False))
    with console.status("starting Apache Kafka"):
        address = kafka.start(port)
    console.print(f"{address}  (log: {kafka.logs})", highlight=False, soft_wrap=True)


def stop(folder: Folder = None) -> None:
    """Stop every broker cleanly; the data remain."""
    kafka = Broker(folder)
    if kafka.address() is None:
        Console().print(f"no broker with data in {kafka.folder} runs", highlight=False)
        return
    kafka.stop()
    Console().print("stopped", highlight=False)


def status(folder: Folder = None) -> None:
    """Show whether each broker runs, and its address. Exit status 3 unless all run."""
    kafka = Broker(folder)
    if kafka.address() is None:
        Console().print(f"no broker with data in {kafka.folder} runs; start one: tailpack kafka start", highlight=False)
        raise typer.Exit(3)
    for number, node in kafka.nodes.items():
        state = f"up    pid {node.pid}" if node.pid else "down"
        line = f"{kafka.addresses[number]}  {state}  (log: {node.log})"
        Console().print(line, highlight=False, soft_wrap=True)
    if not all(node.pid for node in kafka.nodes.values()):
        raise typer.Exit(3)


def groups(context: typer.Context, bootstrap_servers: Servers = "") -> None:
    """Run Kafka's kafka-consumer-groups with its own options, such as --describe --all-groups --members."""
    address = bootstrap_servers or Broker().address()
    if not address:
        raise TailpackError("no broker runs; pass --bootstrap-servers, or start one: tailpack kafka start")
    tool = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"
    command = [java(), "-cp", str(kafka_jars() / "*"), tool, "--bootstrap-server", address, *context.args]
    raise typer.Exit(subprocess.run(command, check=False).returncode)


def create(
    scenario: Annotated[
        str,
        typer.Argument(
            metavar="[SCENARIO]",
            help="A scenario: create the topics of its run.",
            callback=lowercase,
            autocompletion=complete_scenario,
        ),
    ] = "",
    *,
    config: Annotated[
        Path | None, typer.Option(help="File of `tailpack autoscale`: create the control topics of its group.")
    ] = None,
    bootstrap_servers: Servers = "",
    namespace: Annotated[
        str, typer.Option(help="Prefix of the run's topics and groups; use a new one for each run.")
    ] = "",
    client_properties: Properties = "",
    partitions: Annotated[
        int, typer.Option(min=0, help="With --config: also create the group's topic, with this many partitions.")
    ] = 0,
    pipeline_partitions: PipelinePartitions = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--output", help="With --config: topic that the replicas may write. Repeatable.")
    ] = None,
    users: Annotated[
        list[str] | None,
        typer.Option(
            "--user", metavar="ROLE=NAME", help="Principal of a role; default: the name of the role. Repeatable."
        ),
    ] = None,
    apply_acls: Annotated[
        bool, typer.Option("--apply-acls", help="Create the rights, instead of only printing them.")
    ] = False,
) -> None:
    """Create topics, and print the rights (ACLs) that each service needs. Existing topics remain unchanged.

    Rights are printed as commands of kafka-acls, with one principal for each service.
    """
    from tailpack.local import acls, topics  # noqa: PLC0415

    if bool(scenario) == bool(config):
        raise TailpackError("pass either a scenario or --config, not both")
    if config:
        from autoscaler.live.configuration import read  # noqa: PLC0415

        configured = read(config, os.environ)
        connection, scaled = configured.connection, configured.settings
        topics.create_control_topics(connection, scaled, partitions)
        created = ", ".join(qualified(connection.namespace, topic) for topic in CONTROL)
        rights = acls.of_group(connection.namespace, scaled, outputs or (), consumers=configured.settings.consumers)
    else:
        from bench.scenario import load_scenario  # noqa: PLC0415

        if not (bootstrap_servers and namespace):
            raise TailpackError("a run's topics need --bootstrap-servers and --namespace")
        reach = {"bootstrap_servers": bootstrap_servers, "client_properties": client_properties}
        connection = Connection(**reach, namespace=checked_name(namespace))
        run = load_scenario(scenario, {"pipeline_partitions": pipeline_partitions})
        count = run.payment.partitions
        topics.create_topics(connection, count, run.pipeline_partitions)
        created = f"{ScaledGroup().topic_in(namespace)} with {count} partitions, and all others of {namespace}.*"
        rights = acls.of_run(namespace)
    named = dict(_pair(text, rights) for text in users or ())
    typer.echo(f"# topics exist: {created}", err=True)
    if apply_acls:
        acls.create(connection, rights, named)
        typer.echo("# these rights exist, too:", err=True)
    for line in acls.commands(rights, named):
        typer.echo(line)


def _pair(text: str, roles: Iterable[str]) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not (equals and name and role in roles):
        raise TailpackError(f"--user {text!r}: must be ROLE=NAME; roles are {', '.join(roles)}")
    return role, name
