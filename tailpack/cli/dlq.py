"""`tailpack dlq`: list, show and replay dead letters.

A letter has a masked and shortened copy, so a replay reads the record itself from its topic. One transaction writes it
there again and notes the replay on the topic of the letters: a record without a value, with the header REPLAYED.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from itertools import groupby, islice
from typing import Annotated, Any, Final

import msgspec
import typer
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from contracts.connection import Connection
from contracts.events import DeadLetter
from contracts.preflight import client_config
from contracts.record_reader import BEGINNING, RecordReader
from contracts.topics import CONTROL
from contracts.unpacking import Unreadable
from contracts.validation import DECODE_ERRORS
from services.common.records import fitted, mask_cards
from tailpack.cli.options import ANSWER_S, Address, AsJson, Properties, print_json, require_topics
from tailpack.cli.progress import progress
from tailpack.errors import TailpackError

REPLAYED: Final = "tailpack-replayed"
"""Header of a note on the topic of the letters, written once for each record that was replayed, see `_record_of`."""
REPLAYED_FROM: Final = "tailpack-replayed-from"
"""Header of a record that was written again: topic/partition/offset of its letter."""
MOST: Final = 100_000
"""Newest records of each partition that are read."""
BATCH: Final = 100  # records in a transaction
TOPIC_NAME: Final = re.compile(r"(?!__)[A-Za-z0-9._-]{1,249}")
SHOWN: Final = 4096  # bytes of a value
LOOK_AHEAD: Final = 4096  # bytes after a cut, because it may be inside a card number
LISTED: Final = 20  # reasons, partitions and problems
MAX_RECORD_BYTES: Final = 64_000_000

TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="Topic of the letters, such as mine.dead.letters.")]
IN_LIST: Final = "the list has the newest of each reason."
_decode: Final = msgspec.json.Decoder(DeadLetter).decode


@dataclass
class Found:
    """The records of a topic of letters, by ID: PARTITION:OFFSET."""

    letters: dict[str, DeadLetter] = field(default_factory=dict)
    """Without their payloads, which stay on the topic."""
    others: dict[str, str] = field(default_factory=dict)
    """Records that are no letters, and why."""
    replayed: set[str] = field(default_factory=set)
    """Refused records that were replayed, as in `_record_of`. A record may have several letters."""

    def add(self, record: Any) -> None:
        """Add a record of the topic."""
        value, key = record.value, f"{record.partition}:{record.offset}"
        if value is None and (noted := dict(record.headers).get(REPLAYED)):
            self.replayed.add(noted.decode(errors="replace"))
            return
        try:
            self.letters[key] = msgspec.structs.replace(_decode(value or b""), payload="")
        except DECODE_ERRORS as error:
            self.others[key] = getattr(value, "reason", "") or str(error)

    def chosen(self, keys: Iterable[str], reason: str = "", *, again: bool = True) -> dict[str, DeadLetter]:
        """Return the letters with these IDs, else all with this text in a reason; the first letter of each record.

        Raises TailpackError.
        """
        named, first = [*keys], dict[str, str]()
        for key in named:
            if key in self.others:
                raise TailpackError(f"{key}: no letter of tailpack: {_line(self.others[key])}")
            if key not in self.letters:
                raise TailpackError(f"{_line(key)}: no such letter; write PARTITION:OFFSET, as in `tailpack dlq list`")
            if _record_of(self.letters[key]) in self.replayed and not again:
                raise TailpackError(f"{key}: replayed before; to replay it again, add --again")
        every = (key for key, one in self.letters.items() if any(reason in text for text in one.reasons))
        for key in named or every:
            if again or _record_of(self.letters[key]) not in self.replayed:
                first.setdefault(_record_of(self.letters[key]), key)
        return {key: self.letters[key] for key in first.values()}


def list_letters(
    topic: TopicName, bootstrap_servers: Address, client_properties: Properties = "", *, as_json: AsJson = False
) -> None:
    """Count dead letters by reason and by the partition of the refused record. They are only read."""
    found = _read(Connection(bootstrap_servers=bootstrap_servers, client_properties=client_properties), topic)
    letters = found.letters
    newest = {one.reasons[:1]: key for key, one in sorted(letters.items(), key=lambda each: each[1].at_us)}
    reasons = Counter(letter.reasons[:1] for letter in letters.values()).most_common(LISTED)
    places = Counter(f"{_line(one.topic)}/{one.partition}" for one in letters.values()).most_common(LISTED)
    times = [_time(at_us) for at_us in sorted(letter.at_us for letter in letters.values())] or ["–"]
    result: dict[str, Any] = {
        "topic": topic, "letters": len(letters), "others": len(found.others),
        "replayed": sum(_record_of(one) in found.replayed for one in letters.values()),
        "oldest": times[0], "newest": times[-1],
        "reasons": [{"letters": n, "newest": newest[one], "reason": _line("".join(one))} for one, n in reasons],
        "partitions": [{"letters": n, "partition": place} for place, n in places],
    }  # fmt: skip
    if as_json:
        print_json(result)
        return
    typer.echo(f"{topic}: {len(letters):,} letters, {result['replayed']:,} replayed, {times[0]} to {times[-1]}")
    if found.others:
        typer.echo(f"{len(found.others):>7,}  other records, which are no letters of tailpack")
    for row in (*result["reasons"], *result["partitions"]):
        typer.echo(f"{row['letters']:>7,}  {row.get('newest', ''):<12} {row.get('reason') or row['partition']}")


def show(
    topic: TopicName,
    key: Annotated[str, typer.Argument(metavar="ID", help=f"PARTITION:OFFSET of the letter; {IN_LIST}")],
    bootstrap_servers: Address,
    client_properties: Properties = "",
    *,
    as_hex: Annotated[bool, typer.Option("--hex", help="Print the value as bytes.")] = False,
) -> None:
    """Print a dead letter, and key, headers and value of the refused record. Card numbers are masked."""
    connection = Connection(bootstrap_servers=bootstrap_servers, client_properties=client_properties)
    chosen = _read(connection, topic).chosen([key])
    letter = chosen[key]
    place = f"{_line(letter.topic)}/{letter.partition}/{letter.offset}"
    typer.echo(f"{key}  {_line(letter.stage)} refused {place} at {_time(letter.at_us)}")
    for reason in letter.reasons:
        typer.echo(f"reason  {_line(reason)}")
    ((_, record),) = _originals(connection, chosen)  # it may be gone
    if isinstance(record, str):
        raise TailpackError(record)
    for name, value in (("key     ", record.key), *((f"header  {_line(name)} =", one) for name, one in record.headers)):
        typer.echo(f"{name} {'none' if value is None else _line(_text(value))}")
    value = record.value or b""
    typer.echo(f"value    {len(value):,} bytes" + f", without the last {len(value) - SHOWN:,}" * (len(value) > SHOWN))
    if as_hex or "\ufffd" in _text(value)[: SHOWN // 4]:
        masked = mask_cards(value[: SHOWN + LOOK_AHEAD].decode("latin-1")).encode("latin-1")[:SHOWN]
        typer.echo("\n".join(masked[at : at + 32].hex(" ") for at in range(0, len(masked), 32)))
    else:
        typer.echo(_printable(_text(value), SHOWN))


def replay(
    topic: TopicName,
    bootstrap_servers: Address,
    keys: Annotated[
        list[str] | None, typer.Argument(metavar="ID…", help=f"PARTITION:OFFSET of letters; {IN_LIST}")
    ] = None,
    client_properties: Properties = "",
    *,
    every: Annotated[bool, typer.Option("--all", help="Replay all letters.")] = False,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Replay the letters with this text in a reason.")] = "",
    again: Annotated[bool, typer.Option("--again", help="Replay also those that were replayed before.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Write refused records again to their topics, with the same partition, key, value and headers.

    A header has the place of the letter. Exit status 1 if a record does not exist any more.
    """
    if bool(keys) + every + bool(reason) != 1:
        raise TailpackError("name letters as in `tailpack dlq list`, for example 0:17, or use --all or --reason TEXT")
    connection = Connection(bootstrap_servers=bootstrap_servers, client_properties=client_properties)
    options = {"transactional_id": f"{topic}.replay", "message_max_bytes": MAX_RECORD_BYTES}
    packed = {"compression_type": "gzip", "batch_num_messages": 1}  # brokers limit the packed size of a batch
    producer, done, problems = Producer(client_config(connection, **options, **packed)), 0, list[str]()
    try:
        producer.init_transactions(ANSWER_S)  # from here on, an earlier replay that still runs cannot commit
        chosen = _read(connection, topic).chosen(keys or [], reason, again=again)
        to = ", ".join(sorted({_line(letter.topic) for letter in chosen.values()}))
        if chosen and not (yes or typer.confirm(f"write {len(chosen):,} records again to {to}?", err=True)):
            raise TailpackError("nothing was replayed")
        found = _originals(connection, chosen)
        while batch := [*islice(found, BATCH)]:
            producer.begin_transaction()
            wrong = [record for _, record in batch if isinstance(record, str)]
            for key, record in batch:
                if not isinstance(record, str):
                    _write(producer, topic, key, chosen[key], record)
            producer.commit_transaction(ANSWER_S)
            problems += wrong
            done += len(batch) - len(wrong)
    except BaseException as error:
        with suppress(KafkaException):  # an open transaction stops consumers that read only what is committed
            producer.abort_transaction(ANSWER_S)
        if not isinstance(error, (KafkaException, BufferError, TimeoutError)):
            raise
        why = error.args[0].str() if isinstance(error, KafkaException) else str(error)
        raise TailpackError(f"the replay ended after {done:,} records: {why}") from error
    finally:
        for problem in problems[:LISTED]:
            typer.echo(f"tailpack: {problem}", err=True)
    typer.echo(f"{done:,} replayed" + f" to {to}" * bool(to))
    raise typer.Exit(1 if problems else 0)


def _write(producer: Producer, topic: str, key: str, letter: DeadLetter, record: Any) -> None:
    """Write a record again, and the note that it was replayed."""
    headers = [*(one for one in record.headers if one[0] != REPLAYED_FROM)]
    headers.append((REPLAYED_FROM, f"{topic}/{key.replace(':', '/')}".encode()))
    producer.produce(record.topic, record.value, record.key, record.partition, headers=headers)
    note = [(REPLAYED, _record_of(letter).encode())]
    producer.produce(topic, None, partition=int(key.partition(":")[0]), headers=note)


def _read(connection: Connection, topic: str) -> Found:
    """Read the letters. Raises TailpackError without the topic, and TimeoutError if no record arrives for ANSWER_S."""
    require_topics(connection, {topic: 1}, "name the topic of the letters, such as NAMESPACE.dead.letters")
    numbers = AdminClient(client_config(connection)).list_topics(topic, ANSWER_S).topics[topic].partitions
    found, begins = Found(), {(topic, number): BEGINNING for number in numbers}
    reader = RecordReader(connection, begins, tail=MOST, wait_ms=100, isolation_level="read_committed")
    with closing(reader), progress(f"reading {topic}") as update:
        for read, record in enumerate(reader.to_end(ANSWER_S), start=1):
            found.add(record)
            update(completed=read)
    return found


def _originals(connection: Connection, letters: Mapping[str, DeadLetter]) -> Iterator[tuple[str, Any]]:
    """Yield the ID of each letter with the record that was refused, or with a sentence why there is none."""
    ordered = sorted((one.topic, one.partition, one.offset, key) for key, one in letters.items())
    for topic in {topic for topic, *_ in ordered}:
        if not TOPIC_NAME.fullmatch(topic) or topic.endswith(CONTROL):
            raise TailpackError(f"{_line(topic)}: a letter about such a topic is forged; leave it out")
    needs = {topic: partition + 1 for topic, partition, *_ in ordered}
    require_topics(connection, needs, "so the records of some letters do not exist; leave these letters out")
    for source, some in groupby(ordered, lambda one: one[:2]):
        keys = [key for *_, key in some]
        begin = {source: letters[keys[0]].offset}
        with closing(RecordReader(connection, begin, wait_ms=100, max_partition_fetch_bytes=65_536)) as reader:
            for place, key in enumerate(keys):
                if place:
                    reader.seek({source: letters[key].offset})
                yield key, _original(reader, key, letters[key])


def _original(reader: RecordReader, key: str, letter: DeadLetter) -> Any:
    where = f"{key}: {_line(letter.topic)}/{letter.partition}/{letter.offset}"
    record = next(reader.to_end(ANSWER_S), None)
    if record is not None and isinstance(record.value, Unreadable):
        return f"{where}: {_line(record.value.reason)}"
    if record is None or record.offset != letter.offset:
        return f"{where} does not exist any more"
    if blake2b(record.value or b"", digest_size=16).hexdigest() != letter.payload_hash:
        return f"{where} is not the record that was refused; its topic was created again"
    return record


def _record_of(letter: DeadLetter) -> str:
    return f"{letter.topic}/{letter.partition}/{letter.offset} {letter.payload_hash}"


def _text(value: bytes) -> str:
    return value[: SHOWN + LOOK_AHEAD].decode(errors="replace")


def _line(text: str) -> str:
    return " ".join(_printable(text, 300).split())


def _printable(text: str, limit: int) -> str:
    """Return a text without escapes for a terminal. Letters and records may come from anyone."""
    return "".join(one if one.isprintable() or one in "\n\t" else "\ufffd" for one in fitted(text, limit))


def _time(at_us: int) -> str:
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
