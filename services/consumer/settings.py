"""What a replica is told. Defaults that no deployment changes stand in the modules that use them."""

import msgspec


class ReplicaSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Environment: TAILPACK_REPLICA, TAILPACK_SERVICE_TIME_S, … Lengths of time in seconds."""

    replica: str
    """Name in the plan, such as payment-0. Of two live processes of one name the later one owns the partitions."""
    service_time_s: float = 0.005
    """What serving one event takes; μ = 1 / service_time_s."""
    payment_partitions: int = 0
    """Expected partition count of the input topic; another count is an error. 0: whatever the topic has."""
    heartbeat_s: float = 0.5
    """Bounds how long a change that no plan announced stays unnoticed."""
    session_s: float = 6.0
    """After this long without a heartbeat the group takes a member for dead."""
    commit_interval_s: float = 0.1
    """Pause between two commits: what a crash repeats at most, apart from events in flight."""

    def __post_init__(self) -> None:
        if not self.replica:
            raise ValueError("replica must not be empty")
        if self.service_time_s < 0 or self.payment_partitions < 0:
            raise ValueError("service_time_s and payment_partitions must not be negative")
        if not 0 < self.heartbeat_s < self.session_s:
            raise ValueError(f"heartbeat_s {self.heartbeat_s} must lie between 0 and session_s {self.session_s}")
        if self.commit_interval_s <= 0:
            raise ValueError(f"commit_interval_s {self.commit_interval_s} must be positive")
