"""A metric is declared once: its name, kind, unit, labels and meaning. Processes show it; docs/metrics.md lists it."""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from types import ModuleType
from typing import Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric


class Kind(StrEnum):
    """What may be done with its value."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Declared:
    """One metric, by the name that queries use (that of a counter ends in `_total`)."""

    name: str
    kind: Kind
    unit: str
    """seconds, events, ratio …; empty where it has none."""
    meaning: str
    labels: tuple[str, ...] = ()
    bounds: tuple[float, ...] = ()
    """Of a histogram: upper bounds, the last of which is followed by one for everything."""

    def counter(self, registry: CollectorRegistry) -> Counter:
        """Return it for a process that counts as it goes."""
        return Counter(self.name, self.meaning, self.labels, registry=registry)

    def gauge(self, registry: CollectorRegistry) -> Gauge:
        """Return it for a process that sets it as it goes."""
        return Gauge(self.name, self.meaning, self.labels, registry=registry)

    def histogram(self, registry: CollectorRegistry) -> Histogram:
        """Return it for a process that observes as it goes."""
        return Histogram(self.name, self.meaning, self.labels, buckets=self.bounds, registry=registry)

    def of(self, value: float | Mapping[tuple[str, ...], float], labels: Mapping[str, str] | None = None) -> Metric:
        """Return it with the value of this moment. labels: of all values, put before its own.

        value: by the values of its own labels, where it has some.
        """
        common = labels or {}
        kind = CounterMetricFamily if self.kind is Kind.COUNTER else GaugeMetricFamily
        metric = kind(self.name, self.meaning, labels=[*common, *self.labels])
        values = value if isinstance(value, Mapping) else {(): value}
        for own, number in values.items():
            metric.add_metric([*common.values(), *own], float(number))
        return metric

    def observed(self, buckets: "Buckets", labels: Mapping[str, str]) -> Metric:
        """Return the histogram of what was observed so far."""
        metric = HistogramMetricFamily(self.name, self.meaning, labels=list(labels))
        metric.add_metric(list(labels.values()), buckets.cumulative(), buckets.total)
        return metric


def counter(name: str, unit: str, meaning: str, *labels: str) -> Declared:
    """Declare a counter."""
    return Declared(name, Kind.COUNTER, unit, meaning, labels)


def gauge(name: str, unit: str, meaning: str, *labels: str) -> Declared:
    """Declare a gauge."""
    return Declared(name, Kind.GAUGE, unit, meaning, labels)


def histogram(name: str, unit: str, meaning: str, bounds: Iterable[float]) -> Declared:
    """Declare a histogram."""
    return Declared(name, Kind.HISTOGRAM, unit, meaning, bounds=tuple(bounds))


def declared_in(module: ModuleType) -> tuple[Declared, ...]:
    """Return what a module declares, in its order."""
    return tuple(one for one in vars(module).values() if isinstance(one, Declared))


_INFINITE: Final = "+Inf"


class Buckets:
    """A histogram for the hot path: a search among a dozen numbers and two additions for each observation."""

    __slots__ = ("_bounds", "_counts", "total")

    def __init__(self, bounds: Iterable[float]) -> None:
        self._bounds = tuple(sorted(set(bounds)))
        self._counts = [0] * (len(self._bounds) + 1)
        self.total = 0.0
        """Sum of everything observed."""

    def observe(self, value: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    @property
    def count(self) -> int:
        """How many were observed."""
        return sum(self._counts)

    def up_to(self, bound: float) -> int:
        """Return how many were at most `bound`, which must be one of the bounds."""
        return sum(self._counts[: self._bounds.index(bound) + 1])

    def cumulative(self) -> list[tuple[str, float]]:
        """Return (bound, observations up to it), as scrapers expect it."""
        names = [*map(str, self._bounds), _INFINITE]
        return list(zip(names, map(float, accumulate(self._counts)), strict=True))
