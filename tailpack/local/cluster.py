"""An embedded Kafka of one node or of several that share a quorum. The folder remembers how many."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tailpack.errors import TailpackError
from tailpack.local.broker import Broker, start_together, stop_together
from tailpack.local.broker_config import Seat, assign_seats, free_ports


@dataclass(frozen=True)
class Cluster:
    """Nodes numbered from 1: a single one lives in `folder` itself, several in its folders node-1, node-2, …

    With three nodes each partition has three copies, and a write is acknowledged when two of them have it.
    """

    folder: Path
    brokers: int | None = None
    """How many nodes; None: as many as the folder holds, one in a new folder. Raises TailpackError when they differ."""

    def __post_init__(self) -> None:
        held = self._held()
        if self.brokers and held and self.brokers != held:
            raise TailpackError(
                f"{self.folder} holds a Kafka of {held} broker{'s' if held > 1 else ''}, not {self.brokers}; "
                "leave --brokers out, or name another --folder"
            )

    @cached_property
    def nodes(self) -> dict[int, Broker]:
        """The nodes by number, running or not."""
        size = self._held() or self.brokers or 1
        if size == 1:
            return {1: Broker(self.folder)}
        return {number: Broker(self._folder(number)) for number in range(1, size + 1)}

    @property
    def logs(self) -> str:
        """Where the nodes print, as a shell pattern."""
        return str(self.folder / "kafka.log" if len(self.nodes) == 1 else self.folder / "node-*" / "kafka.log")

    @property
    def addresses(self) -> dict[int, str]:
        """Where clients find each node, or found it last; nodes that never started are left out."""
        return {number: broker.seat.address for number, broker in self.nodes.items() if broker.seat}

    def address(self) -> str | None:
        """Return the bootstrap addresses of all nodes, joined by commas; None when no node runs."""
        if any(broker.pid for broker in self.nodes.values()):
            return ",".join(self.addresses.values())
        return None

    def start(self, port: int = 0) -> str:
        """Start every node that does not run, wait until each serves clients, return their bootstrap addresses.

        port: of the first node; the others take the ports that follow. 0: those of last time, or free ones.
        Raises TailpackError: port taken, no Java, not ready within 90 s.
        """
        start_together([(self.nodes[seat.node], seat) for seat in self._seats(port)])
        return ",".join(self.addresses.values())

    def stop(self) -> None:
        """Stop every node cleanly, by force after 30 s. Data and ports stay for the next start."""
        stop_together(list(self.nodes.values()))

    def kill(self, node: int) -> None:
        """End a node as a crash would (SIGKILL)."""
        self.nodes[node].kill()

    def restart(self, node: int) -> None:
        """Bring a node back beside those that run, and wait until it serves clients; one that runs is left as it is."""
        broker = self.nodes[node]
        if broker.seat and not broker.pid:
            start_together([(broker, broker.seat)])

    def _seats(self, port: int) -> list[Seat]:
        """Seats of the nodes that do not run. Those that run know the others' of last time, so these stay."""
        down = [broker.seat for broker in self.nodes.values() if broker.pid is None]
        if len(down) == len(self.nodes):
            return assign_seats(down, port)
        seats = [seat for seat in down if seat]
        free_ports([seat.port for seat in seats])  # told here, in one line, if another took one meanwhile
        return seats

    def _held(self) -> int:
        """Number of nodes that the folder holds; 0 when it is new."""
        seat = Broker(self.folder).seat or Broker(self._folder(1)).seat
        return max(1, len(seat.quorum)) if seat else 0

    def _folder(self, number: int) -> Path:
        return self.folder / f"node-{number}"
