"""Load the dashboards, list the metrics of their queries, and query Prometheus."""

import json
import re
import time
import urllib.parse
import urllib.request
from functools import cache
from typing import Any

from compose_file import ROOT
from generators.metrics import METRICS, declared_in

from contracts.metrics import MetricSpec


@cache
def dashboards() -> dict[str, Any]:
    """Return name → dashboard, from infra/grafana."""
    files = sorted((ROOT / "infra" / "grafana").glob("*.json"))
    return {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in files}


def dashboard_queries() -> dict[str, str]:
    """Return place → query, for all panels and annotations of all dashboards."""
    found = {}
    for name, dashboard in dashboards().items():
        found |= {f"{name}: mark {mark['name']}": mark["expr"] for mark in dashboard["annotations"]["list"]}
        for panel in dashboard["panels"]:
            place = f"{name}: {panel['title']}"
            found |= {f"{place}, {target['refId']}": target["expr"] for target in panel["targets"]}
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
        for where, query in dashboard_queries().items()
        if not asked(api, "query_range", query=query, start=began_s, end=time.time(), step="1s")["result"]
    }
