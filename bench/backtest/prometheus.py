"""Imports the rate of a topic from Prometheus as a trace of events per second and partition."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError, URLError
from urllib.parse import urlencode, urlsplit
from urllib.request import Request, urlopen

import msgspec
import numpy as np

from contracts.validation import DECODE_ERRORS, InvalidSettingsError
from loadgen.shapes import IntArray
from loadgen.trace import MAX_CELLS, MAX_EVENTS

TIMEOUT_S: Final = 30.0
MAX_POINTS: Final = 10_000
"""Points of one request for each series. Prometheus refuses more than 11,000."""
MAX_BYTES: Final = 256 << 20
PARTITION: Final = "partition"


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """A trace from Prometheus."""

    path: Path
    missing: int
    """Number of samples that were missing, not a number or negative. They count as no events."""
    samples: int
    first_missing: str
    """Place of the first of them."""

    @property
    def note(self) -> str:
        """One sentence about the missing samples; empty if there are none."""
        if not self.missing:
            return ""
        what = f"{self.missing:,} of {self.samples:,} samples are missing, first {self.first_missing}"
        return f"{what}; they count as no events"


def import_rates(
    url: str, query: str, path: Path, *, end_s: float, duration_s: float, step_s: int, announce: Callable[[float], None]
) -> Imported:
    """Write the rates of a query, in events per second, as a trace to `path` (Parquet).

    The query gives one series with the label `partition` for each partition, or one series without it. Each value
    counts for the step before it. end_s: end of the range, seconds since the epoch. announce: gets the imported share.
    Raises InvalidSettingsError if Prometheus does not answer, refuses the query, or has no sample.
    """
    points = int(duration_s // step_s)
    if points < 1:
        raise InvalidSettingsError([f"{duration_s:g} s are shorter than one step of {step_s} s"])
    start_s = end_s - (points - 1) * step_s
    rates: dict[int, Any] = {}
    for first in range(0, points, MAX_POINTS):
        last = min(points, first + MAX_POINTS) - 1
        values = {"start": start_s + first * step_s, "end": start_s + last * step_s, "step": step_s}
        for partition, samples in _series(_get(url, {"query": query, **values}), query).items():
            if partition * points * step_s >= MAX_CELLS:
                raise InvalidSettingsError(
                    [f"partition {partition} over {duration_s:g} s is too large; use a part of it"]
                )
            own = rates.setdefault(partition, np.full(points, np.nan))
            for at_s, text in samples:
                own[round((at_s - start_s) / step_s)] = _value(text)
        announce((last + 1) / points)
    if not rates or not any(np.isfinite(own).any() for own in rates.values()):
        raise InvalidSettingsError(
            [f"Prometheus has no sample for {query!r} in this range; check the query and the range"]
        )
    table = np.stack([rates.get(number, np.full(points, np.nan)) for number in range(max(rates) + 1)], axis=1)
    wrong = ~(np.isfinite(table) & (table >= 0))
    table[wrong] = 0.0
    if table.max() > MAX_EVENTS:
        raise InvalidSettingsError(
            [f"{query!r} has {table.max():.3g} events/s; it must be a rate, at most {MAX_EVENTS:,}"]
        )
    _write(path, _counts(table, step_s))
    row, column = np.argwhere(wrong)[0] if wrong.any() else (0, 0)
    place = f"partition {column} at {start_s + row * step_s:.0f} s since the epoch"
    return Imported(path=path, missing=int(wrong.sum()), samples=wrong.size, first_missing=place)


def _get(url: str, values: Mapping[str, Any]) -> Any:
    if urlsplit(url).scheme not in ("http", "https"):
        raise InvalidSettingsError([f"--prometheus {url!r}: must begin with http:// or https://"])
    request = Request(f"{url.rstrip('/')}/api/v1/query_range", urlencode(values).encode())  # noqa: S310  http only
    try:
        with urlopen(request, timeout=TIMEOUT_S) as answer:  # noqa: S310  as above
            body = answer.read(MAX_BYTES + 1)
    except HTTPError as error:
        body = error.read(MAX_BYTES)
    except (URLError, OSError, ValueError) as error:
        raise InvalidSettingsError(
            [f"Prometheus at {url} does not answer ({getattr(error, 'reason', error)})"]
        ) from error
    try:
        found = msgspec.json.decode(body)
        if found["status"] == "success":
            return found["data"]
        reason = found["error"]
    except (*DECODE_ERRORS, KeyError, TypeError) as error:
        raise InvalidSettingsError([f"{url} did not answer as Prometheus does"]) from error
    raise InvalidSettingsError([f"Prometheus refuses the query: {' '.join(str(reason).split())[:300]}"])


def _series(data: Any, query: str) -> dict[int, Any]:
    """Return partition → samples (seconds since the epoch, text)."""
    found: dict[int, Any] = {}
    series = data.get("result", []) if data.get("resultType") == "matrix" else []
    for one in series:
        label = one["metric"].get(PARTITION, "0" if len(series) == 1 else "")
        if not (label.isdecimal() and len(label) < 6) or int(label) in found:
            hint = f"use sum by ({PARTITION}) (…)"
            raise InvalidSettingsError([f"{query!r} must give one series for each partition; {hint}"])
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


def _write(path: Path, counts: IntArray) -> None:
    import pyarrow  # noqa: PLC0415  a tenth of a second
    from pyarrow import parquet  # noqa: PLC0415

    columns = {f"p{number}": np.ascontiguousarray(own) for number, own in enumerate(counts.T)}
    if len(columns) == 1:
        columns = {"events": columns["p0"]}
    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pyarrow.table({"second": np.arange(len(counts)), **columns}), path)
