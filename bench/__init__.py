"""Scenarios, simulated comparisons, and benchmarks of the pipeline and the policies."""


class BenchError(Exception):
    """Raised if a measurement fails or is impossible. Its message is one line: the problem, its place, the remedy."""
