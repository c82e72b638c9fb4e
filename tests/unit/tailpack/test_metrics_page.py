"""docs/metrics.md is what `tailpack dev docs metrics` prints, and metrics are named as Prometheus' users expect."""

from pathlib import Path

from contracts.metrics import Kind, declared_in
from tailpack.declared_pages import METRICS, metrics, metrics_page

PAGE = Path(__file__).parents[3] / "docs" / "metrics.md"


def test_the_page_is_what_the_command_prints() -> None:
    assert PAGE.read_text(encoding="utf-8") == metrics_page(), "tailpack dev docs metrics > docs/metrics.md"


def test_no_two_processes_declare_the_same_metric() -> None:
    assert len(metrics()) == sum(len(declared_in(module)) for module, _ in METRICS.values())


def test_names_tell_what_may_be_done_with_them() -> None:
    for name, one in metrics().items():
        assert name.startswith("tailpack_")
        assert name.endswith("_total") == (one.kind is Kind.COUNTER), name
        assert one.unit != "seconds" or name.removesuffix("_total").endswith("_seconds"), name
        assert one.unit != "ratio" or name.endswith("_ratio"), name
        assert one.meaning[0].isupper() or one.meaning[0] in "1μ", name
        assert not one.meaning.endswith("."), name
