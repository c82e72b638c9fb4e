"""The pictures of the documentation that nobody has to run Kafka for: from simulations, and from committed figures.

W1 second by second: what arrives, the least replicas that could hold it, and what policies asked for. And one burst,
event by event: what happens to it when nothing is done, and when partitions move while it waits.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from autoscaler.model import Action, Decision, GroupObservation
from autoscaler.packing.bins import Bin
from autoscaler.policies.planning import change, hold, items_of, plan_for
from autoscaler.policies.settings import PolicySettings
from autoscaler.ports import Policy
from autoscaler.simulator.arrivals import Arrivals, Workload
from autoscaler.simulator.run import simulate
from autoscaler.simulator.settings import SimulationSettings
from bench.experiments.chain import draw_chain
from bench.handover.show import draw_runtimes
from bench.picture import COLORS, picture
from bench.scenario import load_scenario
from bench.simulation.optimum import find_optimum
from bench.simulation.run import run_scenario
from bench.simulation.sent import sent_by
from report.wording import minutes, share
from studies.grouping.show import draw_groupings
from studies.packing.claims import draw_points

SCENARIO: Final = "w1"
POLICIES: Final = ("tail-aware", "algorithm-2", "keda-hpa")


def requested(policy: str) -> tuple[str, NDArray[np.float64], NDArray[np.float64]]:
    """Return a label with the figures, and times in s and requested replicas as steps."""
    scenario = load_scenario(SCENARIO, {"policy": policy})
    run, result = run_scenario(scenario)
    at_us, replicas = np.array([*run.requested, (round(run.duration_s * 1e6), run.requested[-1][1])]).T
    label = f"{policy}: {share(result.in_sla)} in time, {minutes(result.replica_minutes)} replica-minutes"
    return label, at_us / 1e6, replicas.astype(np.float64)


def draw_w1(path: Path) -> None:
    """Write the picture of W1 as an SVG file."""
    scenario = load_scenario(SCENARIO)
    sent = sent_by(scenario, None)
    table, seconds = sent.table(), sent.duration_s
    found, schedule = find_optimum(scenario, sent)
    begins_s, best = np.array([(at_us / 1e6, len(names)) for at_us, names, _ in schedule] + [(seconds, 0)]).T
    with picture(path, 8, 4.4) as figure:
        above, below = figure.subplots(2, 1, sharex=True, height_ratios=(1, 1.6))
        above.fill_between(np.arange(len(table)), table.sum(axis=1), step="post", color="#bbbbbb")
        above.set_ylabel("events/s")
        least = f"the optimum, with all events known before: {found.optimum_replica_minutes:.2f} replica-minutes"
        below.fill_between(begins_s, best, step="post", color="#dddddd", label=least)
        for offset, (policy, color) in enumerate(zip(POLICIES, COLORS, strict=False)):
            label, at_s, replicas = requested(policy)
            below.step(at_s, replicas + 0.04 * (offset - 1), where="post", color=color, linewidth=1.3, label=label)
        below.set(ylabel="replicas requested", xlabel="s")
        below.legend(loc="upper left", fontsize=8)
        below.set_ylim(0, below.get_ylim()[1] + 2.5)


EVENTS: Final = 160
PARTITIONS: Final = 4
LATENCY_TARGET_S: Final = 0.5
"""Of the burst."""


class Halves:
    """Gives every other partition to a second replica, at its first tick or never."""

    name = "halves"

    def __init__(self, *, act: bool) -> None:
        self.act = act

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the plan with two replicas once."""
        if not self.act or observation.requested_replicas > 1:
            return hold(observation, "nothing is done")
        items = items_of(observation)
        plan = plan_for(observation, [Bin(items[::2]), Bin(items[1::2])], PolicySettings().replica_prefix)
        decision = change(observation, plan, "half of the partitions move")
        assert decision.action is Action.UP, "one replica became two"
        return decision


def latencies_s(policy: Policy) -> NDArray[np.float64]:
    """Return the latency of each event of a burst at second 0, in the order of arrival."""
    arrivals = Arrivals(np.zeros(EVENTS, np.int64), (np.arange(EVENTS) % PARTITIONS).astype(np.int32))
    workload = Workload.whole(arrivals, partitions=PARTITIONS, duration_s=2)
    return simulate(workload, policy, SimulationSettings()).latency_us / 1e6


def draw_burst(path: Path) -> None:
    """Write the picture of one burst as an SVG file."""
    number = np.arange(EVENTS)
    with picture(path, 8, 2.6) as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, act, title in (
            (left, False, "one replica serves them all"),
            (right, True, "0.1 s later half of the partitions move"),
        ):
            latency_s = latencies_s(Halves(act=act))
            late = latency_s > LATENCY_TARGET_S
            axes.plot(number[~late], latency_s[~late], ".", markersize=3, color=COLORS[0])
            axes.plot(number[late], latency_s[late], ".", markersize=3, color=COLORS[1])
            axes.axhline(LATENCY_TARGET_S, color="#888888", linestyle=":", linewidth=1)
            axes.set_title(f"{title}: {late.sum()} of {EVENTS} late", fontsize=9)
            axes.set_xlabel("event of the burst, in order of arrival")
        left.set_ylabel("latency, s")


PICTURES: Final[dict[str, Callable[[Path], None]]] = {
    "model-w1.svg": draw_w1,
    "model-burst.svg": draw_burst,
    "handover.svg": draw_runtimes,
    "chain.svg": draw_chain,
    "grouping.svg": draw_groupings,
    "packing.svg": draw_points,
}
"""File in docs/ → what draws it."""
