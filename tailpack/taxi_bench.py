"""How fast the taxi builder is: the command as users get it, on a month that is made up once and kept."""

import hashlib
import resource
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from bench.taxi import made_up
from bench.taxi.months import Month
from bench.taxi.outcome import Dropped
from tailpack.errors import TailpackError
from tailpack.local.jars import cache_folder
from tailpack.local.processes import end_family, family
from tailpack.local.resources import ResourceMeter

MONTH: Final = Month(2013, 1)
SEED: Final = 1
PARTITIONS: Final = 9
SAMPLED_EVERY_S: Final = 0.5
END_DEADLINE_S: Final = 40.0
"""The builder gives its JVM 30 s."""


@dataclass(frozen=True, slots=True)
class TaxiRow:
    """One measurement, from the start of the command to its exit, Python's and the JVM's start included."""

    rows: int
    form: str
    generation: str
    wall_s: float
    cpu_s: float
    """Of both processes together: what the wall time would be on one core that does nothing else."""
    peak_rss_gib: float
    """Memory of both processes; pages they share are counted once (PSS)."""
    events: int
    dropped: dict[str, int]
    """Rows by the rule that they break."""


def measure(rows: int, form: str, generation: made_up.Generation, console: Console) -> TaxiRow:
    """Build a trace by zone from a made-up month. Raises TailpackError when it fails, or counted what is not there."""
    with console.status(f"making up {rows:,} trips"):
        file, expected = _month(rows, form, generation)
    with tempfile.TemporaryDirectory() as folder, console.status(f"building a trace of {rows:,} trips"):
        command = [sys.executable, "-m", "tailpack", "taxi", str(file), "--out", f"{folder}/trace.csv"]
        command += ["--by", "zone", "--partitions", str(PARTITIONS), "--json"]
        meter, cpu_before, began = ResourceMeter(), _cpu_s(), time.monotonic()
        with (Path(folder) / "stderr").open("w+b") as said, (Path(folder) / "stdout").open("w+b") as printed:
            process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=printed, stderr=said)
            try:
                while _running(process):
                    meter.sample({str(one.pid): one.pid for one in family(process)}, time.monotonic())
            finally:
                end_family(process, END_DEADLINE_S)
            wall_s, cpu_s = time.monotonic() - began, _cpu_s() - cpu_before
            said.seek(0)
            printed.seek(0)
            if process.returncode:
                raise TailpackError(f"the builder failed: {said.read().decode(errors='replace').strip()}")
            built = msgspec.json.decode(printed.read())
    if built["rows"] != rows or built["dropped"] != asdict(expected):
        raise TailpackError(
            f"{file} has {rows:,} rows and {expected}; the builder counted {built['rows']:,} and {built['dropped']}"
        )
    return TaxiRow(
        rows=rows,
        form=form,
        generation=generation,
        wall_s=round(wall_s, 2),
        cpu_s=round(cpu_s, 2),
        peak_rss_gib=round(meter.peak_mib / 1024, 3),
        events=built["events"],
        dropped=built["dropped"],
    )


def _month(rows: int, form: str, generation: made_up.Generation) -> tuple[Path, Dropped]:
    """Return a month of trips and what is wrong in it; from the cache where this very code has made it before."""
    code = hashlib.blake2b(Path(made_up.__file__).read_bytes(), digest_size=4).hexdigest()
    file = cache_folder() / "taxi" / f"{generation}-{rows}-{code}-{MONTH}.{form}"
    truth = file.with_suffix(".json")
    if file.exists() and truth.exists():
        return file, msgspec.json.decode(truth.read_bytes(), type=Dropped)
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=file.parent) as temporary:
            fresh = Path(temporary) / file.name
            made = made_up.make_up(fresh, MONTH, rows, SEED, generation)
            fresh.replace(file)
        truth.write_bytes(msgspec.json.encode(made.dropped))
    except OSError as full:
        raise TailpackError(f"{file} cannot be written ({full.strerror})") from full
    return file, made.dropped


def _running(process: "subprocess.Popen[bytes]") -> bool:
    try:
        process.wait(SAMPLED_EVERY_S)
    except subprocess.TimeoutExpired:
        return True
    return False


def _cpu_s() -> float:
    """Return the CPU time of all children that have ended, and theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime
