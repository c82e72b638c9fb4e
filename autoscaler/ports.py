"""What the controller needs from a world: something that can be observed and told, and something to write to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from autoscaler.model import Decision, GroupObservation, RecentArrivals


class NotReadyError(Exception):
    """An observation is not possible now. `missing` says which number, in words."""

    def __init__(self, missing: str) -> None:
        self.missing = missing
        super().__init__(missing)


class ConsumerGroup(Protocol):
    """A group whose replicas and assignment can be seen and set."""

    def observe(self) -> GroupObservation:
        """Return what is known now. Raises NotReadyError when any part of it is unknown or stale."""

    def arrivals(self) -> RecentArrivals | None:
        """Return how events lay since the last observation, without looking at commits; None where nobody knows."""

    def apply(self, decision: Decision) -> None:
        """Ask for the decision's plan; return at once. It is carried out over the following seconds."""


class Policy(Protocol):
    """Observation → decision. Deterministic for equal histories; never reads a clock."""

    @property
    def name(self) -> str:
        """Name in kebab case, as in measuring and scenarios."""

    def decide(self, observation: GroupObservation) -> Decision:
        """Return what to do now."""


Urgent = Callable[[RecentArrivals], bool]
"""Tells whether what has come since the last decision cannot wait for the next tick. Asked slot by slot."""


def urgent_of(policy: Policy) -> Urgent | None:
    """Return by what the policy wants to decide between ticks; None: it does at ticks alone, as most do."""
    urgent: Urgent | None = getattr(policy, "urgent", None)
    return urgent


@dataclass(eq=False)
class PolicyWrapper:
    """A policy around a policy: it goes by the name of the one inside, and decides when that wants to."""

    policy: Policy

    @property
    def name(self) -> str:
        """Name of the policy inside."""
        return self.policy.name

    @property
    def urgent(self) -> Urgent | None:
        """By what the policy inside wants to decide between ticks."""
        return urgent_of(self.policy)


class Journal(Protocol):
    """Where decisions are recorded."""

    def record(self, observation: GroupObservation, decision: Decision) -> None:
        """Record one decision with what it was made from."""

    def record_not_ready(self, missing: NotReadyError) -> None:
        """Record that nothing was decided because something was unknown."""
