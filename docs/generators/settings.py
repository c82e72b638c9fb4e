"""reference/settings.md, from the declarations of the settings."""

from collections import defaultdict
from dataclasses import fields
from functools import cache
from typing import Final

from autoscaler.keda.scaler import KedaSettings
from autoscaler.live import settings as live
from autoscaler.policies import settings as shared
from autoscaler.policies.registry import POLICIES
from autoscaler.policies.tail_aware.plans import TailAwareSettings
from autoscaler.simulator import settings as simulator
from bench import sections
from contracts import membership, topics
from contracts.connection import Connection, Security
from contracts.logs import LogSettings
from contracts.settings import Settings, Target, WebPages
from generators import head, joined, table, wrapped
from loadgen.schedule import Bursts
from loadgen.spec import DriverSettings
from services.common.faust_app import ServiceSettings
from services.common.traces import TraceSettings
from services.consumer import Options
from services.consumer.environment import ConsumerSettings
from services.order.__main__ import OrderSettings
from services.payment.replica import ReplicaSettings
from tailpack.cli.catalogue import described

PROCESSES: Final[dict[str, tuple[type[Settings], ...]]] = {
    "every process": (Connection, LogSettings),
    "the autoscaler": (live.AutoscalerSettings,),
    "the KEDA scaler": (KedaSettings,),
    "a replica of your service": (ConsumerSettings,),
    "Payment": (ReplicaSettings, TraceSettings),
    "Order": (OrderSettings, TraceSettings),
    "Shipment, Notification": (ServiceSettings, TraceSettings),
    "the load generator": (DriverSettings,),
}
"""Process → what it reads from its environment."""
Groups = dict[str, tuple[type[Settings], ...]]
READERS: Final[dict[str, Groups]] = {
    "For operators": {
        "Connection to Kafka": (Connection,),
        "Log": (LogSettings,),
        "Group and target": (topics.ScaledGroup, Target),
        "Scaling": (shared.Limits, shared.Scaling),
        "Thresholds": (shared.Factors,),
        "Guards": (shared.Guards,),
        "Autoscaler": (live.AutoscalerSettings, live.PolicyOptions),
        "Pages": (WebPages,),
        "Replicas as pods": (live.KubernetesSettings,),
        "KEDA scaler": (KedaSettings,),
        "Policy tail-aware": (TailAwareSettings,),
    },
    "For replicas": {
        "Membership": (membership.Membership,),
        "Work": (membership.EventCost,),
        "Consumer library": (Options,),
        "Replica": (ConsumerSettings,),
        "Payment": (ReplicaSettings,),
        "Order, Shipment and Notification": (ServiceSettings,),
        "Partitions of the pipeline": (topics.KeyedTopics,),
        "Order": (OrderSettings,),
        "Traces": (TraceSettings,),
    },
    "For benchmark authors": {
        "Scenario": (sections.Heading,),
        "Load": (sections.Load, Bursts),
        "Scaled group": (sections.Payment,),
        "Simulated runs": (sections.Simulation, simulator.ServiceShape, simulator.ObservationSettings),
        "Slow replicas": (membership.ReplicaSpeeds, membership.LiveSpeeds),
        "Chains of groups": (sections.Chain, sections.Stage),
        "Load generator": (DriverSettings,),
        **{f"Policy {name}": (one.options,) for name, one in POLICIES.items() if name != "tail-aware"},
    },
}
"""Reader → heading → the records whose own settings are listed there: each setting where it is declared."""


@cache
def places() -> dict[tuple[type, str], list[str]]:
    """Return (declaring record, setting) → where it can be set: sections, policies, processes, the library."""
    given: dict[str, tuple[type[Settings], ...]] = {
        **{f"`[{name}]`" if name else "top level": (one,) for name, one in sections.SECTIONS.items()},
        f"`[[{sections.STAGES}]]`": (sections.Stage,),
        **{f"policy {name}": (one.options,) for name, one in POLICIES.items()},
        **PROCESSES,
        "`Options`": (Options,),
    }
    found: dict[tuple[type, str], list[str]] = defaultdict(list)
    for place, records in given.items():
        for record in records:
            for one in fields(record):
                owner = next(base for base in record.__mro__ if one.name in vars(base).get("__annotations__", {}))
                found[owner, one.name].append(place)
    return found


def page() -> str:
    """Return the page. Raises ValueError where a setting belongs to no reader."""
    parts = [head("settings")]
    listed: set[tuple[type, str]] = set()
    for reader, groups in READERS.items():
        parts.append(f"## {reader}")
        for title, records in groups.items():
            own = {(record, name): words for record in records for name, *words in described(record)}
            own = {key: words for key, words in own.items() if key in places() and key not in listed}
            if own:
                listed |= own.keys()
                where = dict.fromkeys(place for key in own for place in places()[key])
                rows = [(f"`{name}`", *words) for (_, name), words in own.items()]
                parts += [f"### {title}", f"Set in: {', '.join(where)}."]
                parts.append(table(("setting", "default (range)", "meaning"), rows))
        if reader == "For operators":
            parts += ["### Properties of Kafka clients", _properties()]
    if missing := places().keys() - listed:
        raise ValueError(f"no reader has {', '.join(f'{one.__name__}.{name}' for one, name in missing)}")
    return joined(parts)


def _properties() -> str:
    keys = ", ".join(f"`{field.name.replace('_', '.')}`" for field in fields(Security))
    return wrapped(
        f"The file `client_properties` has lines KEY=VALUE and comments with #. Its keys are librdkafka's: {keys}."
    )
