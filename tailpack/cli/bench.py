"""`tailpack dev bench`: every benchmark is a command. The fields of its dataclass are the options."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, fields
from pathlib import Path
from typing import Annotated, Any, Final, get_type_hints

import typer
from rich.console import Console
from rich.table import Table

from bench.benchmark import Benchmark, Outcome, Row, Tools, run
from tailpack.cli.options import AsJson, Into, print_json
from tailpack.cli.progress import progress
from tailpack.errors import INTERRUPTED, TailpackError

Repeat = Annotated[int, typer.Option(min=1, help="How often each case is measured.")]
COMMON: Final = {"repeat": (Repeat, 1), "into": (Into, None), "as_json": (AsJson, False)}


def command(kind: type[Benchmark]) -> Callable[..., None]:
    """Return a function from which typer makes the command of a benchmark."""

    def measure(**options: Any) -> None:
        common = {name: options.pop(name) for name in COMMON}
        try:
            benchmark = kind(**options)
            benchmark.cases()  # also raises ValueError for invalid options
        except ValueError as error:
            raise TailpackError(str(error)) from error
        _measure(benchmark, **common)

    measure.__doc__ = kind.__doc__
    measure.__signature__ = inspect.Signature(list(_parameters(kind)))  # type: ignore[attr-defined]
    return measure


def _parameters(kind: type[Benchmark]) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(kind, include_extras=True)
    options = {field.name: (hints[field.name], _default(field)) for field in fields(kind)}
    for name, (hint, default) in (options | COMMON).items():
        yield inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=hint, default=default)


def _default(option: Field[Any]) -> Any:
    default = option.default if option.default_factory is MISSING else option.default_factory()
    return inspect.Parameter.empty if default is MISSING else default


def _measure(benchmark: Benchmark, *, repeat: int, into: Path | None, as_json: bool) -> None:
    from tailpack.local.topics import temporary_kafka  # noqa: PLC0415  librdkafka only where something is measured
    from tailpack.provenance import origin  # noqa: PLC0415

    measured_at = origin()
    with progress(type(benchmark).__name__.lower()) as update:
        outcome = run(benchmark, Tools(temporary_kafka, update), repeat=repeat, into=into, origin=measured_at)
    if as_json:
        print_json(outcome.figures | {"rows": outcome.rows, "origin": measured_at})
    else:
        show(outcome, Console(), benchmark.COLUMNS)
    for problem in filter(None, (row.get("problem") for row in outcome.rows)):
        Console(stderr=True).print(f"tailpack: {problem}", highlight=False, soft_wrap=True, markup=False)
    raise typer.Exit(INTERRUPTED if outcome.interrupted else 0 if outcome.valid else 1)


def show(outcome: Outcome, console: Console, columns: Sequence[str] = ()) -> None:
    """Print one or two rows as columns, or several rows as a table. A list of rows within a row is a table, too."""
    if 1 <= len(outcome.rows) <= 2:
        lines = Table(box=None, show_header=False)
        for name, value in outcome.figures.items():
            if _plain(value):
                lines.add_row(name, *(_cell(row.get(name)) for row in outcome.rows))
        console.print(lines)
        for value in outcome.figures.values():
            if isinstance(value, list) and value and isinstance(value[0], dict):
                console.print(_table(value))
    elif outcome.rows:
        console.print(_table(outcome.rows, columns))


def _table(rows: Sequence[Row], columns: Sequence[str] = ()) -> Table:
    names = columns or [name for name, value in rows[0].items() if _plain(value)]
    table = Table(*names, box=None)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in names))
    return table


def _plain(value: Any) -> bool:
    return not isinstance(value, dict | list) or (_numbers(value) and len(value) > 0)


def _numbers(value: Iterable[Any]) -> bool:
    return isinstance(value, list) and all(isinstance(number, int | float) for number in value)


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(_cell, value))
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    return (
        "–" if value is None else f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
    )
