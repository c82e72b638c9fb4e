"""Write each lesson with its outputs: `lesson_NN.ipynb` for hubs, and `lesson_NN.md` with pictures for the site.

`make docs` runs it. The files are not committed. Sliders stand at their defaults there.
"""

import base64
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BUTTON = "To begin, run all cells: press ▷ at the bottom right."
MENU = """To try it, use `tailpack lesson open {}` in a clone, or run this notebook (*Run*, then *Run All Cells*). No
slider moves there: to change a value, write a number in the place of `NAME.value`, and run the cells below it again."""
LABEL = re.compile(r'\blabel="([^"]*)"')
TEXT_KINDS = ("text/markdown", "text/html", "text/plain")
MOST_AT_ONCE = 2


def export(lesson: Path, outputs: str = "--include-outputs") -> None:
    """Execute a lesson, and write its notebook and its page beside it. Raises RuntimeError if a cell fails.

    outputs: with "--no-include-outputs" nothing is executed.
    """
    target = lesson.with_suffix(".ipynb")
    command = [sys.executable, "-m", "marimo", "-q", "export", "ipynb", outputs, "-f", lesson.name]
    ended = subprocess.run(
        [*command, "-o", target.name], cwd=lesson.parent, capture_output=True, text=True, check=False
    )
    notebook = json.loads(target.read_text("utf-8")) if target.exists() else {"cells": []}
    failed = [one for cell in notebook["cells"] for one in cell.get("outputs", ()) if one["output_type"] == "error"]
    if ended.returncode or failed or not notebook["cells"]:
        raise RuntimeError(f"{lesson.name}: {failed or ended.stderr}")
    parts = []
    for cell in notebook["cells"]:
        source = cell["source"] = "".join(cell["source"]).replace(BUTTON, MENU.format(int(lesson.stem[-2:])))
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            parts.append(_shown(output, source, lesson.with_name(f"{lesson.stem}_{len(parts)}.png")))
    parts.insert(0, parts.pop(next(at for at, part in enumerate(parts) if part.startswith("# "))))  # imports follow it
    target.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    page = re.sub(r"\((lesson_\d+)\.py\)", r"(\1.md)", "\n\n".join(filter(None, parts)))
    lesson.with_suffix(".md").write_text(page + "\n", "utf-8")


def _shown(output: dict[str, Any], source: str, picture: Path) -> str:
    """Return an output as Markdown. Sliders and buttons become their labels, here and in the notebook."""
    data = output.get("data", {})
    if png := data.get("image/png"):
        picture.write_bytes(base64.b64decode(png))
        return f"![picture of this cell]({picture.name})"
    text = next(("".join(data[kind]) for kind in TEXT_KINDS if kind in data), "")
    if labels := " · ".join(LABEL.findall(source)):
        output["data"] = {"text/markdown": f"*At their defaults here:* {labels}"}
        return f"*At their defaults here:* {labels}"
    return re.sub(r"<span[^>]*>|</span>", "", text)


if __name__ == "__main__":
    with ThreadPoolExecutor(MOST_AT_ONCE) as pool:
        list(pool.map(export, sorted(HERE.glob("lesson_*.py"))))
