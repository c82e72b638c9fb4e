"""List the queries of the dashboards and their metrics, and query Prometheus."""

import json
import re
import time
import urllib.parse
import urllib.request
from typing import Any

from compose_file import ROOT
from generators.metrics import METRICS, declared_in

from contracts.metrics import MetricSpec


def queries() -> dict[str, str]:
    """Return place → query, for all panels and marks of all dashboards."""
    found = {}
    for file in sorted((ROOT / "infra" / "grafana").glob("*.json")):
        dashboard = json.loads(file.read_text(encoding="utf-8"))
        found |= {f"mark {mark['name']}": mark["expr"] for mark in dashboard["annotations"]["list"]}
        for panel in dashboard["panels"]:
            found |= {f"{file.stem}: {panel['title']}, {of['refId']}": of["expr"] for of in panel["targets"]}
    return found


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
        for where, query in queries().items()
        if not asked(api, "query_range", query=query, start=began_s, end=time.time(), step="1s")["result"]
    }
