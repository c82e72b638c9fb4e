"""From a recorded run to the question that the simulator answers: its scenario with what was measured put over it."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

import msgspec
import numpy as np

from autoscaler.live.settings import AutoscalerSettings
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.settings import DeliverySettings, SimulationSettings
from bench.replay.measured import Measured
from bench.replay.recorded import Served, Times
from bench.scenario import Scenario, load_scenario, scenario_names
from bench.sections import OPTIONS, SECTIONS
from bench.simulation.build import CLAIRVOYANT, delivery_of, settings_of
from bench.simulation.sent import Sent
from contracts.delivery import OUR_DELIVERIES, Delivery
from contracts.validation import InvalidSettingsError
from loadgen.schedule import SECOND_US, Spacing, Split
from report.run_info import RunInfo

BASE: Final = "w1"
"""Scenario file under a run whose own is not delivered: the run's values replace all of it."""
TIMESTAMP_US: Final = 1000
"""Resolution of the timestamps of Kafka's records."""
LIVE: Final = AutoscalerSettings(policy="static", payment_partitions=1, state_dir="")
"""What live autoscalers are told where a scenario says nothing."""


def scenario_of(info: RunInfo, measured: Measured | None, changes: Mapping[str, Any]) -> Scenario:
    """Return the run's scenario: measured values over those it was run with, `changes` over both.

    measured: None of a simulated run, which took the times that it was told.

    Raises InvalidSettingsError for what the simulator does not know, and for changes that make no sense.
    """
    name = str(info.scenario.get("name", ""))
    runtime = info.scenario.get("payment", {}).get("runtime", "")
    if runtime and runtime not in list(Delivery):
        raise InvalidSettingsError(
            [f"{info.run}: runtime {runtime!r} has no simulation; known are {', '.join(Delivery)}"]
        )
    other_policy = any(changes.get(key, info.policy) != info.policy for key in ("autoscaler.policy", "policy"))
    values = {key: value for key, value in _flat(info.scenario) if not (other_policy and key.startswith(f"{OPTIONS}."))}
    base = name if name in scenario_names() else BASE
    seen = {} if measured is None else measured_values(measured)
    return load_scenario(base, values | seen | dict(changes))


def without_pauses(measured: Measured, changes: Mapping[str, Any]) -> Measured:
    """Return `measured` without its pauses where `changes` say how long they shall be."""
    if not {key.rpartition(".")[2] for key in changes} & {"pause_s", "rebalance_time_s"}:
        return measured
    return msgspec.structs.replace(measured, pause_s=None, pause_p99_s=None, pauses=0)


def settings_for(scenario: Scenario, measured: Measured) -> SimulationSettings:
    """Return the world of the run, with what a scenario cannot say."""
    told_s = measured.pause_p99_s if scenario.autoscaler.learn_rebalance_time else scenario.autoscaler.rebalance_time_s
    settings = settings_of(scenario)
    if scenario.autoscaler.policy == CLAIRVOYANT:
        return settings  # its world knows no cost, whatever was measured
    return replace(
        settings,
        delivery=_as_ours(settings.delivery, measured)
        if delivery_of(scenario) in OUR_DELIVERIES
        else settings.delivery,
        commit_age_s=measured.commit_age_s,
        commit_interval_s=measured.commit_interval_s,
        slots_between=True,
        stop_s=measured.stop_s or 0.0,
        planned_overhead_s=LIVE.overhead_s,
        planned_rebalance_time_s=told_s,
        planned_startup_s=LIVE.startup_s,
        planned_commit_age_s=LIVE.commit_age_s,
    )


def fed_us(served: Served, transit_s: float | None) -> Times:
    """Return when a replica can first have each event: the way through the broker after it was handed over.

    In µs since second 0, and none before that. Replicas serve the oldest first, by timestamps of whole milliseconds,
    and those of one millisecond partition by partition: such events have their times exchanged, to come in that order.
    """
    order = np.lexsort((np.arange(len(served)), served.partition, served.handed_us // TIMESTAMP_US))
    at_us = np.empty(len(served), np.int64)
    at_us[order] = np.sort(served.handed_us)
    return np.maximum(0, at_us + round((transit_s or 0.0) * 1e6))


def workload_of(served: Served, at_us: Times, info: RunInfo, *, lead_us: int) -> tuple[Workload, Times]:
    """Return the run's own events at the times `at_us`, and the row of `served` behind each.

    lead_us: how long before the workload the world begins; `at_us` is since then.
    """
    order = np.argsort(at_us, kind="stable")
    last_s = (int(at_us[order[-1]]) + 1) / 1e6
    arrivals = Arrivals(at_us[order], served.partition[order])
    duration_s = max(info.duration_s + lead_us / 1e6, last_s)
    return Workload.whole(arrivals, partitions=info.payment_partitions, duration_s=duration_s), order


def sent_in(served: Served, at_us: Times, info: RunInfo, *, lead_us: int) -> Sent:
    """Return the run's own events as a table, as reference policies are told about them beforehand."""
    seconds = max(int(info.duration_s) + lead_us // SECOND_US, int(at_us.max() // SECOND_US) + 1)
    partitions = info.payment_partitions
    cells = at_us // SECOND_US * partitions + served.partition
    counts = np.bincount(cells, minlength=seconds * partitions).reshape(seconds, partitions)
    spacing = Spacing(info.scenario.get("load", {}).get("spacing", Spacing.BURST))
    return Sent(counts, spacing, Split.TABLE, partitions, info.seed)


def measured_values(measured: Measured) -> dict[str, Any]:
    """Return dotted key → value of what a scenario can say; None leaves what it says."""
    return {
        "payment.service_time_s": 1 / measured.service_rate,
        "autoscaler.tick_offset_s": measured.tick_offset_s,
        "autoscaler.initial_replicas": measured.initial_replicas,
        "simulation.startup_s": measured.startup_s,
    }


def _as_ours(delivery: DeliverySettings, measured: Measured) -> DeliverySettings:
    """Return how our own replicas do it: they read plans themselves, so that no heartbeat has to bring the news."""
    delivery = replace(delivery, heartbeat_s=0.0, notice_s=measured.notice_s or 0.0)
    if measured.pause_s is None:
        return delivery
    return replace(delivery, pause_s=measured.pause_s, rebalance_time_s=measured.pause_s)


def _flat(recorded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield dotted key and value of a scenario's record; [simulation] last, for other sections' values replace its."""
    for section in [*(name for name in (*SECTIONS, OPTIONS) if name != "simulation"), "simulation"]:
        values = recorded.get(section, {}) if section else recorded
        prefix = f"{section}." if section else ""
        nested = (*SECTIONS, OPTIONS) if not section else ()
        yield from ((prefix + key, value) for key, value in values.items() if key not in nested)
