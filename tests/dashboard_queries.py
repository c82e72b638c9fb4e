"""The generator of the dashboards, which is no package, and the metrics that a query names."""

import importlib.util
import re
from functools import cache
from types import ModuleType

from compose_file import ROOT


@cache
def dashboards() -> ModuleType:
    """Return infra/grafana/dashboards.py."""
    spec = importlib.util.spec_from_file_location("dashboards", ROOT / "infra" / "grafana" / "dashboards.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def metrics_in(query: str) -> set[str]:
    """Return the names of the metrics in a query, as they are declared."""
    return {re.sub("_(bucket|count|sum)$", "", name) for name in re.findall(r"\btailpack_\w+", query)}
