"""Options that several commands share, and the reading of names, values and units."""

import os
import re
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
import typer

from contracts.settings import duration_s, unknown_name
from contracts.validation import InvalidSettingsError
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from bench.scenario import Scenario as ScenarioFile
    from loadgen.trace import EventTrace
    from loadgen.trace import Trace as TraceFile


EXAMPLES: Final = "for example w1, taxi; `tailpack list scenarios`"


def complete_scenario(incomplete: str) -> list[str]:
    """Return the scenarios that begin so, for the shell."""
    from bench.scenario import scenario_names  # noqa: PLC0415  numpy only where it is needed

    return [name for name in scenario_names() if name.startswith(incomplete.lower())]


def complete_policy(incomplete: str) -> list[str]:
    """Return the policies that begin so, for the shell."""
    from autoscaler.policies.registry import policy_names  # noqa: PLC0415

    return [name for name in policy_names() if name.startswith(incomplete.lower())]


def _folder(folder: Path | None) -> Path | None:
    if folder is not None:
        check_folder(folder)
    return folder


def _quantity(text: str | None) -> Any:
    return text if text is None else _value(text)


def _seconds(text: str) -> int:
    """Read a whole number of seconds, with a unit or without."""
    try:
        found = float(text) if text.replace(".", "", 1).isdecimal() else duration_s(text)
    except ValueError:
        found = 0.0
    if found < 1 or found != int(found):
        raise typer.BadParameter(f"{text!r}: must be whole seconds, for example 90s or 2m")
    return int(found)


def plain(name: str) -> str:
    """Return a name in small letters; a path stays as it is."""
    return name if not name or re.search(r"\.(toml|csv|parquet|py)\b|/", name) else name.lower()


Scenario = Annotated[
    str,
    typer.Argument(
        metavar="SCENARIO", help=f"Name or path of a TOML file; {EXAMPLES}.", autocompletion=complete_scenario,
        callback=plain,
    ),
]  # fmt: skip
Policy = Annotated[
    str | None,
    typer.Option(
        help="Name, static-N, or path.py[:Class], in place of the scenario's; see `tailpack list policies`.",
        autocompletion=complete_policy,
    ),
]
Changes = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Put a value over the scenario's: startup_s=gke, policy.f_up=0.8."),
]
Latency = Annotated[
    str | None,
    typer.Option(
        metavar="DURATION", callback=_quantity, help="Latency target: 500ms, 2s; a bare number means seconds."
    ),
]
Percentile = Annotated[
    float | None, typer.Option(min=0, max=100, help="Share of events that must be within it, %: 99.9.")
]
ServiceTime = Annotated[
    str | None,
    typer.Option(metavar="DURATION", callback=_quantity, help="Time that a replica needs for one event: 5ms."),
]
Startup = Annotated[
    str | None,
    typer.Option(metavar="DURATION", callback=_quantity, help="From the request of a replica until it serves: 25s."),
]
Max = Annotated[int | None, typer.Option("--max", min=1, help="Most replicas; by default one for each partition.")]
Seed = Annotated[int | None, typer.Option(help="Seed of the load and of all chance; equal seeds give equal runs.")]
Duration = Annotated[
    int | None,
    typer.Option("--duration", metavar="TIME", parser=_seconds, help="Send only the first part of the load: 90s, 2m."),
]
PipelinePartitions = Annotated[
    int | None,
    typer.Option(min=1, max=1_000, help="Partitions of the topics keyed by order, in place of the scenario's."),
]
Trace = Annotated[
    Path | None,
    typer.Option(
        help="CSV or Parquet file in place of the scenario's rate and duration: `second,events`, `second,p0,p1,…` or, "
        "event by event, `at_s[,partition][,key]`. Columns p0, p1, … also set partitions and split. Events per second "
        "lie evenly in their second, or by --set spacing=poisson."
    ),
]
Out = Annotated[Path, typer.Option("--out", help="Folder that takes a folder for each run.", callback=_folder)]
IntoDocs = Annotated[
    Path | None, typer.Option("--into", help="Folder that takes the figures of the docs.", callback=_folder)
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object on standard output; all else on error.")]
Processes = Annotated[int, typer.Option(min=0, help="How many; 0: one for each core.")]
SERVERS: Final = "TAILPACK_BOOTSTRAP_SERVERS"
Servers = Annotated[
    str, typer.Option("--bootstrap-servers", envvar=SERVERS, help="Your Kafka, host:port; else one that runs here.")
]
Address = Annotated[str, typer.Option("--bootstrap-servers", envvar=SERVERS, help="Your Kafka, host:port.")]
Properties = Annotated[
    str, typer.Option("--client-properties", help="Properties file for TLS and SASL, in librdkafka's names.")
]
WebUi = Annotated[
    int | None, typer.Option("--web-ui", min=1, max=65535, help="Show Locust's web page on this port during the run.")
]
LoadWorkers = Annotated[int, typer.Option("--load-workers", min=1, max=100, help="Processes that share the load.")]
Master = Annotated[str, typer.Option(help="Spark master; local[*] uses every core.")]


def checked_name(value: str) -> str:
    """Return a name that can be a folder and the first part of a topic's name. Raises BadParameter."""
    if not re.fullmatch(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,99}", value):
        raise typer.BadParameter(f"{value!r}: use letters, digits, '.', '_' and '-', at most 100, no '.' in front")
    return value


def check_folder(folder: Path) -> None:
    """Raise OSError where `folder` is not one, or cannot be made or written. Nothing is made."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not there.is_dir():
        raise NotADirectoryError(20, "Not a directory", str(there))
    if not os.access(there, os.W_OK | os.X_OK):
        raise PermissionError(13, "Permission denied", str(there))


def known(name: str, names: Iterable[str], *, what: str) -> str:
    """Return the name in small letters. Raises TailpackError for an unknown one, with the nearest name."""
    if (found := plain(name)) in (choices := list(names)):
        return found
    raise TailpackError(f"{what} {name!r} is {unknown_name(found, choices)}")


def usable_policy(name: str) -> str:
    """Return the name of a policy. Raises TailpackError for one that is unknown or cannot be used."""
    from autoscaler.policies.registry import policy_factory  # noqa: PLC0415  numpy only where needed

    try:
        policy_factory(plain(name))
    except ValueError as refused:
        raise TailpackError(f"policy {refused}") from refused
    return plain(name)


def load_scenario_with(
    name: str, trace: Path | None, asked: dict[str, Any]
) -> "tuple[ScenarioFile, TraceFile | EventTrace | None]":
    """Return a scenario with what is asked for, and its trace, which it plays: `trace`, or that of its own.

    Raises InvalidSettingsError for either.
    """
    from bench.scenario import load_scenario  # noqa: PLC0415  numpy only where it is needed
    from loadgen.trace import read_trace  # noqa: PLC0415

    given = {"load.trace": str(trace.absolute()), "load.spacing": "smooth"} if trace else {}
    chosen = load_scenario(name, given | asked)
    if not chosen.load.trace:
        return chosen, None
    first_s = chosen.duration_s if "duration_s" in asked else None
    found = read_trace(Path(chosen.load.trace), chosen.payment.partitions, first_s=first_s)
    wanted = asked.get("payment.partitions", asked.get("partitions"))
    if wanted is not None and (found.partitions or 0) > wanted:
        raise InvalidSettingsError([f"{found.name}: names {found.partitions} partitions, --set partitions={wanted}"])
    return chosen.playing(found), found


def parse_changes(texts: Iterable[str] | None, **named: Any) -> dict[str, Any]:
    """Return key → value for texts such as `payment.heartbeat_s=3` or `policy=linear`; the last of one key counts.

    A value is read as TOML (numbers, true, false, quoted text), else as plain text.
    named: values of other options, with _ for the dot of a key; None is left out.
    Raises TailpackError for a text without a key or without a value.
    """
    changes: dict[str, Any] = {}
    for text in texts or ():
        key, equals, value = (part.strip() for part in text.partition("="))
        if not (key and equals and value):
            raise TailpackError(f"--set {text!r}: must be KEY=VALUE, for example payment.heartbeat_s=3")
        changes[key] = _value(value)
    return changes | {key: value for key, value in named.items() if value is not None}


def first_class(
    latency: str | None, percentile: float | None, service_time: str | None, startup: str | None, most: int | None
) -> dict[str, Any]:
    """Return these options as changes of a scenario: dotted key → value, for `parse_changes`."""
    given = {
        "target.latency_target_s": latency,
        "target.percentile": None if percentile is None else round(percentile / 100, 12),
        "payment.service_time_s": service_time,
        "simulation.startup_s": startup,
        "autoscaler.max_replicas": most,
    }
    return {key: value for key, value in given.items() if value is not None}


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def print_json(value: object, *, indented: bool = False) -> None:
    """Print one object on standard output, on one line where it is not indented."""
    text = msgspec.json.encode(value)
    sys.stdout.write((msgspec.json.format(text, indent=1) if indented else text).decode() + "\n")
