"""The errors a user sees: one line that says what is wrong, where, and what to do. No traceback."""


class TailpackError(Exception):
    """Something the user can mend. The message is shown as it stands; the exit code is not 0."""
