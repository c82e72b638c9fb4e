"""Run `tailpack …` in the process of the test."""

from typer.testing import CliRunner, Result

from tailpack.cli.main import app


def run(*words: object) -> Result:
    """Return the printed text. Errors of commands are raised, as in `tailpack.cli.main`."""
    return CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
