"""Metrics, each declared once: name, kind, unit, labels and meaning. docs/reference/metrics.md lists them all."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """One metric, by the name that queries use (counters end in `_total`)."""

    name: str
    kind: str
    """counter, gauge or histogram."""
    unit: str
    """seconds, events, ratio …; empty: none."""
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Upper bounds of a histogram, without the infinite one."""

    def create(self, registry: CollectorRegistry | None, *bounds: float) -> Any:
        """Return the client object that a process updates. bounds: of a histogram, in addition to those declared."""
        if self.kind == "histogram":
            every = sorted({*self.bounds, *bounds})
            return Histogram(self.name, self.meaning, self.labels, buckets=every, registry=registry)
        return (Counter if self.kind == "counter" else Gauge)(self.name, self.meaning, self.labels, registry=registry)

    def of(self, value: float | Mapping[tuple[str, ...], float], labels: Mapping[str, str] | None = None) -> Metric:
        """Return a metric: one value, or one for each combination of its labels. labels: of all samples, put first."""
        common = labels or {}
        kind = CounterMetricFamily if self.kind == "counter" else GaugeMetricFamily
        metric = kind(self.name, self.meaning, labels=[*common, *self.labels])
        for own, number in (value if isinstance(value, Mapping) else {(): value}).items():
            metric.add_metric([*common.values(), *own], float(number))
        return metric


def _declared(kind: str, name: str, unit: str, meaning: str, *labels: str, bounds: Iterable[float] = ()) -> MetricSpec:
    return MetricSpec(name, kind, unit, meaning, labels, tuple(bounds))


counter, gauge, histogram = (partial(_declared, kind) for kind in ("counter", "gauge", "histogram"))
"""Declare a metric of this kind: name, unit, meaning, labels; for a histogram also its bounds."""
