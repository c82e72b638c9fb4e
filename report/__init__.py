"""The report of a run: its figures, the causes of late events, the cost, and the page that shows them."""

from pathlib import Path


class ReportError(Exception):
    """Raised if a report cannot be made. Its message is one line that names the problem, its place and the remedy."""

    problems = property(lambda self: [str(self)])  # lines that the command line prints


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically: readers see the old or the new content. A failed write leaves no temporary file."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        temporary.write_bytes(content.encode() if isinstance(content, str) else content)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise
