"""The loop: observe, decide, act, record. Everything else is behind a port."""

from autoscaler.model import Action
from autoscaler.ports import ConsumerGroup, Journal, NotReadyError, Policy


class Controller:
    """One group, one policy, one journal."""

    def __init__(self, group: ConsumerGroup, policy: Policy, journal: Journal) -> None:
        self.group = group
        self.policy = policy
        self.journal = journal

    def tick(self) -> None:
        """Take one decision. Called once per decision interval; never sleeps."""
        try:
            observation = self.group.observe()
        except NotReadyError as missing:
            self.journal.record_hold(missing)  # never guess
            return
        decision = self.policy.decide(observation)
        if decision.action is not Action.HOLD:
            self.group.apply(decision)
        self.journal.record(observation, decision)
