"""The generated pages are as `python docs/generate.py` writes them; settings and metrics are declared in full."""

import pytest
from dashboard_queries import declared_metrics
from generate import PAGES
from generators import DOCS
from generators.metrics import METRICS, declared_in


@pytest.mark.parametrize("path", PAGES)
def test_a_generated_page_is_up_to_date(path: str) -> None:
    assert (DOCS / path).read_text("utf-8") == PAGES[path](), "run: python docs/generate.py"


def test_no_two_processes_declare_the_same_metric() -> None:
    assert len(declared_metrics()) == sum(len(declared_in(module)) for module, _ in METRICS.values())


def test_the_name_of_a_metric_shows_its_kind_and_unit() -> None:
    for name, one in declared_metrics().items():
        assert name.startswith("tailpack_")
        assert name.endswith("_total") == (one.kind == "counter"), name
        assert one.unit != "seconds" or name.removesuffix("_total").endswith("_seconds"), name
        assert one.unit != "ratio" or name.endswith("_ratio"), name
        assert one.meaning[0].isupper() or one.meaning[0] in "1μ", name
        assert not one.meaning.endswith("."), name
