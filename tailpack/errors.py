"""How a command ends that did not do what it was asked: one line that says why, and its exit status. No traceback."""

import errno
from typing import Final

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as shells have it: 128 + SIGINT."""
STOPPED: Final = "tailpack: stopped"
"""The last line then, on standard error."""
REMEDIES: Final = {
    errno.ENOENT: "name a place that exists",
    errno.EACCES: "name a place that you may use",
    errno.EPERM: "name a place that you may use",
    errno.EROFS: "name a place that can be written",
    errno.ENOTDIR: "name a folder",
    errno.EISDIR: "name a file",
    errno.ENOSPC: "make room there, or name another place",
    errno.EPIPE: "whatever read the output has ended",
}


class TailpackError(Exception):
    """A problem that the user can fix. The message is shown unchanged; the exit status is not 0."""


def explain(refused: OSError) -> str:
    """Return in one sentence what the system refused, where, and what to do."""
    where = f"{refused.filename}: " if refused.filename else ""
    remedy = REMEDIES.get(refused.errno or 0)
    return f"{where}{refused.strerror or refused}" + (f"; {remedy}" if remedy else "")
