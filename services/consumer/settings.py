"""How a consumer behaves. Defaults that no deployment changes stand in the modules that use them."""

import msgspec

from contracts.delivery import OUR_DELIVERIES, Delivery


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Lengths of time in seconds. Raises ValueError naming what is wrong."""

    heartbeat_s: float = 0.5
    """How often the member shows that it lives. Plans do not wait for it."""
    session_s: float = 6.0
    """After this long without a heartbeat the group takes a member for dead."""
    rebalance_timeout_s: float = 10.0
    """A member that does not rejoin within it is out of the group."""
    commit_interval_s: float = 0.1
    """Pause between two commits: what a crash repeats at most, apart from events in flight."""
    drain_s: float = 8.0
    """When told to stop: how long it serves on until others have taken its partitions; then it leaves all the same.
    Where no broker answers it does not wait."""
    delivery: Delivery = Delivery.INCREMENTAL
    concurrency: int = 1
    """Events (or batches) handled side by side, over all partitions."""
    concurrency_per_partition: int = 1
    """… of one partition. Above 1 its events still start in order, and those with the same key never overlap."""
    batch_size: int = 1
    """Events of one partition that `handle_batch` gets at most; it never waits for a batch to fill."""

    def __post_init__(self) -> None:
        if not 0 < self.heartbeat_s < self.session_s:
            raise ValueError(f"heartbeat_s {self.heartbeat_s} must lie between 0 and session_s {self.session_s}")
        for name in (
            "commit_interval_s",
            "rebalance_timeout_s",
            "concurrency",
            "concurrency_per_partition",
            "batch_size",
        ):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} {getattr(self, name)} must be positive")
        if self.delivery not in OUR_DELIVERIES:
            raise ValueError(f"delivery {self.delivery} is another runtime's; known are {', '.join(OUR_DELIVERIES)}")
        if self.drain_s < 0:
            raise ValueError(f"drain_s {self.drain_s} must not be negative")
