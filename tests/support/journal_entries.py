"""Decode the records of a journal."""

from collections.abc import Iterable

from contracts.journal import JournalDecoder, JournalEntry


def entries(texts: Iterable[bytes | str]) -> list[JournalEntry]:
    """Return the entries of records in their order."""
    return list(filter(None, map(JournalDecoder().decode, texts)))
