"""Load the generator of the dashboards, list the metrics of its queries, and query Prometheus."""

import importlib.util
import json
import re
import time
import urllib.parse
import urllib.request
from functools import cache
from types import ModuleType
from typing import Any

from compose_file import ROOT
from generators.metrics import METRICS, declared_in

from contracts.metrics import MetricSpec


@cache
def dashboards() -> ModuleType:
    """Return infra/grafana/dashboards.py as a module."""
    spec = importlib.util.spec_from_file_location("dashboards", ROOT / "infra" / "grafana" / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def declared_metrics() -> dict[str, MetricSpec]:
    """Return all metrics that processes declare, by name."""
    return {metric.name: metric for module, _ in METRICS.values() for metric in declared_in(module)}


def metrics_in(query: str) -> set[str]:
    """Return the names of the metrics in a query, as they are declared."""
    return {re.sub("_(bucket|count|sum)$", "", name) for name in re.findall(r"\btailpack_\w+", query)}


def asked(api: str, path: str, **query: object) -> Any:
    """Return the answer of Prometheus to a query. api: http://HOST:PORT/api/v1. Raises OSError."""
    url = f"{api}/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(url, timeout=20) as answer:  # noqa: S310 loopback
        return json.load(answer)["data"]


def without_series(api: str, began_s: float) -> dict[str, str]:
    """Return place → query, for queries of the dashboards that have had no series since a time."""
    return {
        where: query
        for where, query in dashboards().queries().items()
        if not asked(api, "query_range", query=query, start=began_s, end=time.time(), step="1s")["result"]
    }
