"""docs/settings.md and docs/metrics.md are printed by `tailpack dev docs`; settings are checked, metrics well named."""

from collections.abc import Callable
from dataclasses import fields
from math import isinf, nan
from pathlib import Path

import pytest

from autoscaler.live.settings import AutoscalerSettings
from autoscaler.policies.flink_ds2 import FlinkDs2Settings
from autoscaler.policies.references import OverprovisionedSettings
from autoscaler.policies.registry import POLICIES
from autoscaler.policies.settings import GuardSettings
from bench.sections import SECTIONS, Stage
from contracts.delivery import Delivery
from contracts.metrics import Kind
from contracts.settings import Settings, declaration
from contracts.validation import InvalidSettingsError, parse
from services.consumer import Options
from services.payment.replica import ReplicaSettings
from tailpack.cli.catalogue import sentences
from tailpack.declared_pages import METRICS, declared_in, metrics, metrics_page, settings_page

DOCS = Path(__file__).parents[3] / "docs"


@pytest.mark.parametrize(("name", "page"), [("settings", settings_page), ("metrics", metrics_page)])
def test_the_page_is_what_the_command_prints(name: str, page: Callable[[], str]) -> None:
    assert (DOCS / f"{name}.md").read_text("utf-8") == page(), f"tailpack dev docs {name} > docs/{name}.md"


RECORDS = [*SECTIONS.values(), Stage, *(factory.options for factory in POLICIES.values()), Options, AutoscalerSettings]


@pytest.mark.parametrize("record", RECORDS)
def test_every_setting_has_a_sentence(record: type[Settings]) -> None:
    said = sentences(record)
    assert all(said.get(one.name) for one in fields(record))


@pytest.mark.parametrize("record", RECORDS)
def test_what_is_out_of_range_is_refused_by_name(record: type[Settings]) -> None:
    for one in fields(record):
        declared = declaration(one)
        values = [declared.least - 1, declared.above, declared.most + 1, declared.below, nan]
        for value in (nan if isinf(value) else value for value in values):
            if isinstance(one.default, int | float) and not isinstance(one.default, bool):
                with pytest.raises(InvalidSettingsError, match=rf"(^|; )at\.{one.name} = "):
                    parse({one.name: value}, record, where="at.")


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (OverprovisionedSettings, "the peak must be told, as peak_rates or as replicas"),
        (lambda: OverprovisionedSettings(peak_rates=(1.0, -1.0)), "peak_rates = .*: must be at least 0 events/s"),
        (lambda: FlinkDs2Settings(utilization_min=0.7), "utilization_min ≤ utilization_target .* does not hold"),
        (lambda: GuardSettings(safe_replicas=4, max_replicas=3), "safe_replicas = 4: is more than max_replicas = 3"),
        (lambda: GuardSettings(min_replicas=3, max_replicas=2), "min_replicas = 3: is more than max_replicas = 2"),
        (lambda: Options(heartbeat_s=7.0), "heartbeat_s = 7.0: is not less than session_s = 6"),
        (lambda: Options(delivery=Delivery.SHARE), "delivery = .*: is another runtime's; known are incremental, eager"),
        (lambda: ReplicaSettings(replica=""), "replica = '': must not be empty"),
    ],
)
def test_what_cannot_be_true_together_is_refused(make: Callable[[], Settings], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make()


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
