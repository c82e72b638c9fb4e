"""Reads columns of a CSV or Parquet file of any length in parts. Errors name the file and the first wrong row."""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import numpy.typing as npt

from contracts.validation import InvalidSettingsError

BLOCK_BYTES: Final = 1 << 22
BATCH_ROWS: Final = 1 << 18
HEADER_BYTES: Final = 1 << 17
PACKED: Final = {
    b"\x1f\x8b": "gzip",
    b"PK\x03\x04": "zip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
"""First bytes of a compressed file → its format."""
Part = tuple[int, dict[str, Any]]
"""Number of the first row, and the columns (Arrow arrays) by lower-case name."""
Check = tuple[str, npt.NDArray[np.float64], npt.NDArray[np.bool_], str]
"""Column, its values, mask of wrong values, reason."""


@dataclass(frozen=True, slots=True)
class TraceFile:
    """A trace file. Each pass over its parts opens it again."""

    path: Path
    parquet: bool
    names: tuple[str, ...]
    """Column names in order, lower case."""
    metadata: dict[bytes, bytes]
    """Metadata of a Parquet file; empty for CSV."""

    @classmethod
    def open(cls, path: Path) -> "TraceFile":
        """Read the column names. Raises InvalidSettingsError for a file that is neither CSV nor Parquet."""
        try:
            with path.open("rb") as file:
                begin = file.readline(HEADER_BYTES)
            if begin.startswith(b"PAR1"):
                schema = _parquet(path).schema_arrow
                return cls(path, True, tuple(name.lower() for name in schema.names), schema.metadata or {})
            if packer := next((name for start, name in PACKED.items() if begin.startswith(start)), None):
                raise InvalidSettingsError([f"{path}: is compressed with {packer}; unpack it"])
            header = begin.decode("utf-8-sig")  # files of spreadsheets begin with a byte order mark
        except OSError as error:
            raise InvalidSettingsError([f"{path}: cannot be read ({error.strerror})"]) from error
        except UnicodeDecodeError as error:
            kind = "UTF-16" if begin[:2] in (b"\xff\xfe", b"\xfe\xff") else "not UTF-8"
            raise InvalidSettingsError([f"{path}: is {kind} text; save it as UTF-8, or as Parquet"]) from error
        return cls(path, False, tuple(name.strip(' "\r\n').lower() for name in header.split(",")), {})

    def parts(self, column_names: Sequence[str]) -> Iterator[Part]:
        """Yield the wanted columns in parts that are not empty. Raises InvalidSettingsError."""
        from pyarrow import ArrowException  # noqa: PLC0415  a tenth of a second

        try:
            yield from (self._parquet_parts if self.parquet else self._csv_parts)(column_names)
        except InvalidSettingsError:
            raise
        except (ArrowException, OSError, ValueError) as error:
            message = re.sub(
                r".*?Row #(\d+): ", lambda row: f"line {self._line(int(row[1]))}: ", str(error).splitlines()[0]
            )
            self._fail(message.replace("CSV conversion error to string: ", ""))

    def _parquet_parts(self, column_names: Sequence[str]) -> Iterator[Part]:
        file = _parquet(self.path)
        columns = [file.schema_arrow.names[self.names.index(name)] for name in column_names]
        first = 1
        for group in range(file.num_row_groups):  # one iter_batches for all groups would keep earlier ones in memory
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group], columns=columns, use_threads=False):
                if batch.num_rows:
                    found = zip(column_names, columns, strict=True)
                    yield first, {name: _plain(batch.column(own)) for name, own in found}
                first += batch.num_rows

    def _csv_parts(self, column_names: Sequence[str]) -> Iterator[Part]:
        import pyarrow  # noqa: PLC0415
        from pyarrow import csv  # noqa: PLC0415

        parts = csv.open_csv(
            self.path,
            csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False, column_names=self.names, skip_rows=1),
            csv.ParseOptions(ignore_empty_lines=False, newlines_in_values=True),
            csv.ConvertOptions(
                column_types=dict.fromkeys(self.names, pyarrow.string()),
                strings_can_be_null=False,
                include_columns=list(column_names),
            ),
        )
        row, blank = 2, 0
        for part in parts:
            filled = len(part)  # empty lines are allowed at the end of a file
            while filled and not any(part.column(name)[filled - 1].as_py() for name in column_names):
                filled -= 1
            if blank and filled:
                self.refuse(blank, "is empty")
            if filled:
                yield row, {name: part.column(name)[:filled] for name in column_names}
            blank = blank or (row + filled if filled < len(part) else 0)
            row += len(part)

    def numbers(self, first: int, name: str, column: Any) -> npt.NDArray[np.float64]:
        """Return a column as finite numbers. first: number of its first row. Raises InvalidSettingsError."""
        from pyarrow import ArrowException, compute, float64, types  # noqa: PLC0415

        try:
            floats = (compute.utf8_trim_whitespace(column) if types.is_string(column.type) else column).cast(float64())
            values = np.asarray(floats.to_numpy(zero_copy_only=False))  # missing values become NaN
        except ArrowException:
            values = np.array([_number(cell) for cell in column.to_pylist()])
        is_wrong = ~np.isfinite(values)
        if is_wrong.any():
            at = int(is_wrong.argmax())
            cell = column[at].as_py()
            is_empty = cell is None or not str(cell).strip()
            self.refuse(first + at, f"{name} is empty" if is_empty else f"{name} = {cell!r}: is not a number")
        return values

    def check(self, first: int, checks: Sequence[Check]) -> None:
        """Raise InvalidSettingsError for the first check that fails. first: number of the first row."""
        for name, values, is_wrong, why in checks:
            if is_wrong.any():
                at = int(is_wrong.argmax())
                self.refuse(first + at, f"{name} = {values[at]:.12g}: {why}")

    def refuse(self, row: int, why: str) -> NoReturn:
        """Raise InvalidSettingsError. row: number of the wrong row. In CSV the header is row 1."""
        self._fail(f"row {row}: {why}" if self.parquet else f"line {self._line(row)}: {why}")

    def _line(self, row: int) -> int:
        """Return the line at which a row of a CSV file begins: quoted keys may have line breaks."""
        line = quotes = 0
        with self.path.open("rb") as file:
            for text in file:
                line, row = line + 1, row - (quotes % 2 == 0)
                if not row:
                    break
                quotes += text.count(b'"')
        return line

    def refuse_header(self, why: str) -> NoReturn:
        """Raise InvalidSettingsError about the column names."""
        self._fail(why if self.parquet else f"line 1: {why}")

    def _fail(self, why: str) -> NoReturn:
        raise InvalidSettingsError([f"{self.path.name}: {why}"])


def _parquet(path: Path) -> Any:
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415
    except ImportError as error:
        raise InvalidSettingsError([f"reading {path.name} requires pyarrow: pip install '.[load]'"]) from error
    try:
        return parquet.ParquetFile(path, buffer_size=BLOCK_BYTES, pre_buffer=False)
    except (OSError, ArrowException) as error:
        why = f"cannot be read as Parquet ({str(error).splitlines()[0]})"
        raise InvalidSettingsError([f"{path.name}: {why}"]) from error


def _plain(column: Any) -> Any:
    """Return times, structs and lists as text: Python has no nanoseconds. Raises for text that is not UTF-8."""
    from pyarrow import array, string, types  # noqa: PLC0415

    column.validate(full=True)
    column = column.dictionary_decode() if types.is_dictionary(column.type) else column
    if types.is_nested(column.type):  # Arrow cannot encode them
        return array([None if key is None else repr(key) for key in column.to_pylist()], string())
    return column.cast(string()) if types.is_temporal(column.type) else column


def _number(cell: Any) -> float:
    try:
        return float(cell)
    except (TypeError, ValueError):
        return math.nan
