"""`tailpack record`: a topic as a trace that `simulate`, `run` and `demo` play."""

import tempfile
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from contracts.connection import Connection
from tailpack.cli.options import AsJson, Properties, check_folder, print_json
from tailpack.cli.progress import progress
from tailpack.cli.run import Address
from tailpack.errors import INTERRUPTED, TailpackError


def record(
    *,
    bootstrap_servers: Address,
    topic: Annotated[str, typer.Option(help="Any topic; it is only read.")],
    out: Annotated[Path, typer.Option("--out", help="New Parquet file that takes the trace.")],
    group: Annotated[str, typer.Option(help="Begin where this consumer group has committed, not at the start.")] = "",
    seconds: Annotated[
        float | None, typer.Option(min=0.1, help="Go on with what arrives, for so long; else up to the topic's ends.")
    ] = None,
    client_properties: Properties = "",
    as_json: AsJson = False,
) -> None:
    """Record when events came into a topic, in which partition, their size and a hash of their key: no content.

    Nothing is changed there. Ctrl-C ends the recording and keeps it.
    """
    from loadgen.event_writer import EventWriter  # noqa: PLC0415  numpy only where it is needed
    from loadgen.recording import Recording, RecordingError  # noqa: PLC0415

    if out.exists():
        raise TailpackError(f"{out}: is there already; choose another name")
    check_folder(out.parent)
    connection = Connection(bootstrap_servers=bootstrap_servers, client_properties=client_properties)
    interrupted = False
    disk = next(place for place in out.absolute().parents if place.exists())
    with tempfile.TemporaryDirectory(prefix=".tailpack-record-", dir=disk) as folder:
        into = EventWriter(Path(folder))
        try:
            recording = Recording(connection, topic, group)
            with progress(f"recording {topic}", None if seconds else recording.most) as tell:
                recording.run(into, seconds=seconds, told=lambda rows: tell(completed=rows))
        except RecordingError as wrong:
            raise TailpackError(str(wrong)) from wrong
        except KeyboardInterrupt:
            if not into.rows:
                raise
            interrupted = True
        if not into.rows:
            raise TailpackError(f"topic {topic} at {bootstrap_servers}: there was no record to be recorded")
        out.parent.mkdir(parents=True, exist_ok=True)
        duration_s = into.write(out, recording.partitions)
    said = f"{into.rows:,} events of {recording.partitions} partitions in {duration_s:,.1f} s: {out}"
    Console(stderr=True).print(said, highlight=False, soft_wrap=True, markup=False)
    if as_json:
        found = {"trace": str(out), "events": into.rows, "partitions": recording.partitions, "duration_s": duration_s}
        print_json(found | {"interrupted": interrupted})
    raise typer.Exit(INTERRUPTED if interrupted else 0)
