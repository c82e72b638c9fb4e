"""Ids of effects that were written, as many as stated and no more."""

from collections.abc import Iterable
from typing import Final

RETENTION: Final = 100_000
"""Ids a running stage remembers, oldest dropped first: over five minutes at 300 events/s, some 20 MB."""
TAIL_PER_PARTITION: Final = 10_000
"""Records of each output partition read back at a start.

A crash repeats at most what was unacknowledged or uncommitted: one commit interval plus the records in flight, some
hundreds. The rest is for repeats by the producers of the input.
"""


class SeenIds:
    """A set that forgets its oldest members. A set, not a high-water mark: order is not guaranteed after a crash."""

    def __init__(self, retention: int = RETENTION) -> None:
        if retention < 1:
            raise ValueError(f"retention must be at least 1, not {retention}")
        self.retention = retention
        self._ids: dict[str, None] = {}  # a dict keeps insertion order

    def add(self, identity: str) -> None:
        """Remember `identity` as the newest."""
        self._ids.pop(identity, None)
        self._ids[identity] = None
        if len(self._ids) > self.retention:
            del self._ids[next(iter(self._ids))]

    def update(self, identities: Iterable[str]) -> None:
        """Remember all, the last as the newest."""
        for identity in identities:
            self.add(identity)

    def __contains__(self, identity: str) -> bool:
        return identity in self._ids

    def __len__(self) -> int:
        return len(self._ids)
