"""Free ports of loopback, for what is started now, or stopped and started again."""

import random
import socket
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from tailpack.errors import TailpackError

LOOPBACK: Final = "127.0.0.1"
LOWEST_PORT: Final = 10_000
HIGHEST_PORT: Final = 65535
MIN_RESERVED_PORTS: Final = 1_000
EPHEMERAL: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""First and last port that the system takes for connections to elsewhere."""


def free_port() -> int:
    """Return a port on loopback on which no process listens now."""
    return free_ports([0])[0]


def free_ports(wanted: Sequence[int], option: str = "--port") -> list[int]:
    """Return these ports of loopback, a free one for each 0. Raises TailpackError when one is taken, or is none.

    option: in which they were named.
    """
    if max(wanted, default=0) > HIGHEST_PORT:
        raise TailpackError(f"{max(wanted)} is not a valid port (maximum {HIGHEST_PORT}); name another with {option}")
    with ExitStack() as held:  # all at once, so that no free port is given out twice
        ports = []
        for port in wanted:
            probe = held.enter_context(socket.socket())
            if port:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka does: TIME_WAIT is no obstacle
                try:
                    probe.bind((LOOPBACK, port))
                except OSError as taken:
                    raise TailpackError(f"port {port} on {LOOPBACK} is taken; name another with {option}") from taken
            else:
                _bind_free_port(probe)
            ports.append(int(probe.getsockname()[1]))
        return ports


def _bind_free_port(probe: socket.socket) -> None:
    """Bind to a random port that the system gives to no connection; at last to one that the system chooses.

    A port that the system may give away can be taken by any connection while its process starts or restarts; even by a
    client that tries to reach it there, and is then connected to itself.
    """
    first = HIGHEST_PORT + 1
    with suppress(OSError, ValueError):
        first = int(EPHEMERAL.read_text().split()[0])
    reserved = range(LOWEST_PORT, first) if HIGHEST_PORT >= first >= LOWEST_PORT + MIN_RESERVED_PORTS else range(0)
    for port in (*random.SystemRandom().sample(reserved, min(MIN_RESERVED_PORTS, len(reserved))), 0):
        with suppress(OSError):
            probe.bind((LOOPBACK, port))
            return
