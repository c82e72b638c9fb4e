"""The ScaledObject in docs/keda.md is the one that was run, and that the overlay applies."""

from pathlib import Path

import pytest
import yaml


def test_the_example_is_what_the_bench_applies() -> None:
    keda = pytest.importorskip("bench.keda", reason="packages are missing: pip install '.[keda]'")
    root = Path(__file__).parents[3]
    page = (root / "docs/keda.md").read_text()
    (block,) = (text.split("```")[0] for text in page.split("```yaml\n")[1:])
    applied = yaml.safe_load((root / "infra/k8s/overlays/keda/scaledobject.yaml").read_text())
    assert yaml.safe_load(block) == keda.scaled_object("payment", "tailpack-keda.tailpack:9090") == applied
