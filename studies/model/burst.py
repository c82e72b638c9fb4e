"""One burst, event by event: what happens to it when nothing is done, and when partitions move while it waits."""

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

EVENTS: Final = 160
PARTITIONS: Final = 4
LATENCY_TARGET_S: Final = 0.5
LATE: Final = "#c2571a"
IN_TIME: Final = "#0b6e99"


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


def draw(path: Path) -> None:
    """Write an SVG file."""
    import matplotlib as mpl  # noqa: PLC0415  half a second, and only here
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context({"svg.hashsalt": "tailpack", "svg.fonttype": "none", "font.size": 9}):
        figure = Figure(figsize=(8, 2.6), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, act, title in (
            (left, False, "one replica serves them all"),
            (right, True, "0.1 s later half of the partitions move"),
        ):
            latency_s = latencies_s(Halves(act=act))
            late = latency_s > LATENCY_TARGET_S
            number = np.arange(EVENTS)
            axes.plot(number[~late], latency_s[~late], ".", markersize=3, color=IN_TIME)
            axes.plot(number[late], latency_s[late], ".", markersize=3, color=LATE)
            axes.axhline(LATENCY_TARGET_S, color="#888888", linestyle=":", linewidth=1)
            axes.set_title(f"{title}: {late.sum()} of {EVENTS} late", fontsize=9)
            axes.set_xlabel("event of the burst, in order of arrival")
        left.set_ylabel("latency, s")
        figure.savefig(path, format="svg", metadata={"Date": None})
