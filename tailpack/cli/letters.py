"""`tailpack dlq`: list, show and replay dead letters, which are records that a stage has refused."""

from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer

from contracts.events import DeadLetter
from contracts.topics import Topic, qualified
from contracts.validation import DECODE_ERRORS
from tailpack.cli.options import AsJson, group_settings, match_name, print_json
from tailpack.cli.records import check_topic, follow, write
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contracts.connection import Connection

ALL: Final = "all"


def dlq(
    action: Annotated[str, typer.Argument(metavar="list|show|replay", help="What to do.")],
    letter_id: Annotated[
        str, typer.Argument(metavar="[ID|all]", help="TOPIC/PARTITION/OFFSET, as `list` prints it.")
    ] = ALL,
    *,
    config: Annotated[
        Path | None, typer.Option(help="File of the autoscaler; TAILPACK_… variables override it.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List or show dead letters, or send their records again.

    `replay` writes the original record once more into its topic and partition. Effects are not doubled, because they
    have the same ids. A record is not sent if retention has removed it, or if it differs from the refused one.
    """
    action = match_name(action, ("list", "show", "replay"), what="action")
    connection, _ = group_settings(config)
    letters = [one for one in _letters(connection) if letter_id in (ALL, one.letter_id)]
    if not letters:
        raise TailpackError(f"no dead letter {letter_id!r}; `tailpack dlq list` lists them")
    if as_json and action != "replay":
        print_json({"letters": letters})
        return
    for letter in letters:
        if action == "replay":
            _replay(connection, letter)
        at = datetime.fromtimestamp(letter.at_us // 1_000_000, UTC)
        typer.echo(f"{at:%Y-%m-%d %H:%M:%S}  {letter.stage}  {letter.letter_id}  {'; '.join(letter.reasons)}")
        if action == "show":
            typer.echo(f"  order {letter.order_id}, {letter.payload_bytes} bytes: {letter.payload}")


def _letters(connection: "Connection") -> "Iterator[DeadLetter]":
    """Yield every dead letter; records of another form are skipped. Raises TailpackError without the topic."""
    topic = qualified(connection.namespace, Topic.DEAD_LETTERS)
    check_topic(connection, topic, "correct namespace")
    for records, is_at_end in follow(connection, topic):
        for record in records:
            with suppress(*DECODE_ERRORS):
                yield msgspec.json.decode(record.value or b"", type=DeadLetter)
        if is_at_end:
            return


def _replay(connection: "Connection", letter: DeadLetter) -> None:
    """Write the refused record again. Raises TailpackError."""
    places = follow(connection, letter.topic, letter.partition, begin=letter.offset)
    found = next(records for records, is_at_end in places if records or is_at_end)
    record = found[0] if found else None
    if record is None or record.offset != letter.offset:
        raise TailpackError(f"{letter.letter_id} is not sent: the record is no longer in the topic")
    if blake2b(record.value or b"", digest_size=16).hexdigest() != letter.payload_hash:
        raise TailpackError(f"{letter.letter_id} is not sent: another record has its offset now")
    headers = list(record.headers)
    write(connection, letter.topic, record.value, key=record.key, partition=letter.partition, headers=headers)
