"""What a seed changes in a scenario; where nothing is left to chance, one run says all."""

from typing import Final

from bench.scenario import Scenario
from contracts.delivery import Delivery
from loadgen.schedule import Spacing, Split

AT_HEARTBEATS: Final = (Delivery.EAGER, Delivery.COOPERATIVE_STICKY, Delivery.KIP848, Delivery.FAUST)
"""Deliveries in which members learn of a change at their next heartbeat, each at a time of its own."""


def random_parts(question: Scenario) -> tuple[str, ...]:
    """Return what is drawn at random in this scenario, in words; none: every seed gives the same run."""
    world = question.simulation
    delivery = question.payment.runtime or question.payment.delivery
    drawn = {
        "split": (world.split or question.load.split) is Split.RANDOM,
        "spacing": question.load.spacing is Spacing.POISSON,
        "heartbeats": delivery in AT_HEARTBEATS and question.payment.heartbeat_s > 0,
        "start-up": isinstance(world.startup_s, str),
        "service times": world.distribution != "deterministic",
        "lost observations": world.observation_loss > 0,
    }
    return tuple(name for name, is_random in drawn.items() if is_random)
