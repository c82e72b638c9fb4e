"""Find free ports on 127.0.0.1 for processes that start now and may restart."""

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
"""File with the first and last port that the system assigns to outgoing connections."""


def free_port() -> int:
    """Return a port of 127.0.0.1 on which no process listens now."""
    return free_ports([0])[0]


def free_ports(wanted: Sequence[int], option: str = "--port") -> list[int]:
    """Return these ports, with a free port in place of each 0. Raises TailpackError if a port is taken or invalid.

    option: command-line option that the error names.
    """
    if max(wanted, default=0) > HIGHEST_PORT:
        raise TailpackError(f"{max(wanted)} is not a valid port (maximum {HIGHEST_PORT}); choose another with {option}")
    with ExitStack() as stack:  # keep all sockets open, so that no free port is returned twice
        ports = []
        for port in wanted:
            probe = stack.enter_context(socket.socket())
            if port:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as Kafka does: ignore TIME_WAIT
                try:
                    probe.bind((LOOPBACK, port))
                except OSError as error:
                    raise TailpackError(f"port {port} on {LOOPBACK} is taken; choose another with {option}") from error
            else:
                _bind_free_port(probe)
            ports.append(int(probe.getsockname()[1]))
        return ports


def _bind_free_port(probe: socket.socket) -> None:
    """Bind to a random port outside the ephemeral range. If none is free, the system chooses a port.

    While a process restarts, an outgoing connection could take its port if the port were ephemeral. A client that tries
    to reach the process could even connect to itself.
    """
    first = HIGHEST_PORT + 1
    with suppress(OSError, ValueError):
        first = int(EPHEMERAL.read_text().split()[0])
    reserved = range(LOWEST_PORT, first) if HIGHEST_PORT >= first >= LOWEST_PORT + MIN_RESERVED_PORTS else range(0)
    for port in (*random.SystemRandom().sample(reserved, min(MIN_RESERVED_PORTS, len(reserved))), 0):
        with suppress(OSError):
            probe.bind((LOOPBACK, port))
            return
