"""Reports of runs that are over, and of topics that nobody here wrote; what of a report is shown."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console

from bench.run_info import RUN_FILE
from tailpack.broker import Broker
from tailpack.cluster import Cluster
from tailpack.errors import TailpackError
from tailpack.judge import judge
from tailpack.places import default_broker_folder, new_folder

if TYPE_CHECKING:
    from bench.report.result import Result


def report_run(folder: Path, console: Console, *, master: str) -> Path:
    """Judge the run in `folder`, from its topics where its broker is there, else from its Parquet files.

    A run that was interrupted left its broker's data behind: the broker is started for the report and stopped again.
    """
    check_run(folder)
    broker = Broker(folder / "kafka")
    started = broker.folder.exists() and broker.address() is None
    try:
        if started:
            with console.status("starting the run's Kafka"):
                broker.start()
        _judge(folder, console, master)
    finally:
        if started:
            broker.stop()
    return folder


def report_topic(
    topic: str, out: Path, console: Console, *, bootstrap_servers: str, client_properties: str, master: str
) -> Path:
    """Judge a timeline topic into a new folder under `out`."""
    address = bootstrap_servers or Cluster(default_broker_folder()).address()
    if not address:
        raise TailpackError(
            f"{topic} is no folder; to read it as a topic, name a Kafka with --bootstrap-servers, "
            "or start one: tailpack kafka start"
        )
    folder = new_folder(out, "report")
    extra = ("--topic", topic, "--bootstrap-servers", address, "--client-properties", client_properties)
    _judge(folder, console, master, extra)
    return folder


def check_run(folder: Path) -> None:
    """Raise TailpackError where `folder` is not that of a run."""
    if not (folder / RUN_FILE).exists():
        raise TailpackError(f"{folder} is not the folder of a run: it holds no {RUN_FILE}")


def kept_result(folder: Path) -> "Result":
    """Return what the run in `folder` was judged to be. Raises TailpackError where it was not."""
    from bench.report.result import RESULT_FILE, Result  # noqa: PLC0415

    try:
        return Result.load(folder)
    except FileNotFoundError as missing:
        raise TailpackError(f"{folder}: it holds no {RESULT_FILE}; without --kept it is computed") from missing
    except (OSError, msgspec.DecodeError) as broken:
        raise TailpackError(f"{folder / RESULT_FILE}: not a result ({broken})") from broken


def show(result: "Result", folder: Path, console: Console, *, as_json: bool) -> None:
    """Print the key figures and where the page is; the whole result on standard output as JSON where that is wanted."""
    from bench.report import terminal  # noqa: PLC0415

    terminal.show(result, console)
    console.print(f"report: {folder / 'report.html'}", highlight=False, soft_wrap=True)
    if as_json:
        sys.stdout.write((folder / "result.json").read_text(encoding="utf-8") + "\n")


def whole(result: "Result") -> int:
    """Return the exit status that tells whether every order had each of its effects exactly once."""
    return 0 if 0 < result.effects.orders == result.effects.exactly_once else 1


def _judge(folder: Path, console: Console, master: str, extra: tuple[str, ...] = ()) -> None:
    with console.status("Spark computes the report"):
        judge(folder, master=master, extra=extra, announce=lambda said: console.print(said, highlight=False))
