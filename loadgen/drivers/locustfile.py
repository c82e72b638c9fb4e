"""For Locust's own command line: `locust -f locustfile.py [--headless]`.

Settings come from the environment, as for `python -m loadgen.drivers`. The load begins when Locust starts its test: at
once, or when a user presses Start on its page. Locust and its page end with the load.
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
from loadgen.drivers.locust_job import ScheduledLoad, send, statistics, tame_garbage_collector
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
    tame_garbage_collector()
    started = Event()
    environment.events.test_start.add_listener(lambda **_: started.set())
    gevent.spawn(_run_load, environment, spec, connection, settings, started)


def _run_load(
    environment: Any, spec: LoadSpec, connection: Connection, settings: DriverSettings, started: Event
) -> None:
    """Run the load after Locust has started its test, save the result, and end Locust."""
    stopped = Event()
    for end in (environment.events.quitting, environment.events.test_stop):  # the page has a button for test_stop
        end.add_listener(lambda **_: stopped.set())
    job = Job(spec, connection, settings, settled=statistics(environment, settings))
    started.wait()
    result = send(job, settings, stopped)
    result.save(Path(settings.out_dir), settings.part, settings.parts)
    environment.process_exit_code = 0 if result.complete else 1
    if result.first_error:
        print(result.first_error, flush=True)  # noqa: T201  Locust configures its own log
    environment.runner.quit()
    if environment.web_ui is not None:
        environment.web_ui.stop()
