"""Define how a failing command ends: with an exit status and one line instead of a traceback."""

import errno
from collections.abc import Sequence
from importlib.util import find_spec
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
EXTRAS: Final = {
    "grpc": "keda", "jinja2": "bench", "locust": "load", "marimo": "lessons", "matplotlib": "bench", "pyarrow": "load",
}  # fmt: skip
"""Package that a command may lack → extra that installs it."""


class TailpackError(Exception):
    """A problem that the user can fix. Its message is printed unchanged, and the command fails."""


def missing_error(package: str) -> str:
    """Return the message for a package of EXTRAS that is not installed."""
    return f"{package} is not installed: in a clone, pip install '.[{EXTRAS[package]}]'"


def require(package: str) -> None:
    """Raise TailpackError if a package of EXTRAS is not installed. It is not imported, because that takes a second."""
    if find_spec(package) is None:
        raise TailpackError(missing_error(package))


def problems_of(error: Exception) -> Sequence[str]:
    """Return the lines about a missing package of EXTRAS, invalid settings or a wrong run; empty for other errors."""
    package = (error.name or "").partition(".")[0] if isinstance(error, ModuleNotFoundError) else ""
    found: Sequence[str] = getattr(error, "problems", ())  # their modules load slowly
    return [missing_error(package)] if package in EXTRAS else found


def explain(error: OSError) -> str:
    """Return in one sentence what failed, where, and what to do."""
    where = f"{error.filename}: " if error.filename else ""
    remedy = REMEDIES.get(error.errno or 0)
    return f"{where}{error.strerror or error}" + (f"; {remedy}" if remedy else "")
