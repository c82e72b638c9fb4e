"""Inputs of `tailpack backtest`: past traffic from a file, a topic or Prometheus, and today's scaler."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import typer
from msgspec.structs import replace

from autoscaler.policies.registry import fixed_count
from bench.backtest.current import Current, read_current
from bench.scenario import load_scenario
from bench.simulation.run import policy_config_of
from contracts.connection import Connection
from loadgen.trace import SERVICE_RATE
from loadgen.trace_file import TraceFile
from tailpack.backtest.prometheus import Range, import_rates, service_rate
from tailpack.cli.options import whole_s
from tailpack.cli.progress import progress
from tailpack.errors import TailpackError

AUTO: Final = "auto"
OBSERVED_S: Final = 60.0
"""Time for which the group of a topic is observed, seconds."""
LIMITS: Final = ("autoscaler.min_replicas", "autoscaler.max_replicas")
DERIVED: Final = ("clairvoyant", "overprovisioned", "paper-optimal")  # their options come from the traffic
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

    def read(self, service_time: str | None, out: Path) -> tuple[Path, str | None, list[str]]:
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
        if not self.topic and (auto or not self.query):
            raise TailpackError("--prometheus needs --topic NAME, or --query with the rate of each partition")
        step_s, past_s = _seconds("--step", self.step), _seconds("--past", self.past)
        asked = Range(url=self.prometheus, end_s=time.time() // step_s * step_s, duration_s=past_s, step_s=step_s)
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


def read_today(text: str, settings: Mapping[str, Any]) -> Current:
    """Return today's scaler. Raises as `read_current`, and if it cannot run with these settings of a scenario."""
    today = (now := read_current(text)).contender
    load_scenario("w1", settings)
    first = {"autoscaler.initial_replicas": today.set.get("autoscaler.min_replicas")}
    own = {"autoscaler.policy": today.policy, "payment.partitions": 1_000}  # those of the traffic are not known yet
    try:
        scenario = load_scenario("w1", {**settings, **first, **today.set, **own})
        if today.policy not in DERIVED:
            policy_config_of(scenario, scenario.policy).policy()
    except ValueError as error:
        raise TailpackError(f"--current: {error}".replace("--set ", "")) from error
    return now


def within(now: Current, partitions: int) -> Current:
    """Return today's scaler with limits up to the number of partitions, and a note if it had more replicas."""
    today = now.contender
    most = max(fixed_count(today.policy), *(today.set.get(key, 0) for key in LIMITS))
    if most <= partitions:
        return now
    limits = {key: min(today.set[key], partitions) for key in LIMITS if key in today.set}
    note = f"today: at most {partitions} of {most} replicas serve, one for each partition; others cost if it is static"
    return replace(now, contender=replace(today, set=today.set | limits), notes=(*now.notes, note))


def _rate_in(path: Path) -> float:
    rate = float(TraceFile.open(path).metadata.get(SERVICE_RATE, 0))
    if not rate:
        hint = "record it with --group and --seconds while the group is behind"
        raise TailpackError(f"--service-time auto: {path} does not show it; {hint}, or {NUMBER}")
    return rate


def _seconds(option: str, text: str) -> int:
    try:
        return whole_s(text)
    except typer.BadParameter as error:
        raise TailpackError(f"{option} {error.message}") from error
