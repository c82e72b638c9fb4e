"""The errors a replica ends with: one line that says what is wrong, where, and what to do. No traceback."""


class ReplicaError(Exception):
    """The replica cannot go on. The message is shown as it stands; the exit code is 1."""
