"""Metrics, each declared once: name, kind, unit, labels and meaning. docs/reference/metrics.md lists them all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric. Its name is the one that queries use, so counters end in `_total`."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    unit: str
    """seconds, events, ratio …; empty: none."""
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram's buckets, without +Inf."""

    def create(self, registry: CollectorRegistry | None, *bounds: float) -> Any:
        """Return the prometheus_client object that a process updates. bounds: further bucket bounds of a histogram."""
        if self.kind == "histogram":
            every = sorted({*self.bounds, *bounds})
            return Histogram(self.name, self.meaning, self.labels, buckets=every, registry=registry)
        return (Counter if self.kind == "counter" else Gauge)(self.name, self.meaning, self.labels, registry=registry)

    def of(self, value: float | Mapping[tuple[str, ...], float], labels: Mapping[str, str] | None = None) -> Metric:
        """Return the metric with one value, or one for each combination of labels. labels: added to every sample."""
        common = labels or {}
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = kind(self.name, self.meaning, labels=[*common, *self.labels])
        for own, number in (value if isinstance(value, Mapping) else {(): value}).items():
            metric.add_metric([*common.values(), *own], float(number))
        return metric


def _declared(kind: str, name: str, unit: str, meaning: str, *labels: str, bounds: Iterable[float] = ()) -> MetricSpec:
    return MetricSpec(name, kind, unit, meaning, labels, tuple(bounds))


counter, gauge, histogram = (partial(_declared, kind) for kind in ("counter", "gauge", "histogram"))
"""Each declares a metric of its kind with name, unit, meaning and labels. A histogram also has bucket bounds."""
