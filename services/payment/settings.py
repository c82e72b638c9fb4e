"""What a Payment replica is told."""

from typing import Final

from services.consumer import Options

SLOW_PREFIX: Final = b"slow-"


class ReplicaSettings(Options, frozen=True, kw_only=True):
    """Environment: TAILPACK_REPLICA, TAILPACK_SERVICE_TIME_S, … and the consumer's options. Times in seconds."""

    replica: str
    """Name in the plan, such as payment-0. Of two live processes of one name the later one owns the partitions."""
    service_time_s: float = 0.005
    """What serving one event takes; μ = 1 / service_time_s."""
    payment_partitions: int = 0
    """Least partition count of the input topic, which may grow; fewer is an error. 0: whatever the topic has."""
    slow_event_s: float = 0.0
    """For experiments: what an event takes whose order id begins with `slow-`. 0: what any other takes."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.replica:
            raise ValueError("replica must not be empty")
        if min(self.service_time_s, self.payment_partitions, self.slow_event_s) < 0:
            raise ValueError("service_time_s, slow_event_s and payment_partitions must not be negative")

    def service_time_of(self, key: bytes | None) -> float:
        """Return what serving the event with this key takes, in seconds."""
        is_slow = self.slow_event_s > 0 and (key or b"").startswith(SLOW_PREFIX)
        return self.slow_event_s if is_slow else self.service_time_s


def options_of(settings: ReplicaSettings) -> Options:
    """Return what the consumer needs to know."""
    return Options(**{name: getattr(settings, name) for name in Options.__struct_fields__})
