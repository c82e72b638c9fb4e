"""Run `tailpack …` inside the test's own process."""

from typer.testing import CliRunner, Result

from tailpack.cli.main import app


def run(*words: object) -> Result:
    """Return what was printed; an exception of ours reaches the test, as it reaches `tailpack.cli.main`."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
