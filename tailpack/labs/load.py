"""The load of an experiment, seen from the experiment: start it, stop it, ask what it sent."""

import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from contracts.connection import Connection
from tailpack.errors import TailpackError
from tailpack.labs.generator import SENT_FILE, STARTED_FILE, Sent
from tailpack.local.children import Child

READY_DEADLINE_S: Final = 30.0
STOP_DEADLINE_S: Final = 15.0


class Load:
    """One generator process."""

    def __init__(self, connection: Connection, folder: Path, *, rate: float, partitions: int, seed: int) -> None:
        self._folder = folder / "load"
        self._folder.mkdir()
        settings = {
            "BOOTSTRAP_SERVERS": connection.bootstrap_servers,
            "CLIENT_PROPERTIES": connection.client_properties,
            "NAMESPACE": connection.namespace,
            "RATE": str(rate),
            "PARTITIONS": str(partitions),
            "SEED": str(seed),
            "OUT_DIR": str(self._folder),
        }
        environ: Mapping[str, str] = os.environ | {f"TAILPACK_{name}": value for name, value in settings.items()}
        self._child = Child("load", "tailpack.labs.generator", environ, self._folder / "load.log")

    def start(self) -> None:
        """Start it and wait until it is about to send. Raises TailpackError."""
        self._child.start()
        deadline = time.monotonic() + READY_DEADLINE_S
        while not (self._folder / STARTED_FILE).exists():
            if self._child.exit_status is not None or time.monotonic() > deadline:
                raise TailpackError(f"the load did not start: {self._child.last_words()}")
            time.sleep(0.02)  # a file is its only sign; 20 ms is short against its start

    def check(self) -> None:
        """Raise TailpackError when it has ended by itself."""
        if self._child.exit_status is not None:
            raise TailpackError(f"the load ended in mid-run: {self._child.last_words()}")

    def stop(self) -> Sent:
        """End it in order; return what it sent. Raises TailpackError when it cannot say."""
        self._child.terminate()
        self._child.wait(STOP_DEADLINE_S)
        try:
            return msgspec.json.decode((self._folder / SENT_FILE).read_bytes(), type=Sent)
        except (OSError, msgspec.DecodeError) as missing:
            raise TailpackError(f"the load did not say what it sent: {self._child.last_words()}") from missing

    def close(self) -> None:
        """Leave no process behind."""
        self._child.terminate()
        self._child.wait(STOP_DEADLINE_S)
