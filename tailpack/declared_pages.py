"""docs/settings.md and docs/metrics.md, made from the declarations of settings and metrics."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator
from dataclasses import Field, fields
from types import ModuleType
from typing import Any, Final

from autoscaler.keda import settings as of_keda
from autoscaler.live import metrics as of_autoscaler
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.registry import POLICIES
from autoscaler.shadow import settings as of_shadow
from bench.sections import SECTIONS, STAGES, Stage
from contracts.connection import Connection
from contracts.logs import LogSettings
from contracts.metrics import Declared
from contracts.settings import DAY_S, Settings, choices, declaration, kinds
from loadgen.drivers import sender as of_generator
from loadgen.spec import DriverSettings
from services.common import process as of_services
from services.common.faust_app import ServiceSettings
from services.common.traces import TraceSettings
from services.consumer import Options
from services.consumer import metrics as of_replicas
from services.consumer.environment import ConsumerSettings
from services.order.__main__ import OrderSettings
from services.payment.replica import ReplicaSettings
from tailpack.cli.catalogue import is_required, sentences

PROCESSES: Final[dict[str, type[Settings]]] = {
    "every process: the way to Kafka": Connection,
    "every process: its log": LogSettings,
    "the autoscaler (`tailpack autoscale`, `python -m autoscaler.live`)": AutoscalerSettings,
    "KEDA's external scaler (`tailpack scaler`, `python -m autoscaler.keda`)": of_keda.KedaSettings,
    "the shadow (`tailpack shadow`)": of_shadow.ShadowSettings,
    "the consumer library (`PlanConsumer(options=Options(…))`; see consumer.md)": Options,
    "a replica of your own service": ConsumerSettings,
    "a Payment replica (`python -m services.payment`)": ReplicaSettings,
    "Order, Shipment and Notification": ServiceSettings,
    "Order, Shipment, Notification and Payment replicas: traces": TraceSettings,
    "Order alone": OrderSettings,
    "the load generator (`python -m loadgen.drivers`)": DriverSettings,
}
ABOUT_SETTINGS: Final = """# Settings

Each setting is declared once, as a field with its unit, its range and a sentence; scenario files, environments,
`--set`, the simulator and live processes all read that declaration. This page is made from it, by
`tailpack dev docs settings > docs/settings.md`.

In a scenario file a setting stands in its section; on the command line it is `--set SECTION.NAME=VALUE`, or
`--set NAME=VALUE` where only one section has that name. A process reads it from the environment as `TAILPACK_NAME`.
Lengths of time are in seconds or have a unit (`500ms`, `25s`, `2m`, `1h`); the longest is a day where nothing else is
said. Rates are in events/s; a share lies between 0 and 1.

A setting that several sections or processes share stands in one table, the first; the others name it and its place."""
METRICS: Final[dict[str, tuple[ModuleType, tuple[str, ...]]]] = {
    "A replica: any consumer of `services.consumer`": (of_replicas, of_replicas.LABELS),
    "The autoscaler": (of_autoscaler, ()),
    "Order, Shipment and Notification": (of_services, of_services.LABELS),
    "The load generator": (of_generator, ()),
    "The shadow": (of_shadow, ()),
    "KEDA's external scaler": (of_keda, ()),
}
"""Process → the module that declares its metrics, and the labels that all of them have."""
ABOUT_METRICS: Final = """# Metrics

What `/metrics` of each process shows to Prometheus. Each metric is declared once, next to its process;
this page is made from the declarations, by
`tailpack dev docs metrics > docs/metrics.md`. How they are scraped, drawn and
watched over: [observability.md](observability.md).

The autoscaler says at `/targets` where its replicas' metrics are, in the form of Prometheus' `http_sd_configs`."""


def settings_page() -> str:
    """Return the page as Markdown."""
    parts, places = [ABOUT_SETTINGS, "## Scenario files and `--set`"], dict[Field[Any], str]()
    for section, record in SECTIONS.items():
        parts += _part(f"[{section}]" if section else "the head of the file", record, places)
    parts += _part(f"[[{STAGES}]]", Stage, places, f"A list; on the command line `{STAGES}.NAME.KEY`. See chain.md.")
    parts += ["## Options of policies", "In the section `[policy]`, or as `--set policy.NAME=VALUE`."]
    for name, factory in POLICIES.items():
        parts += _part(name, factory.options, places, f"{factory.description}.")
    parts += ["## Environment of processes", "Each name in capitals, behind `TAILPACK_`."]
    for process, record in PROCESSES.items():
        parts += _part(process, record, places)
    return "\n\n".join(parts) + "\n"


def _part(heading: str, record: type[Settings], places: dict["Field[Any]", str], *about: str) -> Iterator[str]:
    """Yield the part of the page about one record, and add the place of each setting that stands there first."""
    yield f"### {heading}"
    yield from about
    shared: dict[str, list[str]] = {}
    for one in fields(record):
        if one in places:
            shared.setdefault(places[one], []).append(f"`{one.name}`")
    if shared:
        sizes = Counter(places.values())
        found = [f"{'all' if len(n) == sizes[place] else ', '.join(n)} of {place}" for place, n in shared.items()]
        yield f"It also has {'; '.join(found)}."
    if rows := _rows(record, without=places):
        yield table(("setting", "default", "what it is"), rows)
    places |= {one: heading.partition(" (")[0] for one in fields(record) if one not in places}


def settings_like(part: str) -> list[tuple[str, str, str]]:
    """Return the scenario and policy settings whose dotted names contain `part`: name, default, meaning."""
    records = {f"{section}." if section else "": record for section, record in SECTIONS.items()}
    records |= {f"policy.({name}) ": factory.options for name, factory in POLICIES.items()}
    rows = [(prefix + row[0].strip("`"), *row[1:]) for prefix, record in records.items() for row in _rows(record)]
    return [row for row in rows if part.lower() in row[0]]


def _rows(record: type[Settings], without: Container["Field[Any]"] = ()) -> list[tuple[str, str, str]]:
    texts, types = sentences(record), kinds(record)
    rows = []
    for one in (one for one in fields(record) if one not in without):
        declared, words = declaration(one), choices(types[one.name])
        limits = [declared.range().replace(f", at most {DAY_S:g} s", ""), f"one of {', '.join(words)}" if words else ""]
        known = " or ".join(filter(None, limits))
        text = f"{texts[one.name]} *{known[0].upper()}{known[1:]}.*" if known else texts[one.name]
        default = "required" if is_required(one) else _default(one.default, declared.unit)
        rows.append((f"`{one.name}`", default, text))
    return rows


def _default(value: object, unit: str) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        return f"{value:g}{f' {unit}' if unit in ('s', 'events/s') else ''}"
    if isinstance(value, tuple):
        return ", ".join(f"{one:g}" for one in value) or "none"
    return "none" if value is None else str(value) or "empty"


def declared_in(module: ModuleType) -> tuple[Declared, ...]:
    """Return the metrics that a module declares, in its order."""
    return tuple(one for one in vars(module).values() if isinstance(one, Declared))


def metrics_page() -> str:
    """Return the page as Markdown."""
    parts = [ABOUT_METRICS]
    for process, (module, common) in METRICS.items():
        rows = [
            (f"`{one.name}`", one.kind, ", ".join((*common, *one.labels)), one.unit, f"{one.meaning}.")
            for one in declared_in(module)
        ]
        parts += [f"## {process}", table(("metric", "type", "labels", "unit", "what it is"), rows)]
    return "\n\n".join(parts) + "\n"


def table(header: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """Return a table as Markdown."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in (header, *rows)]
    return "\n".join([lines[0], "|" + "---|" * len(header), *lines[1:]])
