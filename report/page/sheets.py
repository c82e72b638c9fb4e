"""The tables of a run, as CSV (exact values) or Markdown (formatted values)."""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import msgspec

from report import replace_file
from report import result as of
from report.causes import MEANINGS
from report.result import STAGES, CauseOfLateness, LateEpisode, Result, Tail
from report.wording import UNKNOWN, count, duration, minutes, moment, over, share

MAX_MARKDOWN_ROWS: Final = 100
"""Maximum number of rows of a table in Markdown. A CSV file has all rows."""
MAX_ROW_COLUMNS: Final = 6
"""A table with one row and more columns than this is transposed."""
TIME_COLUMNS: Final = frozenset({"at_s", "from_s", "until_s"})
"""Columns of seconds since the start of the run; other columns that end in _s are durations."""
SHARE_SUFFIXES: Final = ("share", "in_sla", "percentile")
"""Suffixes of columns that are shown in percent."""
IDENTIFIER_COLUMNS: Final = frozenset({"seed", "epoch", "v"})
"""Integer columns that are not counts."""
PLAIN_TYPES: Final = (str, int, float, bool, int | None, float | None, str | None, tuple[str, ...])
"""Types of fields that fit into one cell."""
Value = str | int | float | bool | None
MINUTE_S: Final = 60
PER_SECOND: Final = ("seconds", "late-seconds", "distribution")
"""Tables with a row per second or latency. The Markdown report shows the table by minute instead."""
_NONE: Final = Tail(late=0, causes=(), episodes=())


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. Columns are named like the JSON fields, with the unit as suffix."""

    name: str
    """Value of `--table`, and name of the CSV file."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def of_records(name: str, title: str, kind: type[msgspec.Struct], records: Iterable[msgspec.Struct | None]) -> Sheet:
    """Return a table: a row for each record that is not None, and a column for each field of a type in PLAIN_TYPES."""
    columns = tuple(field.name for field in msgspec.structs.fields(kind) if field.type in PLAIN_TYPES)
    rows = ([getattr(record, column) for column in columns] for record in records if record is not None)
    plain = (["; ".join(value) if isinstance(value, tuple) else value for value in row] for row in rows)
    return _sheet(name, title, columns, plain)


def csv_text(sheet: Sheet) -> str:
    """Return the table as CSV with a header, LF line ends and full precision; unknown values are empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows(sheet.rows)
    return text.getvalue()


def write_csv(sheets: Iterable[Sheet], folder: Path) -> list[Path]:
    """Write NAME.csv for each table into `folder`; return the paths."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {folder / f"{sheet.name}.csv": sheet for sheet in sheets}
    for path, sheet in written.items():
        replace_file(path, csv_text(sheet))
    return list(written)


def markdown(sheet: Sheet) -> str:
    """Return the table as Markdown, with at most MAX_MARKDOWN_ROWS rows; a wide single row is transposed."""
    header, texts = layout(sheet)
    lines = [header, ["---"] * len(header), *texts[:MAX_MARKDOWN_ROWS]]
    more = len(texts) - MAX_MARKDOWN_ROWS
    rest = [f"\n{more:,} more rows: `--format csv --table {sheet.name}`"] if more > 0 else []
    return "\n".join(["| " + " | ".join(map(_escaped, line)) + " |" for line in lines] + rest) + "\n"


def layout(sheet: Sheet) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return header and rows as texts; a wide single row is transposed."""
    header = [heading(column) for column in sheet.columns]
    texts = [tuple(map(format_value, sheet.columns, row)) for row in sheet.rows]
    if len(texts) == 1 and len(header) > MAX_ROW_COLUMNS:
        return ["", ""], list(zip(header, texts[0], strict=True))
    return header, texts


def heading(column: str) -> str:
    """Return the title of a column: "p999_s" becomes "p99.9", "from_s" becomes "from"."""
    words = {"p999_s": "p99.9", "p9999_s": "p99.99", "in_sla": "in SLA"}
    return words.get(column, column.removesuffix("_s").replace("_", " "))


def format_value(column: str, value: Value) -> str:
    """Return a value as text, in the format that the name of its column implies."""
    if value is None or isinstance(value, str):
        return UNKNOWN if value is None else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and not column.endswith("_s"):
        return str(value) if column in IDENTIFIER_COLUMNS or column.endswith("_us") else count(value)
    lengths = duration if column.endswith("_s") else share if column.endswith(SHARE_SUFFIXES) else minutes
    to_text: Callable[[float], str] = (
        moment if column in TIME_COLUMNS else over if column == "over_packing" else lengths
    )
    return to_text(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def sheets(result: Result) -> list[Sheet]:
    """Return all tables, the most important first."""
    tail, by, moved = result.tail or _NONE, result.breakdowns, result.rebalances
    curve = zip(result.distribution.share, result.distribution.latency_s, strict=True)
    return [
        of_records("run", "The run", Result, [result]),
        _with_meaning(of_records("causes", "Why events were late", CauseOfLateness, tail.causes), MEANINGS),
        of_records("episodes", "Late-event episodes", LateEpisode, tail.episodes),
        of_records("cost", "Cost", of.Cost, [result.cost]),
        of_records("otherwise", "Other policies on the same events", of.OtherPolicy, result.other_policies or ()),
        _with_meaning(of_records("stages", "Latency by stage", of.Stage, result.stages), STAGES),
        of_records("partitions", "By partition", of.Breakdown, by.partitions),
        of_records("replicas", "By replica", of.Breakdown, by.replicas),
        of_records("epochs", "By plan", of.Breakdown, by.epochs),
        of_records("decisions", "Plans", of.PlanDecision, result.decisions),
        of_records("starts", "Start-up times of replicas", of.StartupTimes, [result.starts] if result.starts else ()),
        of_records("failures", "Replicas that failed", of.Failure, result.failures),
        of_records("rebalances", "Rebalances", of.RebalanceRecord, moved.records if moved else ()),
        of_records("effects", "Effects of orders", of.Effects, [result.effects]),
        of_records("integrity", "Integrity", of.Integrity, [result.integrity]),
        of_records("lateness", "Delay of the generator", of.Lateness, [result.lateness]),
        of_records("topics", "Topics", of.TopicRecords, result.topics),
        over_time(result),
        _columns("seconds", "By second", _by_second(result)),
        _columns("late-seconds", "Late events by second", tail.by_second),
        _sheet("distribution", "Distribution of latency", ("share", "latency_s"), curve),
        of_records("provenance", "Provenance", of.Provenance, [result.provenance]),
        _sheet("versions", "Versions", ("name", "version"), result.provenance.versions.items()),
    ]


def markdown_report(result: Result) -> str:
    """Return the report as one page of Markdown."""
    title = f"{result.scenario}, {result.policy}, seed {result.seed}"
    left_out = result.tail.episodes_left_out if result.tail else 0
    notes = [result.verdict, f"{left_out:,} smaller late-event episodes are not listed." if left_out else ""]
    filled = [sheet for sheet in sheets(result) if sheet.rows and sheet.name not in PER_SECOND]
    sections = [f"## {sheet.title}\n\n{markdown(sheet)}" for sheet in filled]
    return "\n".join([f"# {_escaped(title)}\n", *(f"{_escaped(text)}\n" for text in notes if text), *sections])


def _sheet(name: str, title: str, columns: tuple[str, ...], rows: Any) -> Sheet:
    return Sheet(name, title, columns, tuple(map(tuple, rows)))


def _with_meaning(named: Sheet, meanings: Mapping[str, str]) -> Sheet:
    rows = tuple((*row, meanings.get(str(row[0]), "")) for row in named.rows)
    return Sheet(named.name, named.title, (*named.columns, "meaning"), rows)


def _columns(name: str, title: str, series: Mapping[str, Sequence[Value]]) -> Sheet:
    seconds = range(max(map(len, series.values()), default=0))
    rows = ((at_s, *(values[at_s] if at_s < len(values) else 0 for values in series.values())) for at_s in seconds)
    return _sheet(name, title, ("at_s", *series), rows)


def over_time(result: Result, step_s: int = MINUTE_S) -> Sheet:
    """Return one row per `step_s` seconds. Events are summed, other figures are maxima; p50_s is left out."""
    series = _by_second(result)
    if result.tail and result.tail.by_second:
        series["late"] = [sum(causes) for causes in zip(*result.tail.by_second.values(), strict=True)]
    begins = range(0, len(result.series.arrivals), step_s)
    columns: dict[str, list[Value]] = {}
    for name, values in series.items():
        add = name in {"arrivals", "done", "late"}
        if name != "p50_s":
            columns[name if add else f"most_{name}"] = [
                sum(part) if add else max((value for value in part if value is not None), default=None)
                for part in (values[begin : begin + step_s] for begin in begins)
            ]
    return _sheet("minutes", "By minute", ("from_s", *columns), zip(begins, *columns.values(), strict=True))


def _by_second(result: Result) -> dict[str, Any]:
    series = msgspec.structs.asdict(result.series)
    return {name: values for name, values in series.items() if len(values) == len(result.series.arrivals)}
