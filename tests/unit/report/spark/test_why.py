"""The sentence of each cause carries the figures that tell it."""

from typing import Any

import pytest

from report.result import Cause
from report.spark.explain import FIGURES
from report.spark.why import Episode, Telling

MS = 1_000
STARTS = [("payment-2", 0, 900 * MS)]
TELLING = Telling(started_us=0, target_us=500 * MS, usual_us=5 * MS, pipeline=False, starts=STARTS)
WORST = {
    "latency_us": 700 * MS,
    "intended_us": 100 * MS,
    "placed_us": 101 * MS,
    "accepted_us": None,
    "handed_us": 101 * MS,
    "received_us": 110 * MS,
    "start_us": 795 * MS,
    "service_us": 5 * MS,
    "left_us": 90 * MS,
    "came_us": 780 * MS,
    "since_us": 60 * MS,
    "idle_us": 0,
    "slowed_us": 250 * MS,
    "stop_us": 600 * MS,
    "load": 2_500,
    "over_from": None,
    "old": "payment-1",
}


def why(cause: Cause, **figures: Any) -> str:
    return TELLING.why(cause, Episode(3, "payment-0", 7, 12, WORST | figures))


def test_the_figures_are_those_that_episodes_carry() -> None:
    assert set(WORST) == set(FIGURES)


@pytest.mark.parametrize(
    ("cause", "figures", "said"),
    [
        (Cause.GENERATOR, {"placed_us": 400 * MS}, "The generator sent the worst 300 ms late."),
        (
            Cause.UPSTREAM,
            {"received_us": 700 * MS},
            "Payment-0 had nothing else to do, yet received the worst 599 ms after it was sent; "
            "in a payment-only run the broker's part and the poll's cannot be told apart.",
        ),
        (
            Cause.DOWNSTREAM,
            {"service_us": 450 * MS},
            "The service of the worst took 450 ms at payment-0 (epoch 7), usual are 5.00 ms.",
        ),
        (
            Cause.REPLICA_DEAD,
            {},
            "Payment-1 was gone, payment-0 (epoch 7) took over partition 3: "
            "nobody served it from 0.1 s to 0.8 s (679 ms).",
        ),
        (Cause.GROUP_STOPPED, {}, "No partition finished anything for 600 ms before 0.8 s, under epoch 7."),
        (
            Cause.HANDOVER,
            {"handed_us": 790 * MS},
            "Partition 3 went from payment-1 to payment-0 (epoch 7): nobody served it from 0.1 s to 0.8 s (690 ms).",
        ),
        (
            Cause.REPLICA_STARTING,
            {},
            "Payment-2 was asked for at 0.0 s and ready 900 ms later; the worst waited 694 ms, the time of 138 events; "
            "250 events/s over 10 s at payment-0 (epoch 7) against μ = 200 events/s.",
        ),
        (
            Cause.BURST,
            {"load": 900},
            "All that lay ahead had arrived within the last second; the worst waited 694 ms, the time of 138 events; "
            "90 events/s over 10 s at payment-0 (epoch 7) against μ = 200 events/s.",
        ),
        (
            Cause.OVERLOADED,
            {"over_from": 65},
            "250 events/s over 10 s at payment-0 (epoch 7) against μ = 200 events/s, more than it can serve since "
            "1:05.0; the worst waited 694 ms, the time of 138 events.",
        ),
    ],
)
def test_each_cause_has_its_sentence(cause: Cause, figures: dict[str, Any], said: str) -> None:
    assert why(cause, **figures) == said


def test_what_was_never_done_is_said_to_be() -> None:
    assert why(Cause.OVERLOADED, latency_us=None).endswith("nobody ever finished it.")
