"""Which files are meant, in what form they are, and which month each of them holds."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from bench.taxi.months import Month, month_in
from report.spark import ReportError

Form = Literal["csv", "parquet"]
FORMS: Final[dict[str, Form]] = {
    ".parquet": "parquet",
    ".csv": "csv",
    ".csv.gz": "csv",
    ".csv.bz2": "csv",
}
SMALL_BYTES: Final = 64 * 2**20
"""Up to here the input is a short job for Spark."""


@dataclass(frozen=True, slots=True)
class Source:
    """One file of trip records, by its path or any address that Hadoop's file systems know."""

    path: str
    form: Form
    month: Month
    size: int | None
    """Bytes; None where it is not on this machine."""


def sources_of(paths: Sequence[str], month: Month | None) -> list[Source]:
    """Return the files behind `paths`, in their order; a folder stands for the files of known form in it.

    month: of all of them, instead of what their names say. Raises ReportError.
    """
    found: list[Source] = []
    for path in paths:
        found += [_source(one, month) for one in _files(path)]
    if not found:
        raise ReportError("name at least one file of trip records, as yellow_tripdata_2013-01.parquet")
    names = [source.path for source in found]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ReportError(f"{twice}: is named twice")
    return found


def small(sources: Sequence[Source]) -> bool:
    """Tell whether reading them is a short job."""
    return all(source.size is not None for source in sources) and (
        sum(source.size or 0 for source in sources) <= SMALL_BYTES
    )


def _files(path: str) -> list[str]:
    if _remote(path):
        return [path]
    place = Path(path)
    if not place.exists():
        raise ReportError(f"{path}: is not there")
    if not place.is_dir():
        return [str(place.resolve())]
    inside = sorted(str(one.resolve()) for one in place.iterdir() if one.is_file() and _form(one.name))
    if not inside:
        raise ReportError(f"{path}: holds no file that ends in {', '.join(FORMS)}")
    return inside


def _source(path: str, month: Month | None) -> Source:
    form = _form(path)
    if form is None:
        raise ReportError(f"{path}: ends in none of {', '.join(FORMS)}, so its form is not known")
    of_file = month or month_in(path)
    if of_file is None:
        raise ReportError(f"{path}: its name says no month; name it with --month YYYY-MM")
    return Source(path, form, of_file, None if _remote(path) else Path(path).stat().st_size)


def _form(name: str) -> Form | None:
    return next((form for end, form in FORMS.items() if name.lower().endswith(end)), None)


def _remote(path: str) -> bool:
    return "://" in path
