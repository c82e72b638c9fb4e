"""result.json is written atomically and read as it was saved; the terminal shows the same figures."""

from pathlib import Path

from example_report import example
from rich.console import Console

from report.page.answers import show
from report.result import RESULT_FILE, Result


def test_a_result_is_read_as_it_was_saved(tmp_path: Path) -> None:
    example().save(tmp_path)
    assert Result.load(tmp_path) == example()
    assert [place.name for place in tmp_path.iterdir()] == [RESULT_FILE]


def test_the_terminal_shows_verdict_figures_and_stages() -> None:
    console = Console(width=110, record=True, file=None, force_terminal=False, quiet=False)
    with console.capture() as captured:
        show(example(), console)
    text = captured.get()
    assert "SLO met" in text
    assert "causes of late events  5 replica dead, 2 overloaded, 1 handover (of 8 late events)" in text
    assert "accepted → received by Payment" in text
    assert all(len(line) <= 110 for line in text.splitlines())
