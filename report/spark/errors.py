"""What can go wrong with the input of a report."""


class ReportError(Exception):
    """The run cannot be judged. The message is one line: what is wrong, where, and what to do."""
