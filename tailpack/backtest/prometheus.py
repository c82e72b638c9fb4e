"""Imports the rate of a topic from Prometheus as a trace, and the service rate of a replica of its group."""

import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

import msgspec
import numpy as np

from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from loadgen.shapes import IntArray
from loadgen.trace import MAX_CELLS, MAX_EVENTS, Trace

TIMEOUT_S: Final = 30.0
MAX_POINTS: Final = 10_000
"""Points of one request for each series. Prometheus refuses more than 11,000."""
MAX_BYTES: Final = 256 << 20
PARTITION: Final = "partition"
TOKEN: Final = "TAILPACK_PROMETHEUS_TOKEN"  # noqa: S105  the name of the variable
MIN_LAG_S: Final = 10.0
"""A partition counts as behind if its lag always exceeds this many seconds of its commits: clients commit every 5 s."""
MIN_SAMPLES: Final = 3
OFFSET: Final = "kafka_topic_partition_current_offset{{topic={topic}}}"
GROUP: Final = "{{consumergroup={group},topic={topic}}}"


class Range(msgspec.Struct, frozen=True, kw_only=True):
    """A server, and the times for which it is asked."""

    url: str
    end_s: float
    """End, seconds since the epoch."""
    duration_s: float
    step_s: int

    @property
    def points(self) -> int:
        """Number of times. Each stands for the step before it. Raises InvalidSettingsError if there is none."""
        if self.duration_s < self.step_s:
            _fail(f"{self.duration_s:g} s are shorter than one step of {self.step_s} s")
        return int(self.duration_s // self.step_s)

    @property
    def start_s(self) -> float:
        """First time, seconds since the epoch."""
        return self.end_s - (self.points - 1) * self.step_s

    @property
    def window(self) -> str:
        """Range over which a query computes a value: at least a minute and two steps."""
        return f"[{max(60, 2 * self.step_s)}s]"

    def read(self, query: str, announce: Callable[[float], None] = lambda _: None) -> Any:
        """Return the values by time and partition; NaN: no sample. Raises InvalidSettingsError without any sample.

        announce: gets the imported share.
        """
        found: dict[int, Any] = {}
        for first in range(0, self.points, MAX_POINTS):
            last = min(self.points, first + MAX_POINTS) - 1
            start_s, end_s = (self.start_s + number * self.step_s for number in (first, last))
            values = {"query": query, "start": start_s, "end": end_s, "step": self.step_s}
            for partition, samples in _series(_get(self.url, values), query).items():
                if partition * self.points * self.step_s >= MAX_CELLS:
                    _fail(f"partition {partition} over {self.duration_s:g} s is too large; use a part of it")
                own = found.setdefault(partition, np.full(self.points, np.nan))
                for at_s, text in samples:
                    own[round((at_s - self.start_s) / self.step_s)] = _value(text)
            announce((last + 1) / self.points)
        if not any(np.isfinite(own).any() for own in found.values()):
            _fail(f"Prometheus has no sample for {query!r} in this range; check the query and the range")
        nothing = np.full(self.points, np.nan)
        return np.stack([found.get(number, nothing) for number in range(max(found) + 1)], axis=1)


def import_rates(
    asked: Range, query: str, path: Path, *, topic: str = "", announce: Callable[[float], None] = lambda _: None
) -> list[str]:
    """Write the rates of a query, in events per second, as a trace to `path` (Parquet).

    query: gives one series with the label `partition` for each partition, or one series without it; empty: the rate of
    `topic` as kafka-exporter measures it. Returns a sentence about missing samples, and one about resets of the
    counter, if there are any. Raises InvalidSettingsError if Prometheus does not answer or refuses the query.
    """
    series = OFFSET.format(topic=msgspec.json.encode(topic).decode())
    table, notes = asked.read(query or f"sum by ({PARTITION}) (rate({series}{asked.window}))", announce), []
    wrong = ~(np.isfinite(table) & (table >= 0))
    table[wrong] = 0.0
    if table.max() > MAX_EVENTS:
        _fail(f"{query!r} has {table.max():.3g} events/s; it must be a rate, at most {MAX_EVENTS:,}")
    counts = _counts(table, asked.step_s)
    path.parent.mkdir(parents=True, exist_ok=True)
    Trace(path.stem, counts[:, 0] if counts.shape[1] == 1 else counts).save(path)
    if wrong.any():
        what = f"{int(wrong.sum()):,} of {wrong.size:,} samples are missing, first {_place(asked, wrong)}"
        notes.append(f"{what}; they count as no events")
    if not query:
        last = msgspec.structs.replace(asked, duration_s=asked.step_s)
        resets = last.read(f"sum by ({PARTITION}) (resets({series}[{int(asked.duration_s)}s]))")[0]
        if places := [f"{number}" for number, count in enumerate(resets) if count > 0]:
            what = f"the offsets went back {int(np.nansum(resets)):,} times, in partitions {', '.join(places)}"
            notes.append(f"{what}; each time, events between two samples are not counted")
    return notes


def service_rate(asked: Range, topic: str, group: str) -> float:
    """Return the service rate of a busy replica, events/s, from the offsets, lags and members of kafka-exporter.

    Only times count that show it: all partitions are behind, or there is one replica, or one for each partition.
    Raises InvalidSettingsError if fewer than three times do, or as `Range.read`.
    """
    names = {"topic": msgspec.json.encode(topic).decode(), "group": msgspec.json.encode(group).decode()}
    own, window = GROUP.format(**names), asked.window
    # deriv(), because rate() takes a window that lacks samples for one without commits
    rates = asked.read(f"sum by ({PARTITION}) (deriv(kafka_consumergroup_current_offset{own}{window}))")
    lags = asked.read(f"min by ({PARTITION}) (min_over_time(kafka_consumergroup_lag{own}{window}))")
    members = f"kafka_consumergroup_members{{consumergroup={names['group']}}}{window}"
    least, most = (asked.read(f"max({name}_over_time({members}))")[:, 0] for name in ("min", "max"))
    partitions = min(rates.shape[1], lags.shape[1])
    rates, lags = rates[:, :partitions], lags[:, :partitions]
    behind = (rates > 0) & (lags > MIN_LAG_S * rates)
    steady = (least == most) & (most > 0)
    one, own_each = steady & behind.any(axis=1) & (most == 1), steady & (most >= partitions)
    shared = steady & behind.all(axis=1) & ~own_each
    together = one | shared
    each = np.nansum(rates, axis=1)[together] / most[together]
    samples = [*each, *rates[own_each[:, None] & behind & ~one[:, None]]]
    if len(samples) < MIN_SAMPLES:
        never = f"the group {group} was never behind for long enough to show how fast a replica serves"
        _fail(f"--service-time auto: {never}; give a number: --service-time 5ms")
    return float(np.median(samples))


def _fail(problem: str, cause: BaseException | None = None) -> NoReturn:
    raise InvalidSettingsError([problem]) from cause


def _place(asked: Range, mask: Any) -> str:
    row, column = np.argwhere(mask)[0]
    return f"partition {column} at {asked.start_s + row * asked.step_s:.0f} s since the epoch"


def _get(url: str, values: Mapping[str, Any]) -> Any:
    if urlsplit(url).scheme not in ("http", "https"):
        _fail(f"--prometheus {url!r}: must begin with http:// or https://")
    token = os.environ.get(TOKEN, "")
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    request = Request(f"{url.rstrip('/')}/api/v1/query_range", urlencode(values).encode(), headers)  # noqa: S310  http only
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310  as above
            body = answer.read(MAX_BYTES + 1)
    except HTTPError as error:
        with error:
            body = error.read(MAX_BYTES)
        if error.code in (401, 403):
            what = "is no longer accepted" if token else "is missing"
            _fail(f"{url} refuses access ({error.code} {error.reason}): the token in {TOKEN} {what}", error)
    except (URLError, OSError, ValueError) as error:
        _fail(f"Prometheus at {url} does not answer ({getattr(error, 'reason', error)})", error)
    try:
        found = msgspec.json.decode(body)
        if found["status"] == "success":
            return found["data"]
        reason = found["error"]
    except (*DECODE_ERRORS, KeyError, TypeError) as error:
        _fail(f"{url} did not answer as Prometheus does", error)
    _fail(f"Prometheus refuses the query: {' '.join(str(reason).split())[:300]}")


def _series(data: Any, query: str) -> dict[int, Any]:
    """Return partition → samples (seconds since the epoch, text)."""
    found: dict[int, Any] = {}
    series = data.get("result", []) if data.get("resultType") == "matrix" else []
    for one in series:
        label = one["metric"].get(PARTITION, "0" if len(series) == 1 else "")
        if not (label.isdecimal() and len(label) < 6) or int(label) in found:
            _fail(f"{query!r} must give one series for each partition; use sum by ({PARTITION}) (…)")
        found[int(label)] = one["values"]
    return found


def _value(text: Any) -> float:
    try:
        return float(text)
    except (TypeError, ValueError):
        return math.nan


def _counts(rates: Any, step_s: int) -> IntArray:
    """Return the events of each second and partition. Fractions are carried over, so that no event is lost."""
    each_second = np.repeat(rates, step_s, axis=0)
    totals = np.floor(np.cumsum(each_second, axis=0) + 1e-6).astype(np.int64)
    return np.diff(totals, axis=0, prepend=0)
