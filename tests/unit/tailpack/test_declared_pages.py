"""docs/settings.md and docs/metrics.md are printed by `tailpack dev docs`; settings are checked, metrics well named."""

from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

import pytest
from dashboard_queries import declared_metrics

from autoscaler.policies.registry import POLICIES
from bench.sections import SECTIONS, Stage
from contracts.settings import Settings
from tailpack.cli.catalogue import sentences
from tailpack.declared_pages import METRICS, PROCESSES, declared_in, metrics_page, settings_page

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(("name", "page"), [("settings", settings_page), ("metrics", metrics_page)])
def test_the_page_is_what_the_command_prints(name: str, page: Callable[[], str]) -> None:
    assert (DOCS / f"{name}.md").read_text("utf-8") == page(), f"tailpack dev docs {name} > docs/{name}.md"


POLICY_OPTIONS = [factory.options for factory in POLICIES.values()]
RECORDS = [*SECTIONS.values(), Stage, *POLICY_OPTIONS, *PROCESSES.values()]


@pytest.mark.parametrize("record", RECORDS)
def test_every_setting_has_a_sentence(record: type[Settings]) -> None:
    said = sentences(record)
    assert all(said.get(one.name) for one in fields(record))


def test_each_setting_stands_on_the_page_once() -> None:
    assert settings_page().count("\n| `") == len({one for record in RECORDS for one in fields(record)})


def test_no_two_processes_declare_the_same_metric() -> None:
    assert len(declared_metrics()) == sum(len(declared_in(module)) for module, _ in METRICS.values())


def test_names_tell_what_may_be_done_with_them() -> None:
    for name, one in declared_metrics().items():
        assert name.startswith("tailpack_")
        assert name.endswith("_total") == (one.kind == "counter"), name
        assert one.unit != "seconds" or name.removesuffix("_total").endswith("_seconds"), name
        assert one.unit != "ratio" or name.endswith("_ratio"), name
        assert one.meaning[0].isupper() or one.meaning[0] in "1μ", name
        assert not one.meaning.endswith("."), name
