"""Ports of the controller: the group that it observes and changes, the policy, and the journal."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from autoscaler.model import Decision, GroupObservation, RecentArrivals


class NotReadyError(Exception):
    """Raised if the group cannot be observed now. The text names the value that is unknown."""


class ConsumerGroup(Protocol):
    """A group whose replicas and assignment can be observed and changed."""

    def observe(self) -> GroupObservation:
        """Return the present state. An unreadable lag becomes a worst case with its age, or NotReadyError is raised."""

    def arrivals(self) -> RecentArrivals | None:
        """Return the arrivals since the last observation, without reading commits; None if they are unknown."""

    def apply(self, decision: Decision) -> None:
        """Request the decision's plan and return at once. The group carries it out over the following seconds."""


class Policy(Protocol):
    """Maps observations to decisions. It is deterministic for equal histories and never reads a clock."""

    @property
    def name(self) -> str:
        """Name in kebab case, as in scenarios and reports."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return the decision for this tick."""


Urgent = Callable[[RecentArrivals], bool]
"""Returns whether the arrivals since the last decision cannot wait for the next tick. Called once per slot."""


def urgent_of(policy: Policy) -> Urgent | None:
    """Return the policy's test for decisions between ticks; None: it decides only at ticks, as most do."""
    urgent: Urgent | None = getattr(policy, "urgent", None)
    return urgent


@dataclass(eq=False)
class PolicyWrapper:
    """Base of a policy that wraps another one. It has the name and the `urgent` test of the inner policy."""

    policy: Policy

    @property
    def name(self) -> str:
        """Name of the inner policy."""
        return self.policy.name

    @property
    def urgent(self) -> Urgent | None:
        """Test of the inner policy for decisions between ticks."""
        return urgent_of(self.policy)


class Journal(Protocol):
    """Records decisions."""

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with its observation."""

    def record_not_ready(self, missing: NotReadyError) -> None:
        """Record that no decision was possible because a value was unknown."""
