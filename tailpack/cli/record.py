"""`tailpack record`: the events of a topic as a trace."""

import shlex
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from contracts.connection import Connection
from contracts.waiting import Stop
from tailpack.cli.options import Address, AsJson, Properties, check_folder, print_json
from tailpack.cli.progress import next_step, progress
from tailpack.errors import INTERRUPTED, TailpackError

if TYPE_CHECKING:
    from loadgen.recording import Missing

UNKNOWN: Final = (None, "")


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """A recorded topic."""

    trace: Path
    events: int
    partitions: int
    duration_s: float
    service_rate: float | None
    """Service rate of a busy member of the observed group, events/s; None: not observed, or not known."""
    why_unknown: str
    interrupted: bool
    missing: "tuple[Missing, ...]"

    def print(self) -> None:
        """Print on standard error what the file has, and what is missing."""
        rate = [f"a busy member serves {self.service_rate:,.1f} events/s"] if self.service_rate else []
        unknown = [f"service time unknown: {self.why_unknown}"] if self.why_unknown else []
        summary = f"{self.events:,} events of {self.partitions} partitions in {self.duration_s:,.1f} s: {self.trace}"
        for line in (summary, *rate, *unknown, *(part.message for part in self.missing)):
            Console(stderr=True).print(line, highlight=False, soft_wrap=True, markup=False)


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
    found = record_topic(connection, topic, out, group=group, seconds=seconds, observed=(group, seconds or 0))
    found.print()
    if as_json:
        shown = {name: getattr(found, name) for name in ("events", "partitions", "duration_s", "service_rate")}
        own = {"interrupted": found.interrupted, "missing": [asdict(part) for part in found.missing]}
        print_json({"trace": str(out), **shown, **own})
    next_step(f"tailpack simulate w1 --trace {shlex.quote(str(out))}", as_json=as_json)
    raise typer.Exit(INTERRUPTED if found.interrupted else 0)


def record_topic(
    connection: Connection,
    topic: str,
    out: Path,
    *,
    group: str = "",
    seconds: float | None = None,
    observed: tuple[str, float] = ("", 0),
) -> Recorded:
    """Record a topic into `out`. group, seconds: as in `record`. observed: group to observe, and for how long (s).

    Raises TailpackError.
    """
    from autoscaler.live.service_rate import observe_rate  # noqa: PLC0415  numpy only where it is needed
    from loadgen.event_writer import EventWriter  # noqa: PLC0415
    from loadgen.recording import Recording, RecordingError  # noqa: PLC0415

    check_folder(out.parent)
    interrupted, stop = False, Stop()
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
            rate, why = watched.result() if watched else UNKNOWN
        except RecordingError as error:
            raise TailpackError(str(error)) from error
        except KeyboardInterrupt:
            stop.set()
            if not into.rows:
                raise
            interrupted = True
            rate, why = watched.result() if watched else UNKNOWN
        finally:
            stop.set()
        missing = tuple(recording.missing())
        if not into.rows:
            reasons = [part.message for part in missing]
            address = connection.bootstrap_servers
            raise TailpackError("; ".join([f"topic {topic} at {address}: no record to save", *reasons]))
        out.parent.mkdir(parents=True, exist_ok=True)
        duration_s = into.write(out, recording.partitions, rate)
    return Recorded(
        trace=out, events=into.rows, partitions=recording.partitions, duration_s=duration_s, service_rate=rate,
        why_unknown=why, interrupted=interrupted, missing=missing,
    )  # fmt: skip
