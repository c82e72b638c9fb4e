"""Ways to deliver plans by name: which model, with which timing, on which engine."""

from autoscaler.simulator.agenda import Agenda
from autoscaler.simulator.deliveries.base import Completed, PlanDelivery
from autoscaler.simulator.deliveries.handovers import Handovers
from autoscaler.simulator.deliveries.heartbeats import Heartbeats
from autoscaler.simulator.deliveries.rounds import CooperativeSticky, Eager
from autoscaler.simulator.deliveries.share import Share
from autoscaler.simulator.engine import Engine
from autoscaler.simulator.pooled.pool import Pool
from autoscaler.simulator.settings import DeliverySettings
from contracts.delivery import Delivery


def make_delivery(
    settings: DeliverySettings, engine: Engine | Pool, agenda: Agenda, completed: Completed, seed: int
) -> PlanDelivery:
    """Return the model of `settings.delivery`. Raises ValueError where the engine does not suit it."""
    if isinstance(engine, Pool) != (settings.delivery is Delivery.SHARE):
        raise ValueError(f"delivery {settings.delivery} does not work on a {type(engine).__name__}")
    if isinstance(engine, Pool):
        return Share(engine, agenda)
    heartbeats = Heartbeats(round(settings.heartbeat_s * 1e6), seed)
    rebalance_time_us = round(settings.rebalance_time_s * 1e6)
    match settings.delivery:
        case Delivery.INCREMENTAL:
            pause_us, notice_us = round(settings.pause_s * 1e6), round(settings.notice_s * 1e6)
            return Handovers(
                engine,
                agenda,
                completed,
                stops_us=lambda _, now_us: now_us + notice_us,
                starts_us=lambda _, free_us: free_us + pause_us,
            )
        case Delivery.KIP848:
            return Handovers(engine, agenda, completed, stops_us=heartbeats.next_us, starts_us=heartbeats.next_us)
        case Delivery.COOPERATIVE_STICKY:
            return CooperativeSticky(engine, agenda, completed, heartbeats, rebalance_time_us)
        case _:  # eager, and Faust's consumer, which rebalances eagerly
            return Eager(engine, agenda, completed, heartbeats, rebalance_time_us)
