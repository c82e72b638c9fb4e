"""Scenarios, simulated comparisons, and benchmarks of the pipeline and the policies."""


class BenchError(Exception):
    """A measurement is impossible or failed. The message is one line: what is wrong, where, and what to do."""
