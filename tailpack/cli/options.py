"""Options that several commands share, and functions that parse names, values and units."""

import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from contracts.settings import duration_s, unknown_name
from contracts.validation import InvalidSettingsError
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from autoscaler.live.settings import AutoscalerSettings
    from bench.scenario import Scenario as ScenarioFile
    from contracts.connection import Connection
    from loadgen.trace import EventTrace
    from loadgen.trace import Trace as TraceFile


EXAMPLES: Final = "for example w1, taxi; `tailpack list scenarios`"


def complete_scenario(incomplete: str) -> list[str]:
    """Return the scenarios that begin with this text, for shell completion."""
    from bench.scenario import scenario_names  # noqa: PLC0415  numpy only where it is needed

    return [name for name in scenario_names() if name.startswith(incomplete.lower())]


def complete_policy(incomplete: str) -> list[str]:
    """Return the policies that begin with this text, for shell completion."""
    from autoscaler.policies.registry import policy_names  # noqa: PLC0415

    return [name for name in policy_names() if name.startswith(incomplete.lower())]


def _folder(folder: Path | None) -> Path | None:
    if folder is not None:
        check_folder(folder)
    return folder


def _quantity(text: str | None) -> Any:
    return text if text is None else _value(text)


def whole_s(text: str) -> int:
    """Parse a whole number of seconds, with or without a unit."""
    try:
        seconds = float(text) if text.replace(".", "", 1).isdecimal() else duration_s(text)
    except ValueError:
        seconds = 0.0
    if seconds < 1 or seconds != int(seconds):
        raise typer.BadParameter(f"{text!r}: must be whole seconds, for example 90s or 2m")
    return int(seconds)


def lowercase(name: str) -> str:
    """Return a name in lower case, or a path unchanged."""
    return name if not name or re.search(r"\.(toml|csv|parquet|py)\b|/", name) else name.lower()


Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help=f"Name or path of a TOML file; {EXAMPLES}.", autocompletion=complete_scenario,
        callback=lowercase,
    ),
]  # fmt: skip
Policy = Annotated[
    str | None,
    typer.Option(
        help="Policy instead of the scenario's: a name, static-N, or path.py[:Class]; see `tailpack list policies`.",
        autocompletion=complete_policy,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Override a scenario's value: startup_s=gke, policy.f_up=0.8."),
]
Latency = Annotated[
    str | None,
    typer.Option(metavar="DURATION", callback=_quantity, help="Latency target (W): 500ms, 2s; without unit: seconds."),
]
Percentile = Annotated[float | None, typer.Option(min=0, max=100, help="Share of events that must be in time, %.")]
ServiceTime = Annotated[
    str | None,
    typer.Option(metavar="DURATION", callback=_quantity, help="Time that a replica needs to serve one event: 5ms."),
]
Startup = Annotated[
    str | None,
    typer.Option(metavar="DURATION", callback=_quantity, help="Time from the request for a replica until it serves."),
]
Max = Annotated[int | None, typer.Option("--max", min=1, help="Maximum replica count; default: one per partition.")]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random; equal seeds give equal runs.")]
Duration = Annotated[
    int | None,
    typer.Option("--duration", metavar="TIME", parser=whole_s, help="Send only the first part of the load: 90s, 2m."),
]
PipelinePartitions = Annotated[
    int | None, typer.Option(min=1, max=1_000, help="Partitions of each topic keyed by order; default: the scenario's.")
]
Trace = Annotated[
    Path | None,
    typer.Option(
        help="CSV or Parquet file that replaces the scenario's rate and duration. Columns: `second,events`, "
        "`second,p0,p1,…` (also sets partitions and split), or one row per event, `at_s[,partition][,key]`. Counts are "
        "spread evenly over their second; --set spacing=poisson spreads them randomly."
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Folder in which each run gets a folder.", callback=_folder)]
Into = Annotated[
    Path | None,
    typer.Option("--into", help="Folder for results. Cases that it has are not measured again.", callback=_folder),
]
Config = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG.toml]", help="File of settings; TAILPACK_… variables override it.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object; all else goes to standard error.")]
Processes = Annotated[int, typer.Option(min=0, help="Number of worker processes; 0: one per core.")]
ANSWER_S: Final = 10.0
"""Longest wait for the brokers."""
SERVERS: Final = "TAILPACK_BOOTSTRAP_SERVERS"
Servers = Annotated[
    str,
    typer.Option("--bootstrap-servers", envvar=SERVERS, help="Your Kafka, host:port; default: on this machine."),
]
Address = Annotated[str, typer.Option("--bootstrap-servers", envvar=SERVERS, help="Your Kafka, host:port.")]
Properties = Annotated[str, typer.Option("--client-properties", help="Properties file of librdkafka for TLS, SASL.")]
WebUi = Annotated[int | None, typer.Option("--web-ui", min=1, max=65535, help="Port of Locust's page during the run.")]
NoBrowser = Annotated[bool, typer.Option("--no-browser", help="Do not open the live page in a browser.")]
Controls = Annotated[
    bool,
    typer.Option("--controls", help="Let the live page change the load, kill replicas, and pause the autoscaler."),
]
LoadWorkers = Annotated[int, typer.Option("--load-workers", min=1, max=100, help="Processes that send the load.")]
Master = Annotated[str, typer.Option(help="Master of Spark, such as local[*]; default: only for large runs.")]


def group_settings(config: Path | None) -> "tuple[Connection, AutoscalerSettings]":
    """Return connection and settings of a group from the file of its autoscaler, or else from the environment alone.

    Without a file, settings that only a running autoscaler needs may be missing. Raises InvalidSettingsError.
    """
    from autoscaler.live.settings import AutoscalerSettings  # noqa: PLC0415  clients only where they are needed
    from contracts.connection import read_settings  # noqa: PLC0415

    unused = {} if config else {"TAILPACK_POLICY": "static", "TAILPACK_STATE_DIR": "."}
    return read_settings({**unused, **os.environ}, AutoscalerSettings, config)


def require_topics(
    connection: "Connection", topics: Mapping[str, int], remedy: str = "create it with tailpack topics create"
) -> None:
    """Raise TailpackError unless these topics exist within ANSWER_S, with at least these numbers of partitions."""
    from contracts.preflight import PreflightError, TopicNeed, check_topics  # noqa: PLC0415

    needs = {topic: TopicNeed(least, may_grow=True, remedy=remedy) for topic, least in topics.items()}
    try:
        check_topics(connection, needs, ANSWER_S)
    except PreflightError as error:
        raise TailpackError(str(error)) from error


def checked_name(value: str) -> str:
    """Return a name that can be a folder and the first part of a topic's name. Raises BadParameter."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", value):
        raise typer.BadParameter(f"{value!r}: use at most 100 letters, digits, '.', '_' and '-'; do not begin with '.'")
    return value


def check_folder(folder: Path) -> None:
    """Raise OSError if `folder` cannot be created or written. This function creates nothing."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not existing.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(existing))
    if not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(existing))


def match_name(name: str, names: Iterable[str], *, what: str) -> str:
    """Return the name in lower case. Raises TailpackError with the nearest name if it is not one of `names`."""
    if (lowered := lowercase(name)) in (choices := list(names)):
        return lowered
    raise TailpackError(f"{what} {name!r} is {unknown_name(lowered, choices)}")


def check_policy(name: str) -> str:
    """Return the name of a policy. Raises TailpackError if the policy is unknown or cannot be used."""
    from autoscaler.policies.registry import policy_factory  # noqa: PLC0415  numpy only where needed

    try:
        policy_factory(lowercase(name))
    except ValueError as error:
        raise TailpackError(f"policy {error}") from error
    return lowercase(name)


def load_with_trace(
    name: str, trace: Path | None, changes: dict[str, Any], *, in_parts: bool = False
) -> "tuple[ScenarioFile, TraceFile | EventTrace | None]":
    """Return a scenario with `changes`, and its trace: `trace`, or else the one that the scenario names.

    in_parts: the trace may be longer than a run, so the scenario does not get its duration and partitions.
    Raises InvalidSettingsError if either is invalid.
    """
    from bench.scenario import load_scenario  # noqa: PLC0415  numpy only where it is needed
    from loadgen.trace import read_trace  # noqa: PLC0415

    trace_settings = {"load.trace": str(trace.absolute()), "load.spacing": "smooth"} if trace else {}
    chosen = load_scenario(name, trace_settings | changes)
    if not chosen.load.trace:
        return chosen, None
    first_s = chosen.duration_s if "duration_s" in changes else None
    found = read_trace(Path(chosen.load.trace), chosen.payment.partitions, first_s=first_s)
    wanted = changes.get("payment.partitions", changes.get("partitions"))
    if wanted is not None and (found.partitions or 0) > wanted:
        raise InvalidSettingsError([f"{found.name}: {found.partitions} partitions exceed --set partitions={wanted}"])
    return chosen if in_parts else chosen.with_trace(found), found


def parse_changes(texts: Iterable[str] | None, **named: Any) -> dict[str, Any]:
    """Return key → value of `--set` texts such as `policy=linear`. The last value of a key wins.

    A value that is valid TOML (number, true, false, quoted text) is parsed, any other value is plain text.
    named: values of other options; None is left out. Raises TailpackError if a text lacks its key or its value.
    """
    changes: dict[str, Any] = {}
    for text in texts or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise TailpackError(f"--set {text!r}: must be KEY=VALUE, for example payment.heartbeat_s=3")
        changes[key] = _value(value)
    return changes | {key: value for key, value in named.items() if value is not None}


def slo_changes(
    latency: str | None, percentile: float | None, service_time: str | None, startup: str | None, most: int | None
) -> dict[str, Any]:
    """Return these options as changes of a scenario: dotted key → value."""
    changes = {
        "target.latency_target_s": latency,
        "target.percentile": None if percentile is None else round(percentile / 100, 12),
        "payment.service_time_s": service_time,
        "simulation.startup_s": startup,
        "autoscaler.max_replicas": most,
    }
    return {key: value for key, value in changes.items() if value is not None}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (ValueError, RecursionError):
        return text


def print_json(value: object) -> None:
    """Print an object as one line of JSON on standard output."""
    sys.stdout.write(msgspec.json.encode(value).decode() + "\n")
