"""What a Payment replica is told."""

from services.consumer import Options


class ReplicaSettings(Options, frozen=True, kw_only=True):
    """Environment: TAILPACK_REPLICA, TAILPACK_SERVICE_TIME_S, … and the consumer's options. Times in seconds."""

    replica: str
    """Name in the plan, such as payment-0. Of two live processes of one name the later one owns the partitions."""
    service_time_s: float = 0.005
    """What serving one event takes; μ = 1 / service_time_s."""
    payment_partitions: int = 0
    """Least partition count of the input topic, which may grow; fewer is an error. 0: whatever the topic has."""
    slow_events: bool = False
    """For experiments: an event whose order id begins with `slow-` takes a second."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.replica:
            raise ValueError("replica must not be empty")
        if self.service_time_s < 0 or self.payment_partitions < 0:
            raise ValueError("service_time_s and payment_partitions must not be negative")


def options_of(settings: ReplicaSettings) -> Options:
    """Return what the consumer needs to know."""
    return Options(**{name: getattr(settings, name) for name in Options.__struct_fields__})
