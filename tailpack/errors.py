"""How a command ends that did not do what it was asked: one line that says why, and its exit status. No traceback."""

from typing import Final

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells have it: 128 + SIGINT."""
STOPPED: Final = "tailpack: stopped"
"""The last line then, on standard error."""


class TailpackError(Exception):
    """Something the user can mend. The message is shown as it stands; the exit code is not 0."""
