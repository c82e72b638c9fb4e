"""The report of a run: its figures, the causes of late events, the cost, and the page that shows them."""

from pathlib import Path


class ReportError(Exception):
    """The report cannot be made. The message is one line: what is wrong, where, and what to do."""


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically: readers see the old or the new content. No temporary file is left if it fails."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
