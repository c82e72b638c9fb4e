"""An event that takes a second is being served at one replica while a partition moves between two others."""

import random
import time
from collections.abc import Iterator
from typing import Final

from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab
from tailpack.labs.planned import PlannedSteps

IN_FLIGHT_S: Final = 0.1
"""From the slow event's send to the plan: it is being served by then."""
RECOVERY_S: Final = 1.0
"""The slow replica works off what waited behind the event."""
QUIET_S: Final = 0.5


class SlowEventSteps:
    """Needs replicas whose TAILPACK_SLOW_EVENT_S is 1: an order whose id begins with slow- takes them a second."""

    def __init__(self, lab: Lab, journal: Journal, *, seed: int, deadline_s: float) -> None:
        self._lab = lab
        self._journal = journal
        self._random = random.Random(seed)
        self._steps = PlannedSteps(lab, journal, seed=seed, deadline_s=deadline_s)

    def rounds(self) -> Iterator[None]:
        """Repeat it for ever, each time with other replicas. Raises OverdueError."""
        plans = self._lab.plans
        while True:
            holders = sorted(set(plans.assignment.values()))
            slow, source = self._random.sample(holders, 2)
            target = self._random.choice([name for name in plans.replicas if name not in {slow, source}])
            behind_it = plans.held_by(slow)
            self._lab.send_slow(self._random.choice(behind_it))
            self._lab.pump(until_s=time.monotonic() + IN_FLIGHT_S)
            changes = {self._random.choice(plans.held_by(source)): target}
            self._steps.carry_out("slow event elsewhere", changes, apart=tuple(behind_it))
            yield
            self._lab.pump(until_s=time.monotonic() + RECOVERY_S)
            self._journal.quiet.append(self._lab.rest(QUIET_S))
