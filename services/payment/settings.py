"""What a Payment replica is told."""

from dataclasses import dataclass
from functools import cached_property

from contracts.events import Grouping, splits_keys
from contracts.membership import LiveSpeeds, Work
from contracts.settings import Rule, picked, setting
from services.consumer import Options
from services.consumer.environment import ConsumerSettings


@dataclass(frozen=True, kw_only=True)
class ReplicaSettings(ConsumerSettings, Work, LiveSpeeds):
    """Environment: TAILPACK_REPLICA, TAILPACK_SERVICE_TIME_S, … and the consumer's options."""

    payment_partitions: int = setting(0, "partitions", least=0)
    """Least partition count of the input topic, which may grow; fewer is an error. 0: whatever the topic has."""
    slow_event_s: float = setting(0.0, "s", least=0)
    """For experiments: what an event takes whose order id begins with `slow-`. 0: what any other takes."""
    replica_number: int = setting(0, least=0)
    """Which start of a replica this is, from 0, as `speeds` and `slow_replicas` count; whoever starts it says so."""
    key_order: bool = setting(False)
    """Whether the events of a customer must come in their order; refuses groupings that split keys."""
    grouping: Grouping = setting(Grouping.EXPLICIT)
    """What Order is told of the same name."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the base's rules and: who needs order per key gets it."""
        return (*super().rules(), ("grouping", lambda values: splits_keys(values["key_order"], values["grouping"])))

    @cached_property
    def own_service_time_s(self) -> float:
        """What an event takes this very replica while it is not slow, seconds."""
        return self.service_time_of(self.replica) / self.speed_of(self.replica_number)


def options_of(settings: ReplicaSettings) -> Options:
    """Return what the consumer needs to know."""
    return Options(**picked(settings, Options))
