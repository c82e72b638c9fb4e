"""Live runs of scenario `grouping`, one for each grouping, each beside what the simulator foretells of it."""

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from autoscaler.simulator.run import Run
from bench.markdown import known
from bench.results import LiveRow
from bench.scenario import Scenario
from bench.simulation.run import run_scenario
from bench.simulation.sent import sent_by
from contracts.events import Grouping
from loadgen.shapes import IntArray
from report.wording import minutes, share

NAME: Final = "grouping-live"
SCENARIO: Final = "grouping"
QUICK: Final[dict[str, object]] = {
    "load.workload": "smoke",
    "duration_s": 15,
    "payment.service_time_s": 0.03,
    "autoscaler.initial_replicas": 2,
}
"""Over the scenario, where only the way is tried: at its peak the two are nearly busy, so that queues differ."""


class GroupingLiveRow(LiveRow, frozen=True, kw_only=True):
    """A run under one grouping; `simulated` is of its own events. Overtaken: events done before an earlier one of the
    same customer, in any partition."""

    grouping: Grouping
    overtaken: int | None
    foretold_in_sla: float
    """Of the scenario, before anything ran; …"""
    foretold_replica_minutes: float
    foretold_overtaken: int


def foretell(scenario: Scenario) -> dict[str, Any]:
    """Return what the simulator says of the scenario, as fields of a row."""
    sent = sent_by(scenario)
    run, result = run_scenario(scenario, sent)
    customers = np.concatenate([chunk.key for chunk in sent.chunks() if chunk.key is not None])
    return {
        "foretold_in_sla": result.in_sla,
        "foretold_replica_minutes": result.replica_minutes,
        "foretold_overtaken": overtaken(run, customers),
    }


def overtaken(run: Run, customers: IntArray) -> int:
    """Return how many events were done before an earlier one of the same customer. customers: of each event."""
    latest_us: dict[int, int] = {}
    found = 0
    for customer, done_us in zip(customers.tolist(), run.events.done_us.tolist(), strict=True):
        found += done_us < latest_us.get(customer, 0)
        latest_us[customer] = max(done_us, latest_us.get(customer, 0))
    return found


COLUMNS: Final[dict[str, Callable[[GroupingLiveRow], str]]] = {
    "grouping": lambda one: f"`{one.grouping}`" + ("" if one.valid else " (invalid)"),
    "order of a customer": lambda one: "kept" if one.grouping.keeps_key_order else "not promised",
    "overtaken: live, foretold": lambda one: f"{known(one.overtaken, 1, ',')}, {one.foretold_overtaken:,}",
    "of": lambda one: f"{one.events:,}",
    "in W: live": lambda one: share(one.in_sla),
    "foretold": lambda one: share(one.foretold_in_sla),
    "its own events simulated": lambda one: share(one.simulated.in_sla) if one.simulated else "–",
    "r-m: live, foretold": lambda one: f"{minutes(one.replica_minutes)}, {minutes(one.foretold_replica_minutes)}",
}
