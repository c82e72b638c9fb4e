"""The metrics of Order, Shipment and Notification; every one has the label `service`."""

from collections.abc import Iterator

from prometheus_client.core import Metric

from contracts.metrics import counter, gauge
from services.common.service import Service

WELL = gauge("tailpack_service_well", "", "1: the service consumes; 0: /healthz says why not")
WRITTEN = counter("tailpack_service_written_total", "records", "Records written, each effect once")
DUPLICATES = counter(
    "tailpack_service_duplicates_dropped_total", "records", "Repeats of what was written already, dropped"
)
REFUSED = counter("tailpack_service_refused_total", "records", "Records refused: each became a dead letter")
FENCED = counter(
    "tailpack_service_fenced_total", "records", "Payments dropped because their replica had lost its partition"
)
UNACKNOWLEDGED = gauge(
    "tailpack_service_unacknowledged", "records", "Records taken whose outputs the brokers have not all acknowledged"
)
OLDEST = gauge("tailpack_service_oldest_unacknowledged_seconds", "seconds", "Age of the oldest of those; 0 without one")


LABELS = ("service",)


class StageMetrics:
    """A collector of prometheus-client over one service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of this moment."""
        service, stage = self._service, self._service.stage
        values = {
            WELL: service.unhealthy() is None,
            WRITTEN: stage.written,
            DUPLICATES: stage.duplicates,
            REFUSED: stage.refused,
            FENCED: service.fence.refused if service.fence else 0,
            UNACKNOWLEDGED: stage.open.count,
            OLDEST: stage.open.oldest_s(),
        }
        for declared, value in values.items():
            yield declared.of(value, dict(zip(LABELS, (service.name,), strict=True)))
