"""result.json is whole or not there, and reads back as what was written."""

from pathlib import Path

from example_report import example
from rich.console import Console

from report.page.terminal import show
from report.result import RESULT_FILE, Result
from report.wording import duration, moment, share


def test_what_is_saved_is_what_is_read(tmp_path: Path) -> None:
    example().save(tmp_path)
    assert Result.load(tmp_path) == example()
    assert [place.name for place in tmp_path.iterdir()] == [RESULT_FILE]


def test_the_terminal_shows_verdict_figures_and_stages() -> None:
    console = Console(width=110, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as captured:
        show(example(), console)
    text = captured.get()
    assert "Promise kept" in text
    assert "99.921 %" in text
    assert "why late  5 replica dead, 2 overloaded, 1 handover (of 8 late events)" in text
    assert "accepted → received by Payment" in text
    assert all(len(line) <= 110 for line in text.splitlines())


def test_a_share_is_cut_so_that_all_means_all() -> None:
    assert share(1.0) == "100 %"
    assert share(0.9999999) == "99.999 %"
    assert share(0.999) == "99.9 %"
    assert share(0.0) == "0 %"


def test_lengths_of_time_read_well() -> None:
    assert [duration(value) for value in (None, 0.00421, 0.5, 1.25, 73.21)] == [
        "–",
        "4.21 ms",
        "500 ms",
        "1.25 s",
        "73.2 s",
    ]
    assert [moment(value) for value in (-2.0, 12.14, 125.1)] == ["−2.0 s", "12.1 s", "2:05.1"]


def test_a_moment_just_before_the_start_is_the_start() -> None:
    assert [moment(value) for value in (-0.04, 0.0, -65.5)] == ["0.0 s", "0.0 s", "−1:05.5"]
