"""A metric is declared once: its name, kind, unit, labels and meaning. docs/reference/metrics.md lists them all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric, by the name that queries use (that of a counter ends in `_total`)."""

    name: str
    kind: str
    """counter, gauge or histogram; it says how the value is queried."""
    unit: str
    """seconds, events, ratio …; empty where it has none."""
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram: upper bounds, the last of which is followed by one for everything."""

    def create(self, registry: CollectorRegistry | None, *bounds: float) -> Any:
        """Return it for a process that changes it as it goes. bounds: of a histogram, beside those declared."""
        if self.kind == "histogram":
            every = sorted({*self.bounds, *bounds})
            return Histogram(self.name, self.meaning, self.labels, buckets=every, registry=registry)
        return (Counter if self.kind == "counter" else Gauge)(self.name, self.meaning, self.labels, registry=registry)

    def of(self, value: float | Mapping[tuple[str, ...], float], labels: Mapping[str, str] | None = None) -> Metric:
        """Return it with its value now, or values by its own labels. labels: of all values, put before its own."""
        common = labels or {}
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = kind(self.name, self.meaning, labels=[*common, *self.labels])
        values = value if isinstance(value, Mapping) else {(): value}
        for own, number in values.items():
            metric.add_metric([*common.values(), *own], float(number))
        return metric


def _declared(kind: str, name: str, unit: str, meaning: str, *labels: str, bounds: Iterable[float] = ()) -> MetricSpec:
    return MetricSpec(name, kind, unit, meaning, labels, tuple(bounds))


counter, gauge, histogram = (partial(_declared, kind) for kind in ("counter", "gauge", "histogram"))
"""Declare a metric of this kind by its name, unit, meaning and labels; a histogram also by its bounds."""
