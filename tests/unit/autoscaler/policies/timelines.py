"""A group that carries out decisions at once, tick by tick; and required options of policies."""

from unit.autoscaler.builders import seen

from autoscaler.model import Action

REQUIRED_OPTIONS = {
    "clairvoyant": {"schedule": [[0, [f"payment-{i}" for i in range(4)], [f"payment-{i}" for i in range(4)]]]},
    "overprovisioned": {"peak_rates": [80.0] * 4},
}
"""Options by policy, for groups of four partitions."""


class GroupTimeline:
    """A group with a policy. Requested replicas are ready at the next tick; partitions are assigned round robin."""

    def __init__(self, policy, *, replicas=1, obeys=True):
        self.policy = policy
        self.names = [f"payment-{i}" for i in range(replicas)]
        self.obeys = obeys
        self.decision = None

    @property
    def count(self):
        return len(self.names)

    def at(self, at_s, rates, lags=None, **more):
        """Decide at second `at_s`; return the decision."""
        self.decision = self.policy.decide(seen(rates, lags, replicas=self.names, at_s=at_s, **more))
        if self.obeys and self.decision.action is not Action.NO_CHANGE:
            self.names = list(self.decision.plan.replicas)
        return self.decision

    def during(self, seconds, rates, lags=None, **more):
        """Decide at each of `seconds`; return (second, count) of every change."""
        changes = []
        for at_s in seconds:
            before = self.count
            self.at(at_s, rates, lags, **more)
            if self.count != before:
                changes.append((at_s, self.count))
        return changes
