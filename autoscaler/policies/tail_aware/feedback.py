"""What really was late: as replicas report it, and by a replay of the interval where they do not."""

from collections.abc import Mapping

from autoscaler.model import GroupObservation
from autoscaler.policies.tail_aware.prediction import late_already, late_for_certain
from autoscaler.policies.tail_aware.situation import Candidate, Floats, Situation


class Reports:
    """Late events as replicas report them; of those that report nothing what a replay says, until they do."""

    def __init__(self) -> None:
        self.told: dict[str, float] = {}
        """Replica → reported since the last booking, beyond what was booked for it meanwhile."""
        self._booked: dict[str, float] = {}
        """Replica → booked by replays since it reported last."""

    def hear(self, observation: GroupObservation) -> None:
        """Take in what one observation says, of those that have left as well."""
        reported = [(one.name, one.late) for one in observation.replicas]
        for name, late in (*reported, *observation.late_of_others.items()):
            if late is not None:
                self.told[name] = self.told.get(name, 0) + max(0, late - self._booked.pop(name, 0))

    def replayed(
        self,
        observation: GroupObservation,
        chosen: tuple[Situation, Candidate],
        before: tuple[Situation, Candidate] | None,
        arrived: Floats,
        numbers: Mapping[str, int],
    ) -> dict[str, float]:
        """Return replica → late events, of each that is there or was at the last tick and has reported nothing since.

        Under "" those of all others, where nobody reports: else they report themselves what they finish.
        chosen: now, and at the tick `before`; arrived: the events between them, by slot and partition. numbers: of
        replicas by name, as they were numbered then.
        """
        told, there = self.told, observation.replica_names
        count = 0 if before is None else len(before[0].rates)
        then = {one: name for name, one in numbers.items() if one < count}
        silent = {name for name in (*then.values(), *there) if name not in told}
        if not silent:
            return {}
        late = dict.fromkeys(sorted(silent), 0.0)
        if not any(one.ready and one.name in told for one in observation.replicas):
            late[""] = 0.0
        replays = [(late_for_certain(*chosen, arrived), dict(enumerate(there)))]
        if before is not None:
            replays.append((late_already(*before, arrived), then))
        for events, names in replays:
            for replica, more in enumerate(events.tolist()):
                if (name := names.get(replica, "")) in late:
                    late[name] += more
        return late

    def book(self, replayed: Mapping[str, float]) -> float:
        """Return the late events of one interval. replayed: of those that reported nothing in it, by a replay."""
        late = sum(self.told.values()) + sum(replayed.values())
        self._booked = {name: self._booked.get(name, 0) + more for name, more in replayed.items()}
        self.told = {}
        return late
