"""The report as Markdown and as CSV says what result.json says."""

import csv
import io

import msgspec
from small_report import small_result

from report.page.sheets import ROWS_SHOWN, Sheet, csv_text, markdown, markdown_report, sheets


def test_the_page_of_markdown_has_what_is_known_as_a_reader_wants_it() -> None:
    page = markdown_report(small_result())
    assert page.startswith("# w1, tail-aware, seed 1\n\nPromise missed: 98 % of 100 events were done within 500 ms.\n")
    assert "| latency target | 500 ms |" in page, "a single row of many columns stands upright"
    assert "| burst | 2 | 100 % | 620 ms | More arrived at once than its replica serves" in page
    assert "40 events/s \\| more than 1 serves" in page, "a text stays in its cell"
    titles = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    hidden = {"seconds", "late-seconds", "distribution"}
    assert titles == [one.title for one in sheets(small_result()) if one.rows and one.name not in hidden]


def test_of_a_long_table_the_rest_is_named() -> None:
    long = Sheet("episodes", "Episodes", ("at_s",), tuple((float(k),) for k in range(ROWS_SHOWN + 7)))
    assert markdown(long).endswith("7 more rows: `--format csv --table episodes`\n")


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
    told = [str(one["max_s"]) for one in plain["breakdowns"]["partitions"]]
    assert [row["max_s"] for row in by_name["partitions"]] == told
