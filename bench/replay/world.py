"""A recorded run through the simulator: its scenario, its own events, and the times that it showed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.live.settings import AutoscalerSettings
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import Run, simulate
from autoscaler.simulator.settings import DeliverySettings, SimulationSettings
from bench.replay.measured import Measured, ticks_of
from bench.replay.recorded import Recorded, Served, Times
from bench.scenario import SIMULATION, Scenario, load_scenario, scenario_names
from bench.sections import OPTIONS, SECTIONS, STAGES
from bench.simulation.build import CLAIRVOYANT, delivery_of, settings_of
from bench.simulation.policy import policy_of
from bench.simulation.result import SimulationResult
from bench.simulation.run import run_scenario
from bench.simulation.sent import Sent, sent_by
from contracts.delivery import OUR_DELIVERIES, Delivery
from contracts.validation import InvalidSettingsError
from loadgen.schedule import SECOND_US, Schedule, Spacing, Split
from loadgen.trace import EventTrace, Trace
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
    if measured is not None:
        values |= _started_and_decided(measured) | {
            "payment.service_time_s": 1 / measured.service_rate,
            "autoscaler.initial_replicas": measured.initial_replicas,
        }
    return load_scenario(name if name in scenario_names() else BASE, values | dict(changes))


def _started_and_decided(measured: Measured) -> dict[str, Any]:
    startup = {} if measured.startup_s is None else {"simulation.startup_s": measured.startup_s}
    return startup | {"autoscaler.tick_offset_s": measured.tick_offset_s}


def times_for_another(measured: Measured) -> dict[str, Any]:
    """Return what a run showed that holds for other live runs on the same machine, as settings of a scenario."""
    return _started_and_decided(measured) | {"simulation.overhead_s": measured.overhead_s}


def forecast(scenario: Scenario, measured: Measured, trace: Trace | EventTrace | None = None) -> SimulationResult:
    """Simulate a scenario as it would run live, with the times that another run showed.

    scenario: told `times_for_another` already. Raises InvalidSettingsError for what cannot be simulated.
    """
    scenario = replace(scenario, simulation=replace(scenario.simulation, split=None))
    way_s = measured.transit_s or 0.0
    settings = settings_for(scenario, measured)
    settings = replace(settings, tick_offset_s=max(0.0, settings.tick_offset_s - way_s))  # events are so much later
    return run_scenario(scenario, sent_by(scenario, trace), keep_events=False, settings=settings, way_s=way_s)[1]


def _flat(recorded: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield dotted key and value of a scenario's record; [simulation] last, for other sections' values replace its."""
    nested = [*(name for name in (*SECTIONS, OPTIONS) if name and name != SIMULATION), SIMULATION]
    yield from ((key, value) for key, value in recorded.items() if key not in (*nested, STAGES))  # a run has none
    for section in nested:
        yield from ((f"{section}.{key}", value) for key, value in recorded.get(section, {}).items())


def simulated(recorded: Recorded, scenario: Scenario, measured: Measured) -> tuple[Run, Times]:
    """Return the simulated run, and the latency of each event from its intended time, µs.

    Its time begins `recorded.lead_us` before second 0, as the autoscaler's did.
    """
    served, info, lead_us = recorded.served, recorded.info, recorded.lead_us
    at_us = fed_us(served, measured.transit_s) + lead_us
    order = np.argsort(at_us, kind="stable")
    workload = Workload.whole(
        Arrivals(at_us[order], served.partition[order]),
        partitions=info.payment_partitions,
        duration_s=max(info.duration_s + lead_us / 1e6, (int(at_us.max()) + 1) / 1e6),
    )
    policy = policy_of(scenario, _sent(recorded, at_us, lead_us))
    run = simulate(workload, policy, settings_for(scenario, measured), keep_events=True, ticks=ticks_of(recorded))
    latency_us = np.empty(len(served), np.int64)
    latency_us[order] = run.latency_us + (at_us - lead_us - served.intended_us)[order]
    return run, latency_us


def fed_us(served: Served, transit_s: float | None) -> Times:
    """Return when a replica can first have each event: the way through the broker after it was handed over.

    In µs since second 0, and none before that. Replicas serve the oldest first, by timestamps of whole milliseconds,
    and those of one millisecond partition by partition: such events have their times exchanged, to come in that order.
    """
    order = np.lexsort((np.arange(len(served)), served.partition, served.handed_us // TIMESTAMP_US))
    at_us = np.empty(len(served), np.int64)
    at_us[order] = np.sort(served.handed_us)
    return np.maximum(0, at_us + round((transit_s or 0.0) * 1e6))


def _sent(recorded: Recorded, at_us: Times, lead_us: int) -> Sent:
    """Return the run's own events as a table, as reference policies are told about them beforehand."""
    info, second = recorded.info, at_us // SECOND_US
    seconds = max(int(info.duration_s) + lead_us // SECOND_US, int(second.max()) + 1)
    partitions = info.payment_partitions
    counts = np.bincount(second * partitions + recorded.served.partition, minlength=seconds * partitions)
    spacing = Spacing(info.scenario.get("load", {}).get("spacing", Spacing.BURST))
    return Sent(counts.reshape(seconds, partitions), spacing, Split.TABLE, partitions, info.seed)


@dataclass(frozen=True, slots=True, eq=False)
class _Replayed:
    """A run's own events, by the time at which a replica could first have them."""

    at_us: Times
    partition: NDArray[np.int32]

    def chunks(self) -> Iterator[Schedule]:
        """Yield all of them."""
        order = np.argsort(self.at_us, kind="stable")
        yield Schedule(self.at_us[order], self.partition[order])


def best_of(recorded: Recorded, measured: Measured) -> tuple[Scenario, Sent]:
    """Return the world of a live run and its very events, of which the optimum is asked. Second 0 is the run's."""
    told = {"autoscaler.policy": CLAIRVOYANT, "simulation.pause_s": measured.pause_s, "autoscaler.initial_replicas": 1}
    scenario = scenario_of(recorded.info, measured, told)
    at_us = fed_us(recorded.served, measured.transit_s)
    sent = _sent(recorded, at_us, lead_us=0)
    return scenario, replace(sent, trace=_Replayed(at_us, recorded.served.partition), spacing=Spacing.SMOOTH)


def settings_for(scenario: Scenario, measured: Measured) -> SimulationSettings:
    """Return the world of the run, with what a scenario cannot say."""
    settings = settings_of(scenario)
    if scenario.autoscaler.policy == CLAIRVOYANT:
        return settings  # its world knows no cost, whatever was measured
    learns, told_s = scenario.autoscaler.learn_rebalance_time, scenario.autoscaler.rebalance_time_s
    ours = delivery_of(scenario) in OUR_DELIVERIES
    return replace(
        settings,
        delivery=_as_ours(settings.delivery, measured) if ours else settings.delivery,
        commit_age_s=measured.commit_age_s,
        commit_interval_s=measured.commit_interval_s,
        slots_between=True,
        stop_s=measured.stop_s or 0.0,
        planned_overhead_s=LIVE.overhead_s,
        planned_rebalance_time_s=measured.pause_p99_s if learns else told_s,
        planned_startup_s=LIVE.startup_s,
        planned_commit_age_s=LIVE.commit_age_s,
    )


def _as_ours(delivery: DeliverySettings, measured: Measured) -> DeliverySettings:
    """Return how our own replicas do it: they read plans themselves, so that no heartbeat has to bring the news."""
    delivery = replace(delivery, heartbeat_s=0.0, notice_s=measured.notice_s or 0.0)
    if measured.pause_s is None:
        return delivery
    return replace(delivery, pause_s=measured.pause_s, rebalance_time_s=measured.pause_s)
