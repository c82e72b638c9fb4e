"""`python -m loadgen.drivers`: send one load. The exit status is 0 only if every scheduled event was acknowledged."""

import logging
import os
import signal
import sys
from pathlib import Path

from contracts import logs
from contracts.connection import read_settings
from contracts.validation import InvalidSettingsError
from loadgen.spec import DriverSettings, read_load


def main() -> int:
    """Return 0: all events acknowledged; 1: some were not, or the load did not start; 2: invalid settings."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # no traceback before Locust's job handles signals
    log = logging.getLogger("load generator")
    try:
        logs.configure(log.name, os.environ)
        connection, settings = read_settings(os.environ, DriverSettings)
        spec = read_load(settings)
    except InvalidSettingsError as error:
        for problem in error.problems:
            log.error(problem)
        return 2
    # Importing locust patches the process and takes a second, so do it only for a valid load.
    from loadgen.drivers import locust_job  # noqa: PLC0415
    from loadgen.drivers.sender import GeneratorError  # noqa: PLC0415

    try:
        result = locust_job.run(spec, connection, settings)
    except (GeneratorError, InvalidSettingsError) as refusal:  # the trace is read here
        log.error(refusal)
        return 1
    result.save(Path(settings.out_dir), settings.part, settings.parts)
    if result.first_error is not None:
        log.error(result.first_error)
    return 0 if result.complete else 1


if __name__ == "__main__":
    sys.exit(main())
