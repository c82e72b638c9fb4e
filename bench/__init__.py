"""Scenarios and experiments: what is asked of the pipeline and of policies, and what comes out."""


class BenchError(Exception):
    """What was to be measured cannot be. The message is one line: what is wrong, where, and what to do."""
