"""The state folder: it belongs to one autoscaler at a time, and keeps what rebalances have taught the last one."""

import fcntl
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from autoscaler.estimation.rebalance_time import RebalanceTiming
from contracts.clock import steady_s

FILE: Final = "rebalance-times"
"""JSON, but not by its name: the folder's .json files are those of replicas."""
VERSION: Final = 1
SAVE_S: Final = 30.0
"""A controller that is killed loses the rounds of so long at most."""


class StateDirTakenError(Exception):
    """Another autoscaler uses the state folder."""


@contextmanager
def only_one(state_dir: Path) -> Iterator[None]:
    """Claim the folder for this process until it ends, however it ends. Raises StateDirTakenError or OSError."""
    state_dir.mkdir(parents=True, exist_ok=True)
    handle = os.open(state_dir, os.O_RDONLY)  # the folder itself: no file is left behind
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise StateDirTakenError(
                f"another autoscaler runs on {state_dir}; stop it, or set TAILPACK_STATE_DIR"
            ) from taken
        yield
    finally:
        os.close(handle)


class _File(msgspec.Struct, frozen=True, kw_only=True):
    """Contents of the file. Unknown fields are tolerated."""

    v: int
    group: str
    timings: msgspec.Raw
    """An array of RebalanceTiming."""


class LearnedTimes:
    """Reads the file once, at the start, and writes it now and then. Whatever is wrong with it stops nobody.

    group: whose rebalances they are; those of another group, or delivery, say nothing about this one.
    say: called with one sentence when there is a file that cannot be used, or when it cannot be written.
    """

    def __init__(
        self,
        state_dir: Path,
        *,
        group: str,
        say: Callable[[str], None],
        clock: Callable[[], float] = steady_s,
    ) -> None:
        self._path = state_dir / FILE
        self._group = group
        self._say = say
        self._clock = clock
        self._saved_s = clock()
        self._saved_rounds = 0
        self._failed = False

    def read(self) -> tuple[RebalanceTiming, ...]:
        """Return what was learned earlier; nothing where there is no file, or none that can be used."""
        try:
            found = msgspec.json.decode(self._path.read_bytes(), type=_File)
            if found.v != VERSION:
                raise ValueError(f"version {found.v} is unknown; this controller understands {VERSION}")
            if found.group != self._group:
                raise ValueError(f"it is of {found.group}, this is {self._group}")
            return msgspec.json.decode(found.timings, type=tuple[RebalanceTiming, ...])
        except FileNotFoundError:
            return ()
        except (OSError, ValueError) as wrong:
            self._say(f"{self._path} is not used, rebalance times are learned afresh: {wrong}")
            return ()

    def save(self, rounds: int, remembered: Callable[[], Sequence[RebalanceTiming]], *, at_once: bool = False) -> None:
        """Write the file if something was learned since, and SAVE_S have passed. A reader never sees half of it.

        rounds: how many were learned from; it grows. remembered: returns those to keep, the oldest first.
        """
        if rounds == self._saved_rounds or not (at_once or self._clock() - self._saved_s >= SAVE_S):
            return
        self._saved_s = self._clock()
        timings = msgspec.Raw(msgspec.json.encode(tuple(remembered())))
        contents = msgspec.json.encode(_File(v=VERSION, group=self._group, timings=timings))
        unfinished = self._path.with_suffix(".tmp")
        try:
            unfinished.write_bytes(contents)
            unfinished.replace(self._path)
        except OSError as wrong:
            if not self._failed:
                self._say(f"{self._path} cannot be written, the next controller learns afresh: {wrong}")
            self._failed = True
        else:
            self._failed, self._saved_rounds = False, rounds
