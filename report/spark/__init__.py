"""The report of a run, by Spark: read → measure → explain → write."""


class ReportError(Exception):
    """There can be no report. The message is one line: what is wrong, where, and what to do."""
