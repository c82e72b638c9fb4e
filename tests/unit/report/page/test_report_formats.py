"""The report as Markdown and as CSV: byte by byte what stands in tests/golden.

To accept a change: `RENEW_GOLDEN=1 python -m pytest tests/unit/report/page/test_report_formats.py`; read the diff.
"""

import csv
import io
import os
from pathlib import Path

import msgspec
import pytest
from small_report import small_result

from report.page.sheets import Sheet, csv_text, markdown_report, sheets

GOLDEN = Path(__file__).parents[3] / "golden" / "report"


def check(name: str, text: str) -> None:
    if os.environ.get("RENEW_GOLDEN"):
        GOLDEN.mkdir(parents=True, exist_ok=True)
        (GOLDEN / name).write_text(text, encoding="utf-8")
    assert text == (GOLDEN / name).read_text(encoding="utf-8")


def test_the_page_of_markdown() -> None:
    check("report.md", markdown_report(small_result()))


@pytest.mark.parametrize("sheet", sheets(small_result()), ids=lambda sheet: sheet.name)
def test_each_table_as_csv(sheet: Sheet) -> None:
    check(f"{sheet.name}.csv", csv_text(sheet))


def test_csv_says_what_json_says() -> None:
    result = small_result()
    plain = msgspec.to_builtins(result)
    by_name = {sheet.name: list(csv.DictReader(io.StringIO(csv_text(sheet)))) for sheet in sheets(result)}

    (run,) = by_name["run"]
    assert {name: float(run[name]) for name in ("in_sla", "p999_s", "replica_minutes")} == {
        name: plain[name] for name in ("in_sla", "p999_s", "replica_minutes")
    }
    assert [row["reason"] for row in by_name["decisions"]] == [one["reason"] for one in plain["decisions"]]
    assert [row["lag"] for row in by_name["seconds"]] == ["0", "", "4", "0"], "unknown is empty, never 0"
    assert sum(int(row["burst"]) for row in by_name["late-seconds"]) == plain["tail"]["late"]
