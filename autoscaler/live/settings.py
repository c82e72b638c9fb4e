"""What the live autoscaler is told by its environment."""

import msgspec

from contracts.delivery import OUR_DELIVERIES, RUNTIMES, Delivery


class AutoscalerSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Environment: TAILPACK_POLICY, TAILPACK_HTTP_PORT, … Lengths of time in seconds, rates in events/s.

    Replicas inherit the whole environment, so what Payment reads is set here too.
    """

    policy: str
    """Name of a policy, as `tailpack policies` lists them."""
    payment_partitions: int
    """Partitions that the topic has at least; it may have more, and it may grow."""
    state_dir: str
    """Folder for pid files and logs of the replicas. One autoscaler at a time."""
    service_time_s: float = 0.005
    """What μ is believed to be (its inverse) before the replicas' progress says better."""
    latency_target_s: float = 0.5
    """W."""
    percentile: float = 0.999
    """The share of events that must be within W."""
    policy_options: str = ""
    """What the policy itself can be told, as a JSON object: {"patience_s": 5}."""
    decision_interval_s: float = 1.0
    tick_offset_s: float = 0.1
    """Ticks fall this long after multiples of the interval on the wall clock: bursts of a load begin at whole seconds,
    and a decision shall see a burst whole, before the next one."""
    min_replicas: int = 1
    max_replicas: int = 0
    """0: as many as there are partitions."""
    initial_replicas: int = 1
    """With no plan in force, start with so many; `static` keeps them."""
    rebalance_time_s: float = 0.05
    """t_r that the policy plans for until it has been learned."""
    overhead_s: float = 0.012
    """What an event's latency has beside waiting and being served. Twice what the way through the broker takes on one
    machine (6 ms at the 99th percentile when quiet, 7 ms in the middle beside other work): few are always quiet."""
    commit_age_s: float = 0.05
    """How old commits are on average as lag is read: half of the interval in which replicas commit."""
    startup_s: float = 2.0
    """From the request of a replica until it could serve, before one was seen to start. A Python process on one of two
    busy cores takes so long."""
    learn_rebalance_time: bool = True
    """Let policies plan for the t_r of this very group (p99 of what its replicas report). Runs that repeat a published
    experiment leave it off: there t_r is 50 ms by the text, and figures stay comparable."""
    absence_grace_s: float = 0.0
    """For so long the partitions of a replica that died wait for its return. 0: the others take them at once."""
    drain_s: float = 8.0
    """What a replica is given after SIGTERM to hand its partitions over; read by the replicas, too."""
    delivery: Delivery = Delivery.INCREMENTAL
    """How replicas carry out a plan; read by the replicas, too."""
    runtime: str = ""
    """Another runtime than ours carries out the work, and places the partitions itself: plans state a count only."""
    f_up: float = 0.9
    f_down: float = 0.4
    cool_down_up_s: float = 0.0
    cool_down_down_s: float = 0.0
    http_port: int = 0
    """0: no pages."""
    keep_replicas: bool = False
    """Leave the replicas running at a clean stop; the next autoscaler adopts them."""
    replica_module: str = "services.payment"
    """Started with `python -m` for each replica."""

    def __post_init__(self) -> None:
        wrong = [
            f"{name} = {value}: {rule}"
            for name, value, good, rule in (
                ("payment_partitions", self.payment_partitions, self.payment_partitions >= 1, "must be at least 1"),
                ("service_time_s", self.service_time_s, self.service_time_s > 0, "must be more than 0 s"),
                (
                    "decision_interval_s",
                    self.decision_interval_s,
                    0.1 <= self.decision_interval_s <= 60,
                    "must be 0.1 to 60 s",
                ),
                (
                    "tick_offset_s",
                    self.tick_offset_s,
                    0 <= self.tick_offset_s < self.decision_interval_s,
                    "must be at least 0 s and less than the interval",
                ),
                (
                    "initial_replicas",
                    self.initial_replicas,
                    1 <= self.initial_replicas <= self.payment_partitions,
                    "must be 1 to the number of partitions",
                ),
                ("http_port", self.http_port, 0 <= self.http_port <= 65535, "must be 0 to 65535"),
                ("rebalance_time_s", self.rebalance_time_s, self.rebalance_time_s >= 0, "must be 0 s or more"),
                ("commit_age_s", self.commit_age_s, self.commit_age_s >= 0, "must be 0 s or more"),
                ("startup_s", self.startup_s, self.startup_s >= 0, "must be 0 s or more"),
                ("overhead_s", self.overhead_s, self.overhead_s >= 0, "must be 0 s or more"),
                ("absence_grace_s", self.absence_grace_s, self.absence_grace_s >= 0, "must be 0 s or more"),
                ("drain_s", self.drain_s, self.drain_s >= 0, "must be 0 s or more"),
                (
                    "delivery",
                    self.delivery,
                    self.delivery in OUR_DELIVERIES,
                    f"is another runtime's; known are {', '.join(OUR_DELIVERIES)}",
                ),
                (
                    "runtime",
                    self.runtime,
                    self.runtime in ("", *RUNTIMES),
                    f"is unknown; known are {', '.join(RUNTIMES)}; empty: our own",
                ),
            )
            if not good
        ]
        if wrong:
            raise ValueError("; ".join(wrong))
