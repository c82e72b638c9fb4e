"""`tailpack record`: the events of a topic as a trace."""

import shlex
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from contracts.connection import Connection
from contracts.waiting import Stop
from tailpack.cli.options import Address, AsJson, Properties, check_folder, print_json
from tailpack.cli.progress import next_step, progress
from tailpack.errors import INTERRUPTED, TailpackError


def record(
    *,
    bootstrap_servers: Address,
    topic: Annotated[str, typer.Option(help="Topic to record; it is only read.")],
    out: Annotated[Path, typer.Option("--out", help="New Parquet file for the trace.")],
    group: Annotated[
        str, typer.Option(help="Begin at the committed offsets of this consumer group; default: the first record.")
    ] = "",
    seconds: Annotated[
        float | None,
        typer.Option(min=0.1, help="Record new events for this time, in seconds; default: the existing events."),
    ] = None,
    client_properties: Properties = "",
    as_json: AsJson = False,
) -> None:
    """Record a topic's events as a trace: time, partition, size and a hash of the key, but no content.

    The topic remains unchanged. Ctrl-C ends the recording and saves it.
    """
    if out.exists():
        raise TailpackError(f"{out} exists; choose another name")
    connection = Connection(bootstrap_servers=bootstrap_servers, client_properties=client_properties)
    found, _ = record_topic(connection, topic, out, group=group, seconds=seconds, observed=(group, seconds or 0))
    if as_json:
        print_json(found)
    next_step(f"tailpack simulate w1 --trace {shlex.quote(str(out))}", as_json=as_json)
    raise typer.Exit(INTERRUPTED if found["interrupted"] else 0)


def record_topic(
    connection: Connection,
    topic: str,
    out: Path,
    *,
    group: str = "",
    seconds: float | None = None,
    observed: tuple[str, float] = ("", 0),
) -> tuple[dict[str, Any], str]:
    """Record a topic into `out`. Print, and return, what the file has and lacks; and why the service rate is unknown.

    group, seconds: as in `record`. observed: group to observe, and for how long (s). Raises TailpackError.
    """
    from autoscaler.live.measurements import observe_rate  # noqa: PLC0415  numpy only where it is needed
    from loadgen.event_writer import EventWriter  # noqa: PLC0415
    from loadgen.recording import Recording, RecordingError  # noqa: PLC0415

    check_folder(out.parent)
    interrupted, stop, rate, why = False, Stop(), None, ""
    existing = next(folder for folder in out.absolute().parents if folder.exists())  # on the disk of `out`
    with (
        tempfile.TemporaryDirectory(prefix=".tailpack-record-", dir=existing) as folder,
        ThreadPoolExecutor(1) as threads,
    ):
        into = EventWriter(Path(folder))
        try:
            recording = Recording(connection, topic, group)
            watched = threads.submit(observe_rate, connection, topic, *observed, stop) if all(observed) else None
            with progress(f"recording {topic}", None if seconds else recording.expected_records) as update:
                recording.run(into, seconds=seconds, on_progress=lambda rows: update(completed=rows))
            rate, why = watched.result() if watched else (rate, why)
        except RecordingError as error:
            raise TailpackError(str(error)) from error
        except KeyboardInterrupt:
            stop.set()
            if not into.rows:
                raise
            interrupted, (rate, why) = True, watched.result() if watched else (rate, why)
        finally:
            stop.set()
        missing = recording.missing()
        if not into.rows:
            reasons = [part.message for part in missing]
            address = connection.bootstrap_servers
            raise TailpackError("; ".join([f"topic {topic} at {address}: no record to save", *reasons]))
        out.parent.mkdir(parents=True, exist_ok=True)
        duration_s = into.write(out, recording.partitions, rate)
    lines = [f"{into.rows:,} events of {recording.partitions} partitions in {duration_s:,.1f} s: {out}"]
    lines += [f"a busy member serves {rate:,.1f} events/s"] if rate else []
    lines += [f"service time unknown: {why}"] if why else []
    for line in (*lines, *(part.message for part in missing)):
        Console(stderr=True).print(line, highlight=False, soft_wrap=True, markup=False)
    found = {"trace": str(out), "events": into.rows, "partitions": recording.partitions, "duration_s": duration_s}
    found |= {"service_rate": rate, "interrupted": interrupted, "missing": [asdict(part) for part in missing]}
    return found, why
