"""Compute the cheapest schedule for a scenario's events. It does not depend on the policy and is cached on disk."""

from contextlib import suppress
from dataclasses import replace
from functools import partial
from hashlib import sha256
from math import ceil
from pathlib import Path
from typing import Final

import msgspec
import numpy as np

import autoscaler.optimum as optimum_module
from autoscaler.optimum.bounds import OptimumProblem, bursts_us, volume_us
from autoscaler.optimum.optimum import MAX_PARTITIONS, Optimum, Schedule, optimum
from autoscaler.policies.registry import make_policy
from autoscaler.simulator.chance import ServiceTimes
from autoscaler.simulator.members import assign
from autoscaler.simulator.run import simulate, tick_times_us
from autoscaler.simulator.settings import STOPPING_PROTOCOLS, SimulationSettings
from bench.scenario import Scenario
from bench.simulation.sent_events import CLAIRVOYANT, SentEvents, configured_protocol, replica_minutes, settings_of
from contracts.rebalance_protocol import RebalanceProtocol
from contracts.validation import DECODE_ERRORS, InvalidSettingsError, cache_folder
from report import replace_file

CODE: Final = Path(optimum_module.__file__).parent
MAX_SEARCHED_S: Final = (0, 86_400, 86_400, 10_000, 1_200, 120)
"""Longest load that `lower_bound` searches, by number of partitions, s. Each takes about ten seconds."""
MAX_EVENTS: Final = 20_000_000
"""Maximum number of events. All are in memory, with 60 bytes each."""


def why_not(scenario: Scenario, sent: SentEvents) -> str:
    """Return the reason why this scenario's optimum cannot be computed; empty if it can."""
    settings = _clairvoyant_settings(scenario)
    service, protocol = settings.service, configured_protocol(scenario)
    replicas_are_equal = len(set(service.speeds)) == 1 and service.slow_factor == 1
    reasons = {
        "the optimum is only defined for a single group, not for stages": bool(scenario.stages),
        "a share group does not assign partitions to owners": protocol is RebalanceProtocol.SHARE,
        "start-up times are random, or depend on others": settings.startup_s is None or settings.startup_each_s > 0,
        "an eager rebalance pauses the whole group": protocol in STOPPING_PROTOCOLS,
        "replicas have different speeds": not replicas_are_equal,
        "replicas die": bool(settings.failures),
        "replicas share a limit, so their queues are not independent": bool(service.shared_limits),
        f"{sent.events:,} events do not fit into memory (maximum {MAX_EVENTS:,})": sent.events > MAX_EVENTS,
    }
    return next((why for why, applies in reasons.items() if applies), "")


def _question(scenario: Scenario, sent: SentEvents) -> OptimumProblem:
    settings = _clairvoyant_settings(scenario)
    chunks = list(sent.chunks())
    times_us = np.concatenate([np.zeros(0, np.int64), *(chunk.offset_us for chunk in chunks)])
    partition = np.concatenate([np.zeros(0, np.int64), *(chunk.partition for chunk in chunks)])
    demands_us = ServiceTimes(settings.service, settings.seed).demands_us(0, len(times_us))
    replicas = settings.initial_replicas
    owners = assign(sent.partitions, [str(number) for number in range(replicas)], {})
    return OptimumProblem(
        times_us=times_us,
        partition=partition,
        takes_us=np.maximum(1, (demands_us / settings.service.speeds[0] + 0.5).astype(np.int64)),
        partitions=sent.partitions,
        ticks_us=np.array(tick_times_us(settings, sent.duration_s), np.int64),
        duration_us=round(sent.duration_s * 1e6),
        target_us=round(scenario.target.latency_target_s * 1e6),
        late_share=1 - scenario.target.percentile,
        pause_us=round(settings.rebalance.pause_s * 1e6),
        startup_us=round((settings.startup_s or 0.0) * 1e6),
        owners=tuple(int(owners[partition]) for partition in range(sent.partitions)),
        replicas=replicas,
        least_replicas=scenario.autoscaler.min_replicas,
        most_replicas=min(scenario.autoscaler.max_replicas or sent.partitions, sent.partitions),
    )


def find_optimum(scenario: Scenario, sent: SentEvents) -> tuple[Optimum, Schedule]:
    """Return the optimum of the events in this scenario. Raises InvalidSettingsError for the reasons of `why_not`."""
    if why := why_not(scenario, sent):
        raise InvalidSettingsError([f"{scenario.name}: no optimum: {why}"])
    question = _question(scenario, sent)
    path = cache_folder() / "optima" / f"{_key(question)}.json"
    with suppress(OSError, *DECODE_ERRORS):
        return msgspec.json.decode(path.read_bytes(), type=tuple[Optimum, Schedule])
    found = optimum(question, partial(_simulated_cost, scenario, sent))
    with suppress(OSError):  # without a cache, the optimum is computed again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, msgspec.json.encode(found))
    return found


def lower_bound(scenario: Scenario, sent: SentEvents, begin_s: int) -> tuple[float, str]:
    """Return a proven lower bound of the cost from `begin_s` on, replica-seconds, and its method.

    It holds for schedules that meet the SLO. The sum over parts of a run holds for those that meet it over all parts.
    Raises InvalidSettingsError for the reasons of `why_not`, and for random service times.
    """
    if why := why_not(scenario, sent):
        raise InvalidSettingsError([f"no lower bound: {why}"])
    if not begin_s and sent.partitions <= MAX_PARTITIONS and sent.duration_s <= MAX_SEARCHED_S[sent.partitions]:
        return 60 * find_optimum(scenario, sent)[0].lower, "a search over all placements"
    problem, begin_us = _question(scenario, sent), begin_s * 1_000_000
    first = int(problem.times_us.searchsorted(begin_us))
    part = replace(
        problem,
        times_us=problem.times_us[first:] - begin_us,
        takes_us=problem.takes_us[first:],
        ticks_us=problem.ticks_us[problem.ticks_us > begin_us] - begin_us,
        duration_us=problem.duration_us - begin_us,
        replicas=problem.least_replicas,
    )
    if len(set(part.takes_us.tolist())) > 1:
        raise InvalidSettingsError(["no lower bound: service times are random"])
    allowed = ceil(part.late_share * len(part.times_us))
    return max(volume_us(part, allowed), bursts_us(part, allowed)) / 1e6, "the work that must be done in time"


def _clairvoyant_settings(scenario: Scenario) -> SimulationSettings:
    return settings_of(replace(scenario, autoscaler=replace(scenario.autoscaler, policy=CLAIRVOYANT)))


def _simulated_cost(scenario: Scenario, sent: SentEvents, schedule: Schedule) -> tuple[int, int]:
    """Simulate a schedule; return its cost in replica-µs, and the number of late events."""
    policy = make_policy(CLAIRVOYANT, options={"schedule": schedule})
    run = simulate(sent.workload(), policy, _clairvoyant_settings(scenario), keep_events=False)
    late = int((run.latency_us > round(scenario.target.latency_target_s * 1e6)).sum())
    minutes = replica_minutes(run.requested, 0, sent.duration_s)
    return round(minutes * 60e6), late + sent.events - len(run.latency_us)


def _key(question: OptimumProblem) -> str:
    digest = sha256(b"".join(path.read_bytes() for path in sorted(CODE.glob("*.py"))))
    for name, value in vars(question).items():
        digest.update(name.encode() + (value.tobytes() if isinstance(value, np.ndarray) else repr(value).encode()))
    return digest.hexdigest()[:24]
