"""The verdict in words."""

from typing import Any

import msgspec
from small_report import small_result

from report.figures import invalid_because, verdict_of
from report.result import Effects, Lateness
from report.run_info import RunInfo

RUN = RunInfo(
    run="r", scenario={}, policy="static", seed=1, topology="pipeline", bootstrap_servers="", client_properties="",
    payment_partitions=5, latency_target_s=0.5, percentile=0.999, duration_s=60.0, events_scheduled=100,
)  # fmt: skip
PUNCTUAL = Lateness(p50_s=0.0, p99_s=0.025, max_s=9.0)


def verdict(**values: Any) -> str:
    effects = Effects(orders=100, exactly_once=100, missing=0, doubled=0)
    usual: dict[str, Any] = {"in_sla": 1.0, "effects": effects, "replica_minutes": 2.5, "integrity": None}
    return verdict_of(small_result(**{"percentile": 0.999, **usual, **values}))


def test_a_good_run_says_what_was_promised_and_paid() -> None:
    assert verdict() == (
        "Promise kept: 100 % of 100 events were done within 500 ms (promised 99.9 %) for 2.50 replica-minutes; "
        "nothing was lost, every order had each of its effects exactly once."
    )


def test_a_missed_promise_and_broken_effects_are_named() -> None:
    text = verdict(in_sla=0.9899, lost=1, effects=Effects(orders=100, exactly_once=97, missing=1, doubled=2))
    assert text.startswith("Promise missed: 98.99 %")
    assert text.endswith("1 event lost, 1 order without all effects, 2 orders with an effect twice.")


def test_what_nobody_counted_is_not_claimed_and_a_simulation_says_so() -> None:
    assert verdict(effects=None, replica_minutes=None).endswith("(promised 99.9 %); nothing was lost.")
    assert verdict(effects=None, replica_minutes=None, lost=None).endswith("(promised 99.9 %).")
    assert verdict(world="simulated").startswith("Promise kept in simulation: ")


def test_a_generator_late_by_more_than_a_twentieth_of_the_target_measures_itself() -> None:
    assert invalid_because(RUN, 100, 0, PUNCTUAL) == ()
    late = msgspec.structs.replace(PUNCTUAL, p99_s=0.025001)
    (problem,) = invalid_because(RUN, 100, 0, late)
    assert "the generator was late" in problem
    assert verdict(problems=(problem,)).startswith("Not a valid measurement, because the generator was late")
