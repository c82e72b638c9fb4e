"""The verdict, as one sentence."""

from typing import Any

import msgspec
from small_report import small_result

from report.figures import describe_verdict, validity_problems
from report.result import Effects, Lateness
from report.run_info import RunInfo

RUN = RunInfo(
    run="r", scenario={}, policy="static", seed=1, topology="pipeline", bootstrap_servers="", client_properties="",
    payment_partitions=5, latency_target_s=0.5, percentile=0.999, duration_s=60.0, events_scheduled=100,
)  # fmt: skip
PUNCTUAL = Lateness(p50_s=0.0, p99_s=0.025, max_s=9.0)


def verdict(**values: Any) -> str:
    effects = Effects(orders=100, exactly_once=100, missing=0, doubled=0)
    typical: dict[str, Any] = {"in_sla": 1.0, "effects": effects, "replica_minutes": 2.5, "integrity": None}
    return describe_verdict(small_result(**{"percentile": 0.999, **typical, **values}))


def test_the_verdict_names_target_cost_and_effects() -> None:
    text = verdict()
    assert text.startswith("SLO met: ")
    for part in ("100 % of 100 events", "within 500 ms", "99.9 %", "2.50 replica-minutes"):
        assert part in text


def test_an_unmet_slo_and_broken_effects_are_named() -> None:
    text = verdict(in_sla=0.9899, lost=1, effects=Effects(orders=100, exactly_once=97, missing=1, doubled=2))
    assert text.startswith("SLO not met: 98.99 %")
    assert text.endswith("1 event lost, 1 order without all effects, 2 orders with an effect twice.")


def test_a_generator_delay_above_5_percent_of_the_target_is_invalid() -> None:
    assert validity_problems(RUN, 100, 0, PUNCTUAL) == ()
    late = msgspec.structs.replace(PUNCTUAL, p99_s=0.025001)
    (problem,) = validity_problems(RUN, 100, 0, late)
    assert "the generator was late" in problem
    assert verdict(problems=(problem,)).startswith("Not a valid measurement, because the generator was late")
