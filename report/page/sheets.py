"""The tables of a run, and any table as CSV (values as they are) or Markdown (as a reader wants them)."""

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

ROWS_SHOWN: Final = 100
"""Rows of a table in Markdown; CSV has them all."""
WIDEST_ROW: Final = 6
"""Columns of a single row that lies; wider ones stand."""
MOMENTS: Final = frozenset({"at_s", "from_s", "until_s"})
"""Times since the start of the run; other columns that end in _s are lengths."""
SHARES: Final = ("share", "in_sla", "percentile")
"""Ends of the names of columns that are shown as per cent."""
NUMBERED: Final = frozenset({"seed", "epoch", "v"})
"""Integers that count nothing."""
PLAIN: Final = (str, int, float, bool, int | None, float | None, str | None, tuple[str, ...])
"""Types of fields that are a value, or texts that can be joined to one."""
Value = str | int | float | bool | None
MINUTE_S: Final = 60
PER_SECOND: Final = ("seconds", "late-seconds", "distribution")
"""Tables that are data for a plot: a page of Markdown has the minutes instead."""
_NONE: Final = Tail(late=0, causes=(), episodes=())


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. Names of columns are those of the JSON record, with the unit at their end."""

    name: str
    """As `--table` takes it, and a file is named."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


def of_records(name: str, title: str, kind: type[msgspec.Struct], records: Iterable[msgspec.Struct | None]) -> Sheet:
    """Return a row for each record that is there, of its plain fields; other fields are left out.

    Texts of a list are joined.
    """
    columns = tuple(one.name for one in msgspec.structs.fields(kind) if one.type in PLAIN)
    rows = ([getattr(one, column) for column in columns] for one in records if one is not None)
    plain = (["; ".join(each) if isinstance(each, tuple) else each for each in row] for row in rows)
    return _sheet(name, title, columns, plain)


def csv_text(sheet: Sheet) -> str:
    """Return the table as CSV: header, LF, empty where nothing is known, as many digits as a number has."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(sheet.columns)
    writer.writerows(sheet.rows)
    return text.getvalue()


def write_csv(sheets: Iterable[Sheet], folder: Path) -> list[Path]:
    """Write NAME.csv for each table into `folder`; return the files."""
    folder.mkdir(parents=True, exist_ok=True)
    written = {folder / f"{sheet.name}.csv": sheet for sheet in sheets}
    for path, sheet in written.items():
        replace_file(path, csv_text(sheet))
    return list(written)


def markdown(sheet: Sheet) -> str:
    """Return the table as Markdown. A single row of many columns stands upright; of many rows the first are shown."""
    header, texts = laid_out(sheet)
    lines = [header, ["---"] * len(header), *texts[:ROWS_SHOWN]]
    more = len(texts) - ROWS_SHOWN
    rest = [f"\n{more:,} more rows: `--format csv --table {sheet.name}`"] if more > 0 else []
    return "\n".join(["| " + " | ".join(map(_escaped, line)) + " |" for line in lines] + rest) + "\n"


def laid_out(sheet: Sheet) -> tuple[list[str], list[tuple[str, ...]]]:
    """Return header and rows as texts; a single row of many columns stands upright."""
    header = [heading(column) for column in sheet.columns]
    texts = [tuple(map(shown, sheet.columns, row)) for row in sheet.rows]
    if len(texts) == 1 and len(header) > WIDEST_ROW:
        return ["", ""], list(zip(header, texts[0], strict=True))
    return header, texts


def heading(column: str) -> str:
    """Return "p999_s" as "p99.9", "from_s" as "from"."""
    words = {"p999_s": "p99.9", "p9999_s": "p99.99", "in_sla": "in SLA"}
    return words.get(column, column.removesuffix("_s").replace("_", " "))


def shown(column: str, value: Value) -> str:
    """Return a value as a reader wants it: the name of its column tells what it is."""
    if value is None or isinstance(value, str):
        return UNKNOWN if value is None else value
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int) and not column.endswith("_s"):
        return str(value) if column in NUMBERED or column.endswith("_us") else count(value)
    lengths = duration if column.endswith("_s") else share if column.endswith(SHARES) else minutes
    say: Callable[[float], str] = moment if column in MOMENTS else over if column == "over_packing" else lengths
    return say(value)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("|", "\\|").replace("\n", " ")


def sheets(result: Result) -> list[Sheet]:
    """Return every table, most wanted first."""
    tail, by, moved, starts = result.tail or _NONE, result.breakdowns, result.rebalances, result.starts
    curve = zip(result.distribution.share, result.distribution.latency_s, strict=True)
    return [
        of_records("run", "The run", Result, [result]),
        _with_meaning(of_records("causes", "Why events were late", CauseOfLateness, tail.causes), MEANINGS),
        of_records("episodes", "Late events, episode by episode", LateEpisode, tail.episodes),
        of_records("cost", "Cost", of.Cost, [result.cost]),
        of_records("otherwise", "What other policies would have come to", of.OtherPolicy, result.otherwise or ()),
        _with_meaning(of_records("stages", "Latency by stage", of.Stage, result.stages), STAGES),
        of_records("partitions", "By partition", of.Breakdown, by.partitions),
        of_records("replicas", "By replica", of.Breakdown, by.replicas),
        of_records("epochs", "By plan", of.Breakdown, by.epochs),
        of_records("decisions", "Plans that were written", of.PlanDecision, result.decisions),
        of_records("starts", "How long replicas took to start", of.StartupTimes, [starts] if starts else ()),
        of_records("failures", "Replicas that failed", of.Failure, result.failures),
        of_records("rebalances", "Rebalances", of.RebalanceRecord, moved.rounds if moved else ()),
        of_records("effects", "Effects of orders", of.Effects, [result.effects]),
        of_records("integrity", "What must not be", of.Integrity, [result.integrity]),
        of_records("lateness", "How late the generator was", of.Lateness, [result.lateness]),
        of_records("topics", "Topics", of.TopicRecords, result.topics),
        over_time(result),
        _columns("seconds", "Second by second", _by_second(result)),
        _columns("late-seconds", "Late events, second by second", tail.by_second),
        _sheet("distribution", "Distribution of latency", ("share", "latency_s"), curve),
        of_records("provenance", "How it was made", of.Provenance, [result.provenance]),
        _sheet("versions", "Versions", ("name", "version"), result.provenance.versions.items()),
    ]


def markdown_report(result: Result) -> str:
    """Return the whole report as one page of Markdown."""
    title = f"{result.scenario}, {result.policy}, seed {result.seed}"
    left_out = result.tail.episodes_left_out if result.tail else 0
    told = [result.verdict, f"{left_out:,} smaller episodes of late events are not listed." if left_out else ""]
    shown = [one for one in sheets(result) if one.rows and one.name not in PER_SECOND]
    sections = [f"## {one.title}\n\n{markdown(one)}" for one in shown]
    return "\n".join([f"# {_escaped(title)}\n", *(f"{_escaped(text)}\n" for text in told if text), *sections])


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
    """Return a row for every `step_s` seconds: sums of events, the most of everything else."""
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
    return _sheet("minutes", "Minute by minute", ("from_s", *columns), zip(begins, *columns.values(), strict=True))


def _by_second(result: Result) -> dict[str, Any]:
    series = msgspec.structs.asdict(result.series)
    return {name: values for name, values in series.items() if len(values) == len(result.series.arrivals)}
