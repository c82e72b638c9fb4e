"""The control loop: observe, decide, act, record. Everything else is behind a port."""

from collections.abc import Callable

from autoscaler.model import Action
from autoscaler.ports import ConsumerGroup, Journal, NotReadyError, Policy, urgent_of


class Controller:
    """Runs one policy for one group and records its decisions in one journal."""

    def __init__(
        self, group: ConsumerGroup, policy: Policy, journal: Journal, clock: Callable[[], float] = lambda: 0.0
    ) -> None:
        self.group, self.policy, self.journal, self._clock = group, policy, journal, clock
        self._urgent = urgent_of(policy)
        self.policy_s = 0.0
        """Time spent in `Policy.decide`, seconds by the clock."""

    def urgent(self) -> bool:
        """Return whether the arrivals since the last tick cannot wait for the next one. Called between ticks."""
        arrived = self.group.arrivals() if self._urgent is not None else None
        return self._urgent is not None and arrived is not None and self._urgent(arrived)

    def tick(self) -> None:
        """Make one decision. Called once per decision interval, and earlier if a decision is urgent. Never sleeps."""
        try:
            observation = self.group.observe()
        except NotReadyError as missing:
            self.journal.record_not_ready(missing)  # never guess
            return
        begun_s = self._clock()
        decision = self.policy.decide(observation)
        self.policy_s += self._clock() - begun_s
        if decision.action is not Action.NO_CHANGE:
            self.group.apply(decision)
        self.journal.record(observation, decision)
