"""`tailpack explain`: explain the decisions of an autoscaler."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from autoscaler.page.decisions import Decided
from tailpack.cli.options import AsJson, group_settings, print_json
from tailpack.decisions import explain as explained
from tailpack.decisions import lines, select
from tailpack.decisions import why_not as explain_why_not
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from contracts.journal import JournalEntry

TAIL: Final = 20_000
"""Records that are read back from the journal topic."""
DEADLINE_S: Final = 15.0
POLL_S: Final = 0.5


def explain(
    which: Annotated[
        str,
        typer.Argument(
            metavar="last|all|EPOCH|HH:MM:SS",
            help="Decision: the last, all, or that of a plan or of a time (UTC).",
        ),
    ] = "last",
    *,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN_DIR", help="Folder of a run or a simulation.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="File of the autoscaler; TAILPACK_… variables override it.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Print each decision as it is made, until Ctrl-C.")] = False,
    why_not: Annotated[
        int | None, typer.Option("--why-not", metavar="N", min=1, help="Also print the prediction for N replicas.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain decisions: what changed, why, which plans were compared, and the effect after ten seconds.

    Without --run, the journal of the group's autoscaler is read from Kafka. Decisions to change nothing are folded.
    """
    if run is not None and follow:
        raise TailpackError("--follow needs a running autoscaler; leave out --run")
    if follow:
        _follow(config)
        return
    entries = _of_run(run) if run is not None else next(_journal(config))
    try:
        found = select(explained(entries), which)
    except ValueError as error:
        raise TailpackError(str(error)) from error
    if not found:
        raise TailpackError("the journal has no decision yet")
    if as_json:
        print_json(found)
    else:
        _print(found)
        if why_not is not None:
            typer.echo(explain_why_not(found[0], why_not))


def _print(found: list[Decided]) -> None:
    for one in found:
        for text in lines(one):
            typer.echo(text)


def _of_run(folder: Path) -> "list[JournalEntry]":
    from report.stored import load_journal  # noqa: PLC0415  pyarrow only where it is needed

    if not (found := load_journal(folder)):
        raise TailpackError(f"{folder} has no journal; name the folder of a run, or of `tailpack simulate --out`")
    return found


def _journal(config: Path | None) -> "Iterator[list[JournalEntry]]":
    """Yield the entries of the group's journal read so far, again and again. Raises TailpackError."""
    from contextlib import suppress  # noqa: PLC0415

    from contracts.journal import JournalDecoder  # noqa: PLC0415  clients only where they are needed
    from contracts.preflight import PreflightError, TopicNeed, check_topics  # noqa: PLC0415
    from contracts.record_reader import BEGINNING, RecordReader  # noqa: PLC0415
    from contracts.topics import Topic, qualified  # noqa: PLC0415
    from contracts.validation import DECODE_ERRORS  # noqa: PLC0415

    connection, settings = group_settings(config)
    topic = qualified(connection.namespace, Topic.JOURNAL)
    try:
        check_topics(connection, {topic: TopicNeed(remedy="create it with tailpack topics create")}, DEADLINE_S)
    except PreflightError as error:
        raise TailpackError(str(error)) from error
    key = settings.journal_key(connection.namespace)
    records = RecordReader(connection, {(topic, 0): BEGINNING}, tail=TAIL, wait_ms=250)
    entries: list[JournalEntry] = []
    decoder, deadline_s = JournalDecoder(), time.monotonic() + DEADLINE_S
    try:
        while True:
            for record in records.read(TAIL, POLL_S):
                with suppress(*DECODE_ERRORS):
                    entry = decoder.decode(record.value or b"") if record.key == key else None
                    entries += [entry] if entry is not None else []
            if records.is_at_end() or time.monotonic() > deadline_s:
                yield entries
    finally:
        records.close()


def _follow(config: Path | None) -> None:
    shown = -1
    for entries in _journal(config):
        found = explained(entries)
        fresh = [one for one in found[:-1] if one.at_us > shown]  # the last one may still be folded
        _print(fresh)
        shown = fresh[-1].at_us if fresh else shown
