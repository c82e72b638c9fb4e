"""`tailpack topics create`: the topics of a run, or the control topics of a group that is scaled, and their rights."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from contracts.connection import Connection
from contracts.topics import CONTROL, ScaledGroup, qualified
from tailpack.cli.options import PipelinePartitions, Properties, complete_scenario
from tailpack.cli.run import checked_name
from tailpack.errors import TailpackError


def create(
    scenario: Annotated[
        str,
        typer.Argument(metavar="[SCENARIO]", help="Whose topics, of a run.", autocompletion=complete_scenario),
    ] = "",
    *,
    config: Annotated[
        Path | None, typer.Option(help="File of `tailpack autoscale`: the control topics of its group.")
    ] = None,
    bootstrap_servers: Annotated[str, typer.Option(help="Kafka's address, host:port; with --config: the file's.")] = "",
    namespace: Annotated[str, typer.Option(help="Prefix of the run's topics and groups. A new one for each run.")] = "",
    client_properties: Properties = "",
    partitions: Annotated[
        int, typer.Option(min=0, help="With --config: create the topic that the group reads, with so many.")
    ] = 0,
    pipeline_partitions: PipelinePartitions = None,
    outputs: Annotated[
        list[str] | None, typer.Option("--output", help="With --config: a topic that replicas write, for the rights.")
    ] = None,
    users: Annotated[
        list[str] | None, typer.Option("--user", metavar="ROLE=NAME", help="Principal of a role, where not its name.")
    ] = None,
    apply_acls: Annotated[
        bool, typer.Option("--apply-acls", help="Create the rights too, not only print them.")
    ] = False,
) -> None:
    """Create topics, those that exist stay as they are; print the rights that each service needs on them.

    Rights are printed as commands of Kafka's own tool, one principal for each service.
    """
    from tailpack.local import acls, topics  # noqa: PLC0415

    if bool(scenario) == bool(config):
        raise TailpackError("name either a scenario or a --config")
    if config:
        from autoscaler.live.start import read  # noqa: PLC0415

        told = read(config, os.environ)
        connection, scaled = told.connection, told.settings
        topics.create_control_topics(connection, scaled, partitions)
        there = ", ".join(qualified(connection.namespace, one) for one in CONTROL)
        rights = acls.of_group(connection.namespace, scaled, outputs or ())
    else:
        from bench.scenario import load_scenario  # noqa: PLC0415

        if not (bootstrap_servers and namespace):
            raise TailpackError("a run's topics need --bootstrap-servers and --namespace")
        connection = Connection(
            bootstrap_servers=bootstrap_servers,
            client_properties=client_properties,
            namespace=checked_name(namespace),
        )
        run = load_scenario(scenario, {"pipeline_partitions": pipeline_partitions})
        count = run.payment.partitions
        topics.create_topics(connection, count, run.pipeline_partitions)
        there = f"{ScaledGroup().topic_in(namespace)} with {count} partitions, and all others of {namespace}.*"
        rights = acls.of_run(namespace)
    named = dict(_pair(text, rights) for text in users or ())
    typer.echo(f"# topics are there: {there}", err=True)
    if apply_acls:
        acls.create(connection, rights, named)
        typer.echo("# these rights are there, too:", err=True)
    for line in acls.commands(rights, named):
        typer.echo(line)


def _pair(text: str, roles: Iterable[str]) -> tuple[str, str]:
    role, equals, name = text.partition("=")
    if not (equals and name and role in roles):
        raise TailpackError(f"--user {text!r}: must be ROLE=NAME; roles are {', '.join(roles)}")
    return role, name
