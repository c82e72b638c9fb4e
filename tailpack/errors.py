"""Define how a failing command ends: with an exit status and one line instead of a traceback."""

import errno
from typing import Final

INTERRUPTED: Final = 130
"""Exit status after Ctrl-C, as in shells: 128 + SIGINT."""
STOPPED: Final = "tailpack: stopped"
"""Last line on standard error after Ctrl-C."""
REMEDIES: Final = {
    errno.ENOENT: "name a path that exists",
    errno.EACCES: "name a path that you may access",
    errno.EPERM: "name a path that you may access",
    errno.EROFS: "name a path that can be written",
    errno.ENOTDIR: "name a folder",
    errno.EISDIR: "name a file",
    errno.ENOSPC: "free space there, or name another path",
    errno.EPIPE: "the program that read the output has ended",
}


class TailpackError(Exception):
    """A problem that the user can fix. Its message is printed unchanged, and the command fails."""


def explain(error: OSError) -> str:
    """Return in one sentence what failed, where, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    remedy = REMEDIES.get(error.errno or 0)
    return f"{where}{error.strerror or error}" + (f"; {remedy}" if remedy else "")
