"""For Locust's own command line: `locust -f locustfile.py [--headless] [--master --expect-workers 2 | --worker]`.

Settings come from the environment, as for `python -m loadgen.drivers`; the load begins when Locust starts its test: at
once, or when somebody presses Start on its page. Locust ends with the load, its page, too.
"""

import os
from pathlib import Path
from typing import Any

import gevent
from gevent.event import Event
from locust import events
from locust.runners import MasterRunner, WorkerRunner

from contracts.connection import Connection, read_settings
from contracts.validation import InvalidSettingsError
from loadgen.drivers.distributed import Follower, Leader
from loadgen.drivers.job import Job
from loadgen.drivers.locust_job import ScheduledLoad, alone, quiet, statistics
from loadgen.spec import DriverSettings, LoadSpec, read_load

__all__ = ["ScheduledLoad"]


@events.init.add_listener  # type: ignore[untyped-decorator]
def begin(environment: Any, runner: Any, **_: Any) -> None:
    """Prepare what this process is to do."""
    worker, master = isinstance(runner, WorkerRunner), isinstance(runner, MasterRunner)
    told = {"TAILPACK_MASTER": f"{runner.master_host}:{runner.master_port}"} if worker else {}
    told |= {"TAILPACK_WORKERS": str(environment.parsed_options.expect_workers)} if master else {}
    try:
        connection, settings = read_settings({**os.environ, **told}, DriverSettings)
        spec = None if worker else read_load(settings)
    except InvalidSettingsError as wrong:
        raise SystemExit("\n".join(wrong.problems)) from None
    quiet()
    if spec is None:
        gevent.spawn(Follower(runner, connection, settings, statistics(environment, settings)).follow)
        return
    started = Event()
    environment.events.test_start.add_listener(lambda **_: started.set())
    gevent.spawn(_carry_out, environment, spec, connection, settings, started)


def _carry_out(
    environment: Any, spec: LoadSpec, connection: Connection, settings: DriverSettings, started: Event
) -> None:
    """Run the load once Locust has started its test, keep the result, and end Locust."""
    runner, stopped = environment.runner, Event()
    for ending in (environment.events.quitting, environment.events.test_stop):  # the page has a button for the latter
        ending.add_listener(lambda **_: stopped.set())
    if isinstance(runner, MasterRunner):
        leader = Leader(runner, spec, connection, settings, stopped)
        started.wait()
        result = leader.lead(spawn=False)
    else:
        job = Job(spec, connection, settings, settled=statistics(environment, settings))
        started.wait()
        result = alone(job, spec, settings, stopped)
    result.save(Path(settings.out_dir))
    environment.process_exit_code = 0 if result.complete else 1
    if result.first_error:
        print(result.first_error, flush=True)  # noqa: T201  Locust's own log goes its own ways
    runner.quit()
    if environment.web_ui is not None:
        environment.web_ui.stop()
