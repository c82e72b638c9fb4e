"""Settings of a replica's group membership and service times."""

from dataclasses import dataclass
from typing import ClassVar, Final

from contracts.rebalance_protocol import PLAN_PROTOCOLS, Guarantee, RebalanceProtocol
from contracts.settings import Rules, Settings, must, setting

MIN_SERVICE_TIME: Final = must("service_time_s", lambda of: of["service_time_s"] >= 1e-5, "must be at least 0.00001 s")
"""Rule for settings that are used as divisors."""
PLAN_PROTOCOL_ONLY: Final = must(
    "rebalance_protocol", lambda of: of["rebalance_protocol"] in PLAN_PROTOCOLS, "must be incremental or eager"
)


@dataclass(frozen=True, kw_only=True)
class Membership(Settings):
    """Membership of a replica in its consumer group."""

    heartbeat_s: float = setting(0.5, "s", above=0)
    """Time between heartbeats. Plans take effect without them. CLOSER 2024 uses 0.5 and 3."""
    session_s: float = setting(6.0, "s", least=1, most=1800)
    """Time without a heartbeat after which a member counts as dead. Our broker accepts 1 s or more."""
    commit_interval_s: float = setting(0.1, "s", above=0)
    """Time between commits. A crash repeats at most this much work and the events in flight."""
    drain_s: float = setting(8.0, "s", least=0)
    """Longest time that a stopping replica serves until others own its partitions. Shorter if no broker answers."""
    rebalance_protocol: RebalanceProtocol = setting(RebalanceProtocol.INCREMENTAL)
    """How a group adopts a plan, or another client's rebalance protocol."""
    guarantee: Guarantee = setting(Guarantee.AT_LEAST_ONCE)
    """`at_least_once`: repeated outputs are dropped by id. `exactly_once`: outputs are visible at the next commit."""

    RULES: ClassVar[Rules] = (
        must("heartbeat_s", lambda of: of["heartbeat_s"] < of["session_s"], "must be below session_s = {session_s:g}"),
    )


@dataclass(frozen=True, kw_only=True)
class EventCost(Settings):
    """Service time of an event."""

    service_time_s: float = setting(0.005, "s", least=0)
    """Service time of one event. The service rate (μ) is 1/service_time_s. Live runs measure it."""

    @property
    def service_rate(self) -> float:
        """Service rate (μ), events/s."""
        return 1 / self.service_time_s


@dataclass(frozen=True, kw_only=True)
class ReplicaSpeeds(Settings):
    """Speeds of the replicas. Replicas are numbered from 0 in the order in which they were requested."""

    speeds: tuple[float, ...] = setting((1.0,), above=0)
    """Relative speeds of replicas 0, 1, … in the order of starts. The list repeats for further replicas."""
    slow_from_s: float = setting(0.0, "s", least=0)
    """Start of the slow period."""
    slow_until_s: float = setting(0.0, "s", least=0)
    """End of the slow period, in which events take `slow_factor` times as long."""
    slow_factor: float = setting(1.0, above=0)
    """Factor of the service time in the slow period."""
    slow_replicas: tuple[int, ...] = setting((), least=0)
    """Numbers of the slow replicas; empty: all. Policies see their speed in the reported service times."""

    RULES: ClassVar[Rules] = (
        must("speeds", lambda of: of["speeds"], "must have at least one item"),
        must(
            "slow_until_s",
            lambda of: of["slow_from_s"] <= of["slow_until_s"],
            "must not be before slow_from_s = {slow_from_s:g}",
        ),
    )

    def speed_of(self, number: int) -> float:
        """Return the relative speed of a replica outside the slow period."""
        return float(self.speeds[number % len(self.speeds)])

    def slow_factor_of(self, number: int) -> float:
        """Return the factor by which a replica's service times are longer in the slow period; 1: the same."""
        return float(self.slow_factor) if number in self.slow_replicas or not self.slow_replicas else 1.0


@dataclass(frozen=True, kw_only=True)
class LiveSpeeds(ReplicaSpeeds):
    """Speeds of live replicas."""

    start_file: str = setting("")
    """File with the start time of the load (epoch µs). `slow_from_s` counts from it."""

    RULES: ClassVar[Rules] = (
        must("slow_factor", lambda of: of["slow_factor"] == 1 or of["start_file"], "requires start_file"),
    )
