"""Steps of a group that takes no plan: a replica goes, another comes, and the group decides who owns what."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from bench.handover.analyse import SIGTERM
from bench.handover.experiment import SETTLE_S, Experiment
from contracts.clock import now_us
from contracts.delivery import Delivery

QUIET_S: Final = 0.6
SETTLE_DEADLINE_S: Final = 30.0


class UnplannedSteps:
    """A replica is started, then the oldest one gets SIGTERM; the owners seen tell what moved."""

    def __init__(self, group: Experiment) -> None:
        self._group = group

    def settle(self) -> None:
        """Wait until the replicas that were started together have shared the partitions out. Raises OverdueError."""
        self._group.wait_for(self._is_balanced, "every replica serves its share", SETTLE_DEADLINE_S)
        self._group.pump(SETTLE_S)

    def mixed(self) -> Iterator[None]:
        """Take one step after the other, for ever. Raises OverdueError when one does not come to its end."""
        while True:
            self._terminate(self._group.replicas.running[0])
            yield
            self._start()
            yield
            self._group.rest(QUIET_S)

    def _start(self) -> None:
        """Start a replica and wait until it serves its share. The step begins when it is about to join."""
        before, began_us = self._group.timeline.owners(), now_us()
        newcomer, first_us = self._group.replicas.start(), self._group.reports.first_us
        self._group.wait_for(lambda: newcomer in first_us, f"{newcomer} connects", self._group.setup.step_deadline_s)
        reports = self._group.setup.runtime is not Delivery.FAUST  # which says nothing before it has joined
        at_us = first_us[newcomer] if reports else began_us
        self._carry_out("start", at_us, before, self._is_balanced, f"{newcomer} serves its share")

    def _terminate(self, name: str) -> None:
        """SIGTERM, and wait until others serve what it had."""
        before, at_us = self._group.timeline.owners(), self._group.replicas.terminate(name)
        self._carry_out(
            SIGTERM,
            at_us,
            before,
            lambda: self._group.replicas.gone(name) and self._is_balanced(),
            f"others serve what {name} had, and it ends",
        )

    def _carry_out(self, kind: str, at_us: int, before: dict[int, str], done: Callable[[], bool], what: str) -> None:
        self._group.carry_out(kind, at_us, done, what)
        owners, owned = self._group.timeline.owners(), self._group.setup.owned
        changed = [number for number, owner in owners.items() if not owned or before.get(number) != owner]
        self._group.handovers += len(changed)

    def _is_balanced(self) -> bool:
        """Tell whether every running replica, and nobody else, serves its share of the partitions."""
        running, setup = self._group.replicas.running, self._group.setup
        if not setup.owned:
            return set(running) <= self._group.timeline.replicas()
        counts = Counter(self._group.timeline.owners().values())
        share = setup.partitions // len(running)
        return set(counts) <= set(running) and all(counts[one] >= share for one in running)
