"""Reports about replicas that write none, from the group's coordinator and the committed offsets."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autoscaler.live.foreign.leader import Leader
from autoscaler.live.foreign.members import Member, Replicas, describe_unknown
from autoscaler.live.foreign.membership import Membership
from autoscaler.live.foreign.planner import Planner
from autoscaler.live.launcher import Instance
from autoscaler.live.measurements import CommittedRates
from autoscaler.live.progress_reader import STALE_AFTER_S
from autoscaler.live.settings import AutoscalerSettings
from autoscaler.model import PartitionLoad
from contracts.clock import monotonic_s, now_us
from contracts.connection import Connection
from contracts.progress import Progress, ReplicaState


class LedReports:
    """Has the methods of ProgressReader, for the replicas of a group that a Leader or a Planner plans.

    A member belongs to the instance that runs under the name of its replica. Once that instance has exited, its members
    leave the group.
    """

    unreadable = ""
    take_late_events: Any = staticmethod(dict)  # these replicas do not count what follows
    record_shares: Any = staticmethod(dict)
    metric_addresses: Any = staticmethod(list)
    take_rebalances: Any = staticmethod(tuple)

    def __init__(self, connection: Connection, settings: AutoscalerSettings, notify: Callable[[str], None]) -> None:
        of_kind = Planner if settings.consumers == "assigned" else Leader
        self.leader: Membership = of_kind(connection, settings, notify)
        self._topic = settings.topic_in(connection.namespace)
        self.instances: Callable[[], Mapping[str, Instance]] = dict
        """Returns the running replicas and their instances."""
        self.replicas = Replicas()
        self._newest: dict[str, Progress] = {}
        self._gone_s: dict[str, float] = {}
        """Replica without members → when its last member was seen."""
        self._members: dict[str, tuple[str, tuple[Member, ...]]] = {}
        """Replica → identity of its instance, and its members."""
        self._exited: set[str] = set()
        """Ids of members whose instance has exited. They are in the group until it knows."""
        self._work = defaultdict[str, NDArray[np.float64]](lambda: np.zeros(2))
        """Replica → events committed while it was busy, and the time that took, seconds."""
        self._rates = CommittedRates(self._count_work)
        self._state: object = None
        self._ends = np.zeros(0)
        self._at_s = 0.0
        self.unknown = ""
        """Members that belong to no replica; empty: none."""

    def poll(self) -> Mapping[str, Progress]:
        """Return the newest report of each replica, however old."""
        view, running = self.leader.view, self.instances()
        identities = {name: instance.identity for name, instance in running.items()}
        self._gone_s |= dict.fromkeys(self._members, view.seen_s)
        state = identities, view.members, view.places, view.epoch, self._at_s
        if state == self._state:
            return MappingProxyType(self._newest)
        self._state, self.replicas = state, Replicas({name: one.address for name, one in running.items()})
        for name, (identity, members) in self._members.items():
            if identities.get(name) != identity:
                self._exited |= {member.id for member in members}
                self.leader.remove(members)
        self._exited &= {member.id for member in view.members}
        by_name = self.replicas.by_name(member for member in view.members if member.id not in self._exited)
        self.unknown = describe_unknown(by_name.pop("", []))
        self._members = {name: (identities[name], tuple(found)) for name, found in by_name.items()}
        for name, found in by_name.items():
            self._gone_s[name] = view.seen_s
            own = {number for member in found for number in view.places.get(member.id, {}).get(self._topic, ())}
            events, busy_s = self._work[name].tolist()
            self._newest[name] = Progress(
                replica=name, incarnation=identities[name], pid=0, member_id=found[0].id, rebalances=0, at_us=now_us(),
                generation=max(0, view.generation), epoch=view.epoch, assigned_epoch=view.epoch,
                state=ReplicaState.MEMBER if own else ReplicaState.WARM, partitions=tuple(sorted(own)), positions={},
                processed=round(events), busy_us=round(busy_s * 1e6),
            )  # fmt: skip
        return MappingProxyType(self._newest)

    def learn(self, at_s: float, loads: Sequence[PartitionLoad]) -> None:
        """Learn the replicas' service rates from the loads at `at_s`."""
        lags = np.array([float(load.lag) for load in loads])
        if len(self._ends) != len(loads):
            self._ends, self._at_s = lags.copy(), at_s
        self._ends += np.array([load.arrival_rate for load in loads]) * (at_s - self._at_s)
        self._at_s = at_s
        if not any(load.age_s for load in loads):
            owned = {name: frozenset(self._newest[name].partitions) for name in self._members}
            self._rates.observe(at_s, owned, self._ends - lags, lags)

    def _count_work(self, name: str, events: float, seconds: float) -> None:
        self._work[name] += events, seconds

    def newest(self, replica: str) -> Progress | None:
        """Return the newest report of `replica`, however old."""
        return self._newest.get(replica)

    def age_s(self, replica: str) -> float:
        """Return the time since the coordinator last confirmed a member of `replica`, seconds."""
        return monotonic_s() - self._gone_s.get(replica, -float("inf"))

    def recent(self) -> list[Progress]:
        """Return the report of each replica that was recently confirmed."""
        return [report for name, report in [*self._newest.items()] if self.age_s(name) <= STALE_AFTER_S]

    def close(self, *, leave: bool = False) -> None:
        """End the membership of the autoscaler, see `Leader.close`."""
        self.leader.close(leave=leave)
