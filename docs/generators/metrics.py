"""reference/metrics.md, from the declarations of the metrics."""

from types import ModuleType
from typing import Final

from autoscaler.keda import scaler as of_keda
from autoscaler.live import metrics as of_autoscaler
from autoscaler.live import observed_group as of_shadow
from contracts.metrics import MetricSpec
from generators import head, joined, table
from loadgen.drivers import sender as of_generator
from services.common import process as of_services
from services.consumer import metrics as of_replicas

METRICS: Final[dict[str, tuple[ModuleType, tuple[str, ...]]]] = {
    "A replica of any service on `services.consumer`": (of_replicas, of_replicas.LABELS),
    "The autoscaler": (of_autoscaler, ()),
    "Order, Shipment and Notification": (of_services, of_services.LABELS),
    "The load generator": (of_generator, ()),
    "The autoscaler with `act = off` or `propose`": (of_shadow, ()),
    "KEDA's external scaler": (of_keda, ()),
}
"""Process → the module that declares its metrics, and the labels that all of them have."""


def declared_in(module: ModuleType) -> tuple[MetricSpec, ...]:
    """Return the metrics that a module declares, in its order."""
    return tuple(one for one in vars(module).values() if isinstance(one, MetricSpec))


def page() -> str:
    """Return the page."""
    parts = [head("metrics")]
    for process, (module, common) in METRICS.items():
        parts.append(f"## {process}")
        if common:
            parts.append(f"Every metric has the labels {', '.join(f'`{one}`' for one in common)}.")
        rows = [(f"`{one.name}`", one.kind, ", ".join(one.labels), f"{one.meaning}.") for one in declared_in(module)]
        parts.append(table(("metric", "type", "labels", "meaning"), rows))
    return joined(parts)
