"""Policies that wrap a policy: what must hold whatever the inner one wants. Each says in the reason what it vetoed."""

from autoscaler.policies.guards.backlog import KeepWhileDraining
from autoscaler.policies.guards.bounds import Bounds
from autoscaler.policies.guards.changing import HoldDuringHandover, HoldWhileChanging
from autoscaler.policies.guards.counts_only import CountsOnly
from autoscaler.policies.guards.fallback import Fallback
from autoscaler.policies.guards.known import HoldWhenUnknown
from autoscaler.policies.guards.no_help import NoticeNoHelp
from autoscaler.policies.guards.pace import CoolDown, RateLimit, Stabilised
from autoscaler.policies.guards.stuck import SetStuckAside

__all__ = [
    "Bounds",
    "CoolDown",
    "CountsOnly",
    "Fallback",
    "HoldDuringHandover",
    "HoldWhenUnknown",
    "HoldWhileChanging",
    "KeepWhileDraining",
    "NoticeNoHelp",
    "RateLimit",
    "SetStuckAside",
    "Stabilised",
]
