"""For Locust's own command line: `locust -f locustfile.py [--headless]`.

Settings come from the environment, as for `python -m loadgen.drivers`; the load begins when Locust starts its test: at
once, or when a user presses Start on its page. Locust ends with the load, its page, too.
"""

import os
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from locust import events

from contracts.connection import Connection, read_settings
from contracts.validation import InvalidSettingsError
from loadgen.drivers.job import Job
from loadgen.drivers.locust_job import ScheduledLoad, quiet, send, statistics
from loadgen.spec import DriverSettings, LoadSpec, read_load

__all__ = ["ScheduledLoad"]


@events.init.add_listener  # type: ignore[untyped-decorator]
def begin(environment: Any, **_: Any) -> None:
    """Prepare the load."""
    try:
        connection, settings = read_settings(os.environ, DriverSettings)
        spec = read_load(settings)
    except InvalidSettingsError as error:
        raise SystemExit("\n".join(error.problems)) from None
    quiet()
    started = Event()
    environment.events.test_start.add_listener(lambda **_: started.set())
    gevent.spawn(_carry_out, environment, spec, connection, settings, started)


def _carry_out(
    environment: Any, spec: LoadSpec, connection: Connection, settings: DriverSettings, started: Event
) -> None:
    """Run the load once Locust has started its test, keep the result, and end Locust."""
    stopped = Event()
    for ending in (environment.events.quitting, environment.events.test_stop):  # the page has a button for the latter
        ending.add_listener(lambda **_: stopped.set())
    job = Job(spec, connection, settings, settled=statistics(environment, settings))
    started.wait()
    result = send(job, settings, stopped)
    result.save(Path(settings.out_dir), settings.part, settings.parts)
    environment.process_exit_code = 0 if result.complete else 1
    if result.first_error:
        print(result.first_error, flush=True)  # noqa: T201  Locust's own log goes its own ways
    environment.runner.quit()
    if environment.web_ui is not None:
        environment.web_ui.stop()
