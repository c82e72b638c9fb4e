"""The consumers that a benchmark can serve with: our own, and those of librdkafka and Java, led or not."""

from dataclasses import dataclass
from typing import Any, Final

from autoscaler.live.foreign.leader import Leader
from autoscaler.live.settings import AutoscalerSettings
from bench.sections import LED_PROTOCOLS
from contracts.connection import Connection
from contracts.rebalance_protocol import PLAN_PROTOCOLS, RUNTIMES, RebalanceProtocol

SESSION_S: Final = 6.0
KNOWN: Final[dict[str, tuple[RebalanceProtocol, str]]] = {
    "ours": (RebalanceProtocol.INCREMENTAL, ""),
    **{str(protocol): (protocol, "librdkafka") for protocol in (*PLAN_PROTOCOLS, *RUNTIMES)},
    **{f"led-{client}": (RebalanceProtocol.LED_EAGER, client) for client in ("java", "librdkafka")},
}
"""Name → rebalance protocol and client."""


@dataclass(frozen=True, slots=True)
class Consumers:
    """How the replicas of a group consume. client: unused with our own protocols."""

    protocol: RebalanceProtocol
    client: str
    heartbeat_s: float

    def replica(self) -> tuple[str, dict[str, Any]]:
        """Return the module that runs a replica, and its settings."""
        times = {"heartbeat_s": self.heartbeat_s, "session_s": max(SESSION_S, 2 * self.heartbeat_s)}
        if self.protocol in PLAN_PROTOCOLS:
            return "services.payment", times | {"rebalance_protocol": self.protocol}
        return "tailpack.comparators", times | {"runtime": self.protocol, "client": self.client}

    def leader(self, connection: Connection) -> Leader | None:
        """Return the leader of the Payment group, not started yet; None if the autoscaler does not lead it."""
        if self.protocol not in LED_PROTOCOLS:
            return None
        settings = AutoscalerSettings(policy="static", state_dir="", consumers="led", replica_command="payment")
        return Leader(connection, settings)
