"""The steps of a run one by one, for those who start the processes themselves: containers, a cluster, by hand."""

import re
import shlex
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contracts.connection import Connection
from tailpack.local.jars import Bundle, ensure

app = typer.Typer(no_args_is_help=True)
topics = typer.Typer(no_args_is_help=True, help="Topics of a run that is put together by hand.")
app.add_typer(topics, name="topics")


def _name(value: str) -> str:
    """Let through what can be both a folder and the first part of a topic's name."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", value):
        raise typer.BadParameter(f"{value!r}: use letters, digits, '.', '_' and '-', at most 100, no '.' in front")
    return value


Scenario = Annotated[str, typer.Option("--scenario", help="Name (see `tailpack scenarios`) or path of a TOML file.")]
Servers = Annotated[str, typer.Option("--bootstrap-servers", help="Kafka's address, host:port.")]
Properties = Annotated[
    str, typer.Option("--client-properties", help="Properties file for TLS and SASL, in librdkafka's names.")
]
Namespace = Annotated[
    str,
    typer.Option(
        "--namespace", callback=_name, help="Name of the run: prefix of its topics and groups. A new one for each run."
    ),
]


@topics.command()
def create(
    *, scenario: Scenario, bootstrap_servers: Servers, namespace: Namespace, client_properties: Properties = ""
) -> None:
    """Create the topics of a run; those that exist stay as they are."""
    from bench.scenario import load_scenario  # noqa: PLC0415  numpy and policies only where they are needed
    from tailpack.local.topics import create_topics  # noqa: PLC0415

    partitions = load_scenario(scenario).payment.partitions
    connection = Connection(
        bootstrap_servers=bootstrap_servers, client_properties=client_properties, namespace=namespace
    )
    create_topics(connection, partitions)
    Console().print(f"topics {namespace}.* are there, payments.requested with {partitions} partitions", highlight=False)


@app.command()
def load(
    *,
    scenario: Scenario,
    bootstrap_servers: Servers,
    namespace: Namespace,
    client_properties: Properties = "",
    out: Annotated[Path, typer.Option("--out", help="Folder that takes the run's folder, OUT/NAMESPACE.")] = Path(
        "out"
    ),
    policy: Annotated[str | None, typer.Option(help="What the autoscaler runs, where not the scenario's.")] = None,
    web_ui: Annotated[int | None, typer.Option("--web-ui", help="Port for Locust's web UI.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of the load; equal seeds send equal events.")] = None,
    duration_s: Annotated[int | None, typer.Option(help="Send only the first seconds of the workload.")] = None,
) -> None:
    """Send a scenario's load to services that run already, and wait until all of it is finished.

    Then `tailpack report OUT/NAMESPACE` reports on the run.
    """
    from bench.scenario import load_scenario  # noqa: PLC0415
    from tailpack.run import Options, Run  # noqa: PLC0415

    chosen = load_scenario(scenario, {"autoscaler.policy": policy, "seed": seed, "duration_s": duration_s})
    options = Options(
        out=out,
        command=shlex.join(["tailpack", *sys.argv[1:]]),
        bootstrap_servers=bootstrap_servers,
        client_properties=client_properties,
        web_port=web_ui,
        name=namespace,
    )
    console = Console()
    folder = Run(chosen, options, console).replay()
    console.print(f"report on it: tailpack report {folder}", highlight=False, soft_wrap=True)


@app.command()
def jars(bundle: Annotated[Bundle, typer.Argument(help="What they are for.")]) -> None:
    """Fetch and verify the jars of Kafka or of Spark's connector, so that later starts need no network."""
    console = Console()
    folder = ensure(bundle, lambda said: console.print(said, highlight=False))
    console.print(str(folder), highlight=False, soft_wrap=True)
