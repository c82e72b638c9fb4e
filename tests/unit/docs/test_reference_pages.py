"""The generated pages are as `python docs/generate.py` writes them; settings and metrics are declared in full."""

from dataclasses import fields

import pytest
from dashboard_queries import declared_metrics
from generate import PAGES
from generators import DOCS
from generators.metrics import METRICS, declared_in
from generators.settings import PROCESSES
from prose.lint import group

from autoscaler.policies.registry import POLICIES
from bench.sections import SECTIONS, Stage
from contracts.settings import Settings
from services.consumer import Options
from tailpack.cli.catalogue import sentences


@pytest.mark.parametrize("path", PAGES)
def test_the_linter_knows_which_pages_are_generated(path: str) -> None:
    assert group(f"docs/{path}") == "docs/generated"


@pytest.mark.parametrize("path", PAGES)
def test_a_generated_page_is_up_to_date(path: str) -> None:
    assert (DOCS / path).read_text("utf-8") == PAGES[path](), "run: python docs/generate.py"


RECORDS = {
    *SECTIONS.values(),
    Stage,
    *(one.options for one in POLICIES.values()),
    Options,
    *sum(PROCESSES.values(), ()),
}


@pytest.mark.parametrize("record", sorted(RECORDS, key=str))
def test_every_setting_has_a_sentence(record: type[Settings]) -> None:
    found = sentences(record)
    assert all(found.get(one.name) for one in fields(record))


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
