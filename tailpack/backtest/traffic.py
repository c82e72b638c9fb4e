"""Past traffic for `tailpack backtest`: from a file, a topic or Prometheus, with the service time that it shows."""

import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contracts.connection import Connection
from contracts.settings import duration_s
from tailpack.cli.progress import progress
from tailpack.errors import TailpackError

AUTO: Final = "auto"
OBSERVED_S: Final = 60.0
"""Time for which the group of a topic is observed, seconds."""
NUMBER: Final = "give a number: --service-time 5ms"


@dataclass(frozen=True, kw_only=True)
class Traffic:
    """Where the traffic comes from, as options of the command."""

    trace: Path | None
    topic: str
    group: str
    connection: Connection
    prometheus: str
    query: str
    past: str
    step: str

    def read(self, service_time: str, out: Path) -> tuple[Path, str, list[str]]:
        """Return the file of the trace, the service time, and notes. An import or a recording is written to `out`.

        service_time: `auto`: as the traffic shows it. Raises TailpackError and InvalidSettingsError.
        """
        sources = (self.trace, self.prometheus, self.topic and not self.prometheus)
        if sum(map(bool, sources)) != 1:
            raise TailpackError("give the traffic as --trace FILE, --topic NAME, or --prometheus URL with --topic")
        auto, notes = service_time == AUTO, list[str]()
        if auto and not (self.trace or self.group):
            raise TailpackError("--service-time auto needs --group NAME, whose commits show it")
        if self.prometheus:
            path, rate = self._import(out / "import.parquet", auto, notes)
        else:
            path = self.trace or self._record(out / "record.parquet", auto)
            rate = _rate_in(path) if auto else 0.0
        if auto:
            notes.append(f"measured service rate: {rate:,.1f} events/s for each busy replica (auto)")
            service_time = f"{1000 / rate:.6f}ms"
        return path, service_time, notes

    def _import(self, path: Path, auto: bool, notes: list[str]) -> tuple[Path, float]:
        from tailpack.backtest.prometheus import Range, import_rates, service_rate  # noqa: PLC0415  numpy only here

        if not self.topic and (auto or not self.query):
            raise TailpackError("--prometheus needs --topic NAME, or --query with the rate of each partition")
        step_s = _seconds("--step", self.step)
        if step_s != int(step_s):
            raise TailpackError(f"--step {self.step!r}: must be whole seconds")
        end_s, past_s = time.time() // step_s * step_s, _seconds("--past", self.past)
        asked = Range(url=self.prometheus, end_s=end_s, duration_s=past_s, step_s=int(step_s))
        with progress("importing, %", 100) as update:
            notes += import_rates(
                asked, self.query, path, topic=self.topic, announce=lambda part: update(completed=100 * part)
            )
        return path, service_rate(asked, self.topic, self.group) if auto else 0.0

    def _record(self, path: Path, auto: bool) -> Path:
        """Record the existing events, and observe the group meanwhile."""
        from tailpack.cli.record import record_topic  # noqa: PLC0415  clients only where they are needed

        if not self.connection.bootstrap_servers:
            raise TailpackError("--topic needs --bootstrap-servers HOST:PORT, or --prometheus URL")
        observed = (self.group if auto else "", OBSERVED_S)
        _, why = record_topic(self.connection, self.topic, path, observed=observed)
        if why:
            raise TailpackError(f"--service-time auto: {why}; {NUMBER}")
        return path


def _rate_in(path: Path) -> float:
    from loadgen.trace import SERVICE_RATE  # noqa: PLC0415  numpy only where it is needed
    from loadgen.trace_file import TraceFile  # noqa: PLC0415

    rate = float(TraceFile.open(path).metadata.get(SERVICE_RATE, 0))
    if not rate:
        hint = "record it with --group and --seconds while the group is behind"
        raise TailpackError(f"--service-time auto: {path} does not show it; {hint}, or {NUMBER}")
    return rate


def _seconds(option: str, text: str) -> float:
    try:
        seconds = duration_s(text)
    except ValueError as error:
        raise TailpackError(f"{option}: {error}") from error
    if seconds < 1:
        raise TailpackError(f"{option} {text!r}: must be at least one second")
    return seconds
