"""`tailpack demo` and `run`, and the steps of a run as separate commands: `dev load` and `dev jars`."""

import shlex
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console

from tailpack.cli import options
from tailpack.cli.progress import next_step
from tailpack.local.jars import kafka_jars

Namespace = Annotated[
    str,
    typer.Option(
        "--namespace",
        callback=options.checked_name,
        help="Name of the run and prefix of its topics and groups; use a new one for each run.",
    ),
]


def demo(
    *,
    out: options.Out = Path("out"),
    policy: options.Policy = None,
    trace: options.Trace = None,
    as_json: options.AsJson = False,
    web_ui: options.WebUi = None,
    no_browser: options.NoBrowser = False,
    controls: options.Controls = False,
    seed: options.Seed = None,
) -> None:
    """Run the whole pipeline for two minutes under a skewed load with bursts, scale it live, then report.

    Exit status 0 only if every order had each of its effects exactly once.
    """
    changes = options.parse_changes((), policy=policy, seed=seed)
    _run(
        "demo", trace, changes, out, as_json=as_json, web_port=web_ui, fit_load=True, open_page=not no_browser,
        controls=controls,
    )  # fmt: skip


def run(
    scenario: options.Scenario,
    *,
    policy: options.Policy = None,
    trace: options.Trace = None,
    changes: options.Changes = None,
    out: options.Out = Path("out"),
    as_json: options.AsJson = False,
    bootstrap_servers: options.Servers = "",
    client_properties: options.Properties = "",
    web_ui: options.WebUi = None,
    no_browser: options.NoBrowser = False,
    controls: options.Controls = False,
    load_workers: options.LoadWorkers = 1,
    seed: options.Seed = None,
    duration: options.Duration = None,
    latency: options.Latency = None,
    percentile: options.Percentile = None,
    service_time: options.ServiceTime = None,
    startup: options.Startup = None,
    most: options.Max = None,
) -> None:
    """Run a scenario live and report on it.

    It uses the broker of `tailpack kafka start` if that runs, else starts one for this run alone. Each run has its own
    topics. Exit status 0 only if every event had each of its effects exactly once.
    """
    overrides = options.parse_changes(changes, policy=policy, seed=seed, duration_s=duration)
    overrides |= options.slo_changes(latency, percentile, service_time, startup, most)
    _run(
        scenario, trace, overrides, out, as_json=as_json, bootstrap_servers=bootstrap_servers,
        client_properties=client_properties, web_port=web_ui, load_workers=load_workers, open_page=not no_browser,
        controls=controls,
    )  # fmt: skip


def _run(name: str, trace: Path | None, changes: Any, out: Path, *, as_json: bool, **more: Any) -> NoReturn:
    from report.result import Result  # noqa: PLC0415  modules that measure only where they are needed
    from tailpack.reporting import exit_status, show  # noqa: PLC0415
    from tailpack.run import Run  # noqa: PLC0415

    chosen, _ = options.load_with_trace(name, trace, changes)
    console = Console(stderr=as_json)
    folder = Run(chosen, console, out, **more).execute()
    result = Result.load(folder)
    show(result, folder, console, as_json=as_json)
    other = "linear" if result.policy != "linear" else "tail-aware"
    next_step(f"tailpack report {shlex.quote(str(folder))}", f"tailpack run {name} --policy {other}", as_json=as_json)
    raise typer.Exit(exit_status(result))


def load(
    scenario: options.Scenario,
    *,
    bootstrap_servers: options.Address,
    namespace: Namespace,
    client_properties: options.Properties = "",
    out: options.Out = Path("out"),
    policy: Annotated[str | None, typer.Option(help="Policy of the autoscaler; default: the scenario's.")] = None,
    web_ui: options.WebUi = None,
    load_workers: options.LoadWorkers = 1,
    pipeline_partitions: options.PipelinePartitions = None,
    seed: options.Seed = None,
    duration: options.Duration = None,
) -> None:
    """Send a scenario's load to running services, and wait until every event is finished.

    `tailpack report OUT/NAMESPACE` then reports on the run.
    """
    from bench.scenario import load_scenario  # noqa: PLC0415
    from tailpack.run import Run  # noqa: PLC0415

    changes = {"policy": policy, "seed": seed, "duration_s": duration, "pipeline_partitions": pipeline_partitions}
    chosen = load_scenario(scenario, options.parse_changes((), **changes))
    console = Console()
    folder = Run(
        chosen, console, out, bootstrap_servers=bootstrap_servers, client_properties=client_properties,
        web_port=web_ui, load_workers=load_workers, name=namespace,
    ).replay()  # fmt: skip
    console.print(f"report: tailpack report {folder}", highlight=False, soft_wrap=True)


def jars() -> None:
    """Download and verify the jars of Kafka; later starts then need no network."""
    console = Console()
    folder = kafka_jars(lambda message: console.print(message, highlight=False))
    console.print(str(folder), highlight=False, soft_wrap=True)
