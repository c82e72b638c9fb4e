"""Scenarios, simulated comparisons, and benchmarks of the pipeline and the policies."""


class BenchError(Exception):
    """Raised if a measurement fails or is impossible. Its message is one line: the problem, its place, the remedy."""


def reason(error: Exception) -> str:
    """Return the text of an error; if it was not expected, after its type."""
    return str(error) if isinstance(error, BenchError) else f"{type(error).__name__}: {error}"
