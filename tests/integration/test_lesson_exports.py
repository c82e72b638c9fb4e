"""The notebooks of the lessons run on a hub, where no browser moves a slider. `make docs` writes them with outputs."""

import shutil
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

from tailpack.lab.course import LESSONS, load

export = load(LESSONS / "export.py").export
NAMES = sorted(path.stem for path in LESSONS.glob("lesson_*.py"))
LONG = [pytest.mark.long, pytest.mark.timeout(400)]


@pytest.mark.parametrize("name", [pytest.param(name, marks=LONG if name > "lesson_01" else []) for name in NAMES])
def test_an_exported_lesson_runs_and_its_exercise_is_open(name: str, tmp_path: Path) -> None:
    export(Path(shutil.copy(LESSONS / f"{name}.py", tmp_path)), "--no-include-outputs")
    notebook = nbformat.read(tmp_path / f"{name}.ipynb", as_version=4)
    resources = {"metadata": {"path": str(tmp_path)}}
    NotebookClient(notebook, timeout=200, resources=resources).execute()  # raises if a cell does
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", ()) if "data" in one]
    assert any("image/png" in one["data"] for one in outputs)
    shown = [one["data"].get("text/markdown", "") for one in outputs]
    assert any(text.startswith(f"✗ lesson {name[-2:]}:") for text in shown)
    assert (tmp_path / f"{name}.md").read_text("utf-8").startswith("# ")
