"""`make pictures`: the live view and report page of the first run, from a run of the demo; and moves.svg, simulated."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from moves import draw
from rich.console import Console

from bench.scenario import load_scenario
from tailpack.errors import TailpackError
from tailpack.live_view import RunStatus, render
from tailpack.run import Run
from tailpack.watch import RunState

AT_S: Final = 92.0
"""In the second surge of the demo: a plan has just moved partitions, and the curves are a minute long."""
COLUMNS: Final = 120
FONTS: Final = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
"""rich's picture asks a server for its font; any monospaced one will do."""
SIZE: Final = "1280,1500"
BROWSERS: Final = ("chromium", "chromium-browser", "google-chrome")


def take(folder: Path) -> None:
    """Run the demo and write live-view.svg and report.png. Raises TailpackError without Chromium."""
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise TailpackError("Chromium is needed, and was not found; install it: sudo apt-get install chromium")
    taken: list[str] = []

    def watch(state: RunState, status: RunStatus) -> None:
        if status.elapsed_s >= AT_S and not taken:
            with open(os.devnull, "w", encoding="utf-8") as nowhere:
                console = Console(record=True, width=COLUMNS, file=nowhere, force_terminal=True)
                console.print(render(state, status))
            taken.append(FONTS.sub("", console.export_svg(title="tailpack demo")))

    run = Run(load_scenario("demo"), Console(), Path("out"), watch=watch).execute()
    (folder / "live-view.svg").write_text("".join(taken), encoding="utf-8")
    screenshot = ["--headless", "--no-sandbox", "--hide-scrollbars", f"--window-size={SIZE}"]
    page, picture = (run / "report.html").resolve().as_uri(), (folder / "report.png").resolve()
    subprocess.run([browser, *screenshot, f"--screenshot={picture}", page], check=True, capture_output=True)


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
    take(Path(sys.argv[1]))
