"""The live view on a terminal that can be redrawn; a line now and then on one that cannot."""

import time
from collections.abc import Callable
from typing import Final

from rich.console import Console
from rich.live import Live

from tailpack.view import Moment, line, render
from tailpack.watch import Watcher

LINE_EVERY_S: Final = 5.0


class Screen:
    """The live view: redrawn on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, watcher: Watcher, moment: Callable[[str], Moment]) -> None:
        self.watcher = watcher
        self.phase = "starting"
        self._moment = moment
        self._console = console
        self._line_at = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> "Screen":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def update(self) -> None:
        """Take in what arrived within a quarter of a second and draw."""
        state = self.watcher.poll(0.25)
        moment = self._moment(self.phase)
        if self._live:
            self._live.update(render(state, moment), refresh=True)
        elif time.monotonic() >= self._line_at + LINE_EVERY_S:
            self._line_at = time.monotonic()
            self._console.print(line(state, moment.elapsed_s) + f"  {self.phase}", highlight=False, soft_wrap=True)
