"""The report as Markdown and as CSV has the figures of result.json."""

import csv
import io

import msgspec
from small_report import small_result

from report.page.sheets import MAX_MARKDOWN_ROWS, Sheet, csv_text, markdown, markdown_report, sheets


def test_the_markdown_report_has_each_filled_table_with_formatted_values() -> None:
    page = markdown_report(small_result())
    assert page.startswith("# w1, tail-aware, seed 1\n\nSLO not met: 98 % of 100 events were done within 500 ms.\n")
    assert "| latency target | 500 ms |" in page, "a wide single row is transposed"
    assert "| burst | 2 | 100 % | 620 ms | More events arrived at once" in page
    assert "40 events/s \\| more than 1 serves" in page, "a text stays in its cell"
    titles = [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")]
    hidden = {"seconds", "late-seconds", "distribution"}
    assert titles == [sheet.title for sheet in sheets(small_result()) if sheet.rows and sheet.name not in hidden]


def test_a_long_table_is_cut_and_names_the_command_for_all_rows() -> None:
    long = Sheet("episodes", "Episodes", ("at_s",), tuple((float(k),) for k in range(MAX_MARKDOWN_ROWS + 7)))
    assert markdown(long).endswith("7 more rows: `--format csv --table episodes`\n")


def test_csv_has_the_values_of_json() -> None:
    result = small_result()
    plain = msgspec.to_builtins(result)
    by_name = {sheet.name: list(csv.DictReader(io.StringIO(csv_text(sheet)))) for sheet in sheets(result)}

    (run,) = by_name["run"]
    assert {name: float(run[name]) for name in ("in_sla", "p999_s", "replica_minutes")} == {
        name: plain[name] for name in ("in_sla", "p999_s", "replica_minutes")
    }
    assert [row["reason"] for row in by_name["decisions"]] == [plan["reason"] for plan in plain["decisions"]]
    assert [row["lag"] for row in by_name["seconds"]] == ["0", "", "4", "0"], "unknown is empty, never 0"
    assert sum(int(row["burst"]) for row in by_name["late-seconds"]) == plain["tail"]["late"]
    worst = [str(row["max_s"]) for row in plain["breakdowns"]["partitions"]]
    assert [row["max_s"] for row in by_name["partitions"]] == worst
