"""What a Payment replica is told."""

from dataclasses import dataclass
from typing import Final

from contracts.membership import Work
from contracts.settings import Rule, picked, setting
from services.consumer import Options

SLOW_PREFIX: Final = b"slow-"


@dataclass(frozen=True, kw_only=True)
class ReplicaSettings(Options, Work):
    """Environment: TAILPACK_REPLICA, TAILPACK_SERVICE_TIME_S, … and the consumer's options."""

    replica: str
    """Name in the plan, such as payment-0. Of two live processes of one name the later one owns the partitions."""
    payment_partitions: int = setting(0, "partitions", least=0)
    """Least partition count of the input topic, which may grow; fewer is an error. 0: whatever the topic has."""
    slow_event_s: float = setting(0.0, "s", least=0)
    """For experiments: what an event takes whose order id begins with `slow-`. 0: what any other takes."""

    @classmethod
    def rules(cls) -> tuple[tuple[str, Rule], ...]:
        """Return the base's rules and: a replica has a name."""
        return (*super().rules(), ("replica", lambda values: None if values["replica"] else "must not be empty"))

    def service_time_of(self, key: bytes | None) -> float:
        """Return what serving the event with this key takes, in seconds."""
        is_slow = self.slow_event_s > 0 and (key or b"").startswith(SLOW_PREFIX)
        return self.slow_event_s if is_slow else self.service_time_s


def options_of(settings: ReplicaSettings) -> Options:
    """Return what the consumer needs to know."""
    return Options(**picked(settings, Options))
