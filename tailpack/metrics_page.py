"""docs/metrics.md, made from the declarations: every metric with its type, labels, unit and meaning."""

from types import ModuleType
from typing import Final

from autoscaler.keda import metrics as of_keda
from autoscaler.live import metrics as of_autoscaler
from autoscaler.shadow import metrics as of_shadow
from contracts.metrics import Declared, declared_in
from loadgen.drivers import metrics as of_generator
from services.common import metrics as of_services
from services.consumer import metrics as of_replicas
from tailpack.settings_page import table

HEADER: Final = ("metric", "type", "labels", "unit", "what it is")
PROCESSES: Final[dict[str, tuple[ModuleType, tuple[str, ...]]]] = {
    "A replica: any consumer of `services.consumer`": (of_replicas, of_replicas.LABELS),
    "The autoscaler": (of_autoscaler, ()),
    "Order, Shipment and Notification": (of_services, of_services.LABELS),
    "The load generator": (of_generator, ()),
    "The shadow": (of_shadow, ()),
    "KEDA's external scaler": (of_keda, ()),
}
"""Process → the module that declares its metrics, and the labels that all of them have."""
INTRODUCTION: Final = """# Metrics

What `/metrics` of each process shows to Prometheus. Each metric is declared once, in a `metrics.py` beside its process;
this page is made from the declarations, by `tailpack metrics > docs/metrics.md`. How they are scraped, drawn and
watched over: [observability.md](observability.md).

The autoscaler says at `/targets` where its replicas' metrics are, in the form of Prometheus' `http_sd_configs`."""


def metrics() -> dict[str, Declared]:
    """Return all metrics by name."""
    return {one.name: one for module, _ in PROCESSES.values() for one in declared_in(module)}


def metrics_page() -> str:
    """Return the page as Markdown."""
    parts = [INTRODUCTION]
    for process, (module, common) in PROCESSES.items():
        rows = [
            (f"`{one.name}`", one.kind, ", ".join((*common, *one.labels)), one.unit, f"{one.meaning}.")
            for one in declared_in(module)
        ]
        parts += [f"## {process}", table(HEADER, rows)]
    return "\n\n".join(parts) + "\n"
