"""Steps of a group that takes no plan: a replica goes, another comes, and the group decides who owns what."""

import time
from collections import Counter
from collections.abc import Iterator
from typing import Final

from bench.handover.evidence import Step
from bench.handover.windows import TAIL_US
from tailpack.labs.journal import Journal
from tailpack.labs.lab import Lab, OverdueError, now_us

QUIET_S: Final = 0.6
SETTLE_DEADLINE_S: Final = 30.0


class UnplannedSteps:
    """A replica is started, then the oldest one gets SIGTERM; the owners seen tell what moved."""

    def __init__(self, lab: Lab, journal: Journal, *, deadline_s: float) -> None:
        self._lab = lab
        self._journal = journal
        self.deadline_s = deadline_s

    def settle(self) -> None:
        """Wait until the replicas that were started together have shared the partitions out. Raises OverdueError."""
        self._lab.wait_for(self._is_balanced, "every replica serves its share", SETTLE_DEADLINE_S)

    def rounds(self) -> Iterator[None]:
        """Take one step after the other, for ever. Raises OverdueError when one does not come to its end."""
        while True:
            self.terminate(self._lab.replicas.running[0])
            yield
            self.start()
            yield
            self._journal.quiet.append(self._lab.rest(QUIET_S))

    def start(self) -> None:
        """Start a replica and wait until it serves its share. The step begins when it is about to join."""
        lab, before = self._lab, self._lab.timeline.owners()
        began_us = now_us()
        newcomer = lab.replicas.start()
        lab.wait_for(lambda: lab.reports.first_us(newcomer) is not None, f"{newcomer} connects", self.deadline_s)
        told_us = lab.reports.first_us(newcomer) if lab.setup.runtime.announced else None
        self._settle("start", told_us or began_us, before, f"{newcomer} serves its share", newcomer)

    def terminate(self, name: str) -> None:
        """SIGTERM, and wait until others serve what it had."""
        before = self._lab.timeline.owners()
        at_us = self._lab.replicas.terminate(name)
        self._settle("sigterm", at_us, before, f"others serve what {name} had, and it ends", name)

    def _settle(self, kind: str, at_us: int, before: dict[int, str], what: str, name: str) -> None:
        overdue = None
        try:
            self._lab.wait_for(lambda: self._settled(name), what, self.deadline_s)
        except OverdueError as late:
            overdue = late
        self._lab.pump(until_s=time.monotonic() + TAIL_US / 1e6)
        changed = {number for number, owner in self._lab.timeline.owners().items() if before.get(number) != owner}
        step = Step(kind, at_us, now_us(), None)
        self._journal.note(step, changed if self._lab.setup.runtime.owned else set(before), self._lab.timeline)
        if overdue:
            raise overdue

    def _settled(self, name: str) -> bool:
        """Every running replica serves its share of the partitions; one that was told to stop has ended."""
        lab = self._lab
        running = lab.replicas.running
        if name not in running and not lab.replicas.gone(name):
            return False
        return self._is_balanced()

    def _is_balanced(self) -> bool:
        running = self._lab.replicas.running
        if not self._lab.setup.runtime.owned:
            return set(running) <= self._lab.timeline.replicas()
        counts = Counter(self._lab.timeline.owners().values())
        share = self._lab.setup.partitions // len(running)
        return set(counts) <= set(running) and all(counts[one] >= share for one in running)
