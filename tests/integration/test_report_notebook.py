"""docs/report.ipynb answers its five questions when it is executed in an empty folder."""

import re
from pathlib import Path
from typing import Any, Final

import nbformat
import pytest
from nbclient import NotebookClient

from report.result import Result

NOTEBOOK: Final = Path(__file__).parents[2] / "docs" / "report.ipynb"
CELL_DEADLINE_S: Final = 300

pytestmark = [pytest.mark.spark, pytest.mark.long, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def written() -> Any:
    return nbformat.read(NOTEBOOK, as_version=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("notebook")


@pytest.fixture(scope="module")
def executed(written: Any, folder: Path) -> Any:
    resources = {"metadata": {"path": str(folder)}}
    return NotebookClient(written.copy(), timeout=CELL_DEADLINE_S, resources=resources).execute()


def answers(notebook: Any, question: str) -> str:
    """Return all text that the cells under a heading printed."""
    texts, under = [], False
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            under = cell.source.startswith("##") and question in cell.source.splitlines()[0]
        elif under:
            texts += [output.get("text") or output.data.get("text/markdown", "") for output in cell.outputs]
    return "\n".join(texts)


def drawings(notebook: Any) -> int:
    return sum(
        "image/png" in output.get("data", {})
        for cell in notebook.cells
        if cell.cell_type == "code"
        for output in cell.outputs
    )


def test_the_committed_notebook_has_its_outputs(written: Any) -> None:
    code = [cell for cell in written.cells if cell.cell_type == "code"]
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1)), "run from first to last"
    assert any(output.get("data", {}).get("image/png") for cell in code for output in cell.outputs)
    assert not re.search(r"/(home|root|tmp|work|Users)/", NOTEBOOK.read_text(encoding="utf-8"))


def test_five_questions_are_answered(executed: Any, folder: Path) -> None:
    result = Result.load(folder / "out" / "notebook" / "algorithm-2")
    assert result.tail is not None
    first = answers(executed, "1. Was the SLO met")
    assert result.verdict in first
    assert all(f"| {each.cause} | {each.events:,} |" in answers(executed, "2. Why") for each in result.tail.causes)
    assert "| over packing |" in answers(executed, "3. What did it cost")
    assert re.search(r"partition \d had most late events", answers(executed, "4. Which partition"))
    last = answers(executed, "5. What would another policy")
    assert "algorithm-2" in last
    counts = re.search(r"([\d,]+) of ([\d,]+) events are late under both, ([\d,]+) only under algorithm-2", last)
    assert counts is not None
    both, events, only_here = (int(each.replace(",", "")) for each in counts.groups())
    assert events == result.events
    assert both + only_here == sum(cause.events for cause in result.tail.causes)
    assert drawings(executed) == 4
