"""Settings of a replica's group and work, from a scenario, an environment or a program."""

from dataclasses import dataclass
from typing import ClassVar, Final

from contracts.delivery import OUR_DELIVERIES, Delivery, Guarantee
from contracts.settings import Rules, Settings, must, setting

TAKES_TIME: Final = must("service_time_s", lambda of: of["service_time_s"] >= 0.00001, "must be at least 0.00001 s")
"""Where settings divide by it, an event must take some time."""
OBEYS_PLANS: Final = must("delivery", lambda of: of["delivery"] in OUR_DELIVERIES, "must be incremental or eager")
"""Where the settings are of our own consumer, the delivery is."""


@dataclass(frozen=True, kw_only=True)
class Membership(Settings):
    """How a replica takes part in its consumer group."""

    heartbeat_s: float = setting(0.5, "s", above=0)
    """How often a member shows the group that it lives. Plans do not wait for it. CLOSER 2024 compares 0.5 and 3."""
    session_s: float = setting(6.0, "s", least=1, most=1800)
    """After so long without a heartbeat the group takes a member for dead; our broker accepts no less than 1 s."""
    commit_interval_s: float = setting(0.1, "s", above=0)
    """Pause between two commits: what a crash repeats at most, apart from events in flight."""
    drain_s: float = setting(8.0, "s", least=0)
    """When told to stop, how long a replica serves on until others have taken its partitions; then it leaves all the
    same. Where no broker answers it does not wait."""
    delivery: Delivery = setting(Delivery.INCREMENTAL)
    """How plans are carried out. A runtime's name means that runtime."""
    guarantee: Guarantee = setting(Guarantee.AT_LEAST_ONCE)
    """Whether an event whose replica ends may have its output written twice, to be dropped by its id, or never. Our own
    consumer's; outputs of exactly_once are seen at its next commit."""

    RULES: ClassVar[Rules] = (
        must(
            "heartbeat_s", lambda of: of["heartbeat_s"] < of["session_s"], "is not less than session_s = {session_s:g}"
        ),
    )


@dataclass(frozen=True, kw_only=True)
class Work(Settings):
    """The cost of an event."""

    service_time_s: float = setting(0.005, "s", least=0)
    """Time to serve one event; μ = 1/service_time_s. The live autoscaler believes it until progress says better."""

    @property
    def service_rate(self) -> float:
        """μ, events/s."""
        return 1 / self.service_time_s


@dataclass(frozen=True, kw_only=True)
class Speeds(Settings):
    """How machines differ that are as they come, by the number of a replica: from 0 in the order of their requests."""

    speeds: tuple[float, ...] = setting((1.0,), above=0)
    """Of replicas number 0, 1, …, and again from the first: two of them make every other replica a slow one. Number n
    is the n-th start of a replica, from 0; live, of those that the autoscaler which runs has started."""
    slow_from_s: float = setting(0.0, "s", least=0)
    """From here …"""
    slow_until_s: float = setting(0.0, "s", least=0)
    """… until here an event that is begun takes slow_factor times as long."""
    slow_factor: float = setting(1.0, above=0)
    """How many times as long serving takes in [slow_from_s, slow_until_s)."""
    slow_replicas: tuple[int, ...] = setting((), least=0)
    """Numbers of those that become slow then; none named: all do. What replicas say of their work tells policies."""

    RULES: ClassVar[Rules] = (
        must("speeds", lambda of: of["speeds"], "must hold at least one"),
        must(
            "slow_until_s",
            lambda of: of["slow_from_s"] <= of["slow_until_s"],
            "is before slow_from_s = {slow_from_s:g}",
        ),
    )

    def speed_of(self, number: int) -> float:
        """Return how many times as fast a replica is while it is not slow."""
        return float(self.speeds[number % len(self.speeds)])

    def slow_factor_of(self, number: int) -> float:
        """Return how many times as long it takes while it is slow."""
        return float(self.slow_factor) if number in self.slow_replicas or not self.slow_replicas else 1.0


@dataclass(frozen=True, kw_only=True)
class LiveSpeeds(Speeds):
    """Speeds of live replicas."""

    start_file: str = setting("")
    """File in which the load writes when its second 0 was, epoch µs: slow_from_s counts from there."""

    RULES: ClassVar[Rules] = (
        must(
            "slow_factor",
            lambda of: of["slow_factor"] == 1 or of["start_file"],
            "needs start_file, to count from",
        ),
    )
