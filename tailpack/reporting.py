"""Reports of runs that are over, and of topics that nobody here wrote."""

from pathlib import Path

from rich.console import Console

from bench.run_info import RUN_FILE
from tailpack.broker import Broker
from tailpack.cluster import Cluster
from tailpack.errors import TailpackError
from tailpack.judge import judge
from tailpack.places import default_broker_folder, new_folder


def report_run(folder: Path, console: Console, *, master: str) -> Path:
    """Judge the run in `folder`, from its topics where its broker is there, else from its Parquet files.

    A run that was interrupted left its broker's data behind: the broker is started for the report and stopped again.
    """
    if not (folder / RUN_FILE).exists():
        raise TailpackError(f"{folder} is not the folder of a run: it holds no {RUN_FILE}")
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


def _judge(folder: Path, console: Console, master: str, extra: tuple[str, ...] = ()) -> None:
    with console.status("Spark computes the report"):
        judge(folder, master=master, extra=extra, announce=lambda said: console.print(said, highlight=False))
