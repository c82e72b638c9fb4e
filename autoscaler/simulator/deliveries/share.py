"""A share group (KIP-932): one pooled queue for all members. The count is all that matters."""

from collections.abc import Sequence
from functools import partial

from autoscaler.simulator.agenda import Agenda
from autoscaler.simulator.pooled.pool import Pool


class Share:
    """Implements PlanDelivery for a Pool: owners are ignored, members serve, and nothing is handed over."""

    def __init__(self, engine: Pool, agenda: Agenda) -> None:
        self._engine = engine
        self._agenda = agenda
        self._members: frozenset[int] = frozenset()

    def begin(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Start a run."""
        self.carry_out(owners, members)

    def carry_out(self, owners: Sequence[int], members: frozenset[int]) -> None:
        """Let exactly `members` take events from now on."""
        for replica in sorted(self._members - members):
            self._engine.leave(replica)
        for replica in sorted(members - self._members):
            self._engine.join(replica)
        self._members = members

    def lost(self, replica: int, evicted_us: int) -> None:
        """Let the others have what `replica` had acquired, from `evicted_us` on."""
        self._members -= {replica}
        self._agenda.at(evicted_us, partial(self._engine.give_back, replica))

    def released_us(self, replica: int) -> int | None:
        """Return when `replica` has finished what it had acquired; None while it is a member."""
        return None if replica in self._members else self._engine.busy_until_us(replica)
