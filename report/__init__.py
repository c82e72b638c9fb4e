"""What a run came to: figures, causes, cost; how they are found and the page that shows them."""

from pathlib import Path


class ReportError(Exception):
    """There can be no report. The message is one line: what is wrong, where, and what to do."""


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file; a reader never sees half of it, and what cannot be written leaves nothing behind."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
