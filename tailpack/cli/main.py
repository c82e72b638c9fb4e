"""The command line: `tailpack --help`."""

import shlex
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Never

import msgspec
import typer
from confluent_kafka import KafkaException
from rich.console import Console
from rich.table import Table

from contracts.validation import InvalidSettingsError
from tailpack.cli import bench as bench_cli
from tailpack.cli import compare as compare_cli
from tailpack.cli import kafka as kafka_cli
from tailpack.cli import packing as packing_cli
from tailpack.cli import paper as paper_cli
from tailpack.cli import replay as replay_cli
from tailpack.cli import report as report_cli
from tailpack.cli import simulate as simulate_cli
from tailpack.cli import sla as stream_cli
from tailpack.cli import steps as steps_cli
from tailpack.cli import sweep as sweep_cli
from tailpack.cli import taxi as taxi_cli
from tailpack.errors import INTERRUPTED, STOPPED, TailpackError
from tailpack.local.processes import STOPPING

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Event-driven services on Kafka, an autoscaler that decides [b]how many[/b] Payment replicas run and "
    "[b]which partition each one owns[/b], and the measurements that show what that is worth.\n\n"
    "Start with [b]tailpack demo[/b]: two minutes, nothing to set up but Java.",
)
app.add_typer(report_cli.app, name="report")
app.add_typer(kafka_cli.app, name="kafka")
app.add_typer(simulate_cli.app)
app.add_typer(steps_cli.app)
app.add_typer(bench_cli.app, name="bench")
app.add_typer(compare_cli.app)
app.add_typer(paper_cli.app)
app.add_typer(sweep_cli.app)
app.add_typer(packing_cli.app, name="packing")
app.add_typer(replay_cli.app)
app.add_typer(stream_cli.app)
app.add_typer(taxi_cli.app)

Out = Annotated[Path, typer.Option("--out", help="Folder that takes a folder for each run.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print result.json on standard output; everything else on error.")]
Policy = Annotated[str | None, typer.Option(help="Instead of the scenario's policy; see `tailpack policies`.")]
Servers = Annotated[
    str, typer.Option("--bootstrap-servers", help="Your own Kafka, host:port; otherwise an embedded one.")
]
Properties = Annotated[
    str, typer.Option("--client-properties", help="Properties file for TLS and SASL, in librdkafka's names.")
]
WebUi = Annotated[int | None, typer.Option("--web-ui", help="Show Locust's web UI on this port during the run.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the load; equal seeds send equal events.")]


@app.command()
def demo(
    out: Out = Path("out"), policy: Policy = None, as_json: AsJson = False, web_ui: WebUi = None, seed: Seed = None
) -> None:
    """Two minutes of the whole pipeline under a skewed, surging load, scaled live; then the report.

    Exit status 0 only if every order had each of its effects exactly once.
    """
    run(scenario="demo", policy=policy, out=out, as_json=as_json, web_ui=web_ui, seed=seed)


@app.command()
def run(
    name: Annotated[
        str, typer.Argument(metavar="SCENARIO", help="Name (see `tailpack scenarios`) or path of a TOML file.")
    ] = "",
    *,
    scenario: Annotated[str, typer.Option(help="The same, as an option.")] = "",
    policy: Policy = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Put a value over the scenario's: payment.delivery=eager."),
    ] = None,
    out: Out = Path("out"),
    as_json: AsJson = False,
    bootstrap_servers: Servers = "",
    client_properties: Properties = "",
    web_ui: WebUi = None,
    seed: Seed = None,
    duration_s: Annotated[int | None, typer.Option(help="Send only the first seconds of the workload.")] = None,
) -> None:
    """Run a scenario live and judge it.

    A broker started by `tailpack kafka start` is used; otherwise one is started for this run alone. Topics are fresh
    for each run. Exit status 0 only if every event had each of its effects exactly once.
    """
    from bench.scenario import load_scenario  # noqa: PLC0415
    from report.result import Result  # noqa: PLC0415  Spark-side modules only where they are needed
    from tailpack.cli.overrides import parse_overrides  # noqa: PLC0415
    from tailpack.reporting import show, whole  # noqa: PLC0415
    from tailpack.run import Options, Run  # noqa: PLC0415

    if bool(name) == bool(scenario):
        raise TailpackError("name one scenario; `tailpack scenarios` lists them")
    console = Console(stderr=as_json)
    named = {"autoscaler.policy": policy, "seed": seed, "duration_s": duration_s}
    chosen = load_scenario(name or scenario, parse_overrides(changes or ()) | _given(named))
    options = Options(
        out=out,
        command=shlex.join(["tailpack", *sys.argv[1:]]),
        bootstrap_servers=bootstrap_servers,
        client_properties=client_properties,
        web_port=web_ui,
    )
    folder = Run(chosen, options, console).execute()
    result = Result.load(folder)
    show(result, folder, console, as_json=as_json)
    raise typer.Exit(whole(result))


@app.command()
def scenarios(as_json: AsJson = False) -> None:
    """List the scenarios that `--scenario` knows."""
    from bench.scenario import load_scenario, scenario_names  # noqa: PLC0415

    found = [load_scenario(name) for name in scenario_names()]
    if as_json:
        _print_json(found)
        return
    table = Table("scenario", "topology", "seconds", "partitions", "policy", "what it asks", box=None)
    for one in found:
        table.add_row(
            one.name,
            one.topology,
            str(one.duration_s),
            str(one.payment.partitions),
            one.autoscaler.policy,
            one.description,
        )
    Console().print(table)


@app.command()
def policies(as_json: AsJson = False) -> None:
    """List the policies that `--policy` knows."""
    from autoscaler.policies.registry import POLICIES  # noqa: PLC0415

    if as_json:
        _print_json({name: factory.description for name, factory in POLICIES.items()})
        return
    table = Table("policy", "how it decides", box=None)
    for name, factory in POLICIES.items():
        table.add_row(name, factory.description)
    Console().print(table)


@app.command()
def settings() -> None:
    """Print all settings with their defaults, ranges and sentences, as Markdown."""
    from tailpack.settings_page import settings_page  # noqa: PLC0415

    sys.stdout.write(settings_page())


def main() -> None:
    """Run the command line; errors the user can mend are one line and exit status 2, Ctrl-C is one and 130."""
    for stop in STOPPING:
        signal.signal(stop, _interrupt)
    try:
        status = app(standalone_mode=False)  # without its standalone mode, typer returns a command's exit status
        if status == INTERRUPTED:  # typer has made that of a KeyboardInterrupt, or a command that kept its result has
            raise KeyboardInterrupt
        sys.exit(status)
    except (TailpackError, InvalidSettingsError) as wrong:
        problems = wrong.problems if isinstance(wrong, InvalidSettingsError) else [str(wrong)]
        _fail("\n".join(f"tailpack: {problem}" for problem in problems), 2)
    except KafkaException as failed:
        _fail(f"tailpack: Kafka: {failed.args[0].str()}", 2)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail(STOPPED, INTERRUPTED)
    except Exception as wrong:
        if not hasattr(wrong, "format_message"):
            raise
        message = wrong.format_message()  # click's own: a wrong option or argument; empty after the help
        _fail(f"tailpack: {message}" if message else "", 2)


def _given(options: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in options.items() if value is not None}


def _print_json(value: object) -> None:
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")


def _fail(message: str, status: int) -> Never:
    if message:
        Console(stderr=True).print(message, highlight=False, soft_wrap=True, markup=False)
    sys.exit(status)


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
