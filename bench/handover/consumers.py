"""The consumers that a benchmark can serve with: our own, and those of librdkafka and Java, planned or not."""

from dataclasses import dataclass
from typing import Any, Final

from autoscaler.live.foreign.leader import Leader
from autoscaler.live.foreign.membership import Membership
from autoscaler.live.foreign.planner import Planner
from autoscaler.live.settings import AutoscalerSettings
from contracts.connection import Connection
from contracts.rebalance_protocol import PLAN_PROTOCOLS, RUNTIMES, RebalanceProtocol

SESSION_S: Final = 6.0
CLIENTS: Final = ("java", "librdkafka")
KNOWN: Final[dict[str, tuple[RebalanceProtocol, str, str]]] = {
    "ours": (RebalanceProtocol.INCREMENTAL, "", "ours"),
    **{str(protocol): (protocol, "", "ours") for protocol in PLAN_PROTOCOLS},
    **{str(protocol): (protocol, "librdkafka", "") for protocol in RUNTIMES},
    **{f"led-{client}": (RebalanceProtocol.LED_EAGER, client, "led") for client in CLIENTS},
    **{f"assigned-{client}": (RebalanceProtocol.KIP848, client, "assigned") for client in CLIENTS},
}
"""Name → rebalance protocol, client, and setting `consumers`."""


@dataclass(frozen=True, slots=True)
class Consumers:
    """How the replicas of a group consume. client: unused with our own protocols. by: empty: they follow no plan."""

    protocol: RebalanceProtocol
    client: str
    by: str
    heartbeat_s: float

    @property
    def times(self) -> dict[str, Any]:
        """Heartbeat interval and session, as settings."""
        return {"heartbeat_s": self.heartbeat_s, "session_s": max(SESSION_S, 2 * self.heartbeat_s)}

    def replica(self) -> tuple[str, dict[str, Any]]:
        """Return the module that runs a replica, and its settings."""
        if self.protocol in PLAN_PROTOCOLS:
            return "services.payment", self.times | {"rebalance_protocol": self.protocol}
        return "tailpack.comparators", self.times | {"runtime": self.protocol, "client": self.client}

    def membership(self, connection: Connection) -> Membership | None:
        """Return the membership in the Payment group by which it is planned, not started yet; None: it has none."""
        if self.by not in ("led", "assigned"):
            return None
        times = self.times if self.by == "assigned" else {}  # which become those of the group
        settings = AutoscalerSettings(
            policy="static", state_dir="unused", consumers=self.by, replica_command="payment", **times
        )
        return (Leader if self.by == "led" else Planner)(connection, settings)
