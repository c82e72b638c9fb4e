"""Entries of a journal from its records."""

from collections.abc import Iterable

from contracts.journal import JournalDecoder, JournalEntry


def entries(texts: Iterable[bytes | str]) -> list[JournalEntry]:
    """Return the entries of records in their order."""
    unfolder = JournalDecoder()
    return [entry for text in texts if (entry := unfolder.decode(text)) is not None]
