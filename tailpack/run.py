"""Perform a live run, from the start of the broker and the services to the report."""

import contextlib
import dataclasses
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import msgspec
from msgspec.structs import replace
from rich.console import Console
from rich.markup import escape

from autoscaler.page.feed import Feed
from autoscaler.page.snapshot import snapshot
from bench.benchmark import all_exist
from bench.scenario import Scenario
from contracts.children import defer_stop_signals, python_module
from contracts.clock import now_us
from contracts.connection import Connection
from loadgen.result import READY_FILE, RESULT_FILE, GeneratorResult, part_file_name
from loadgen.workloads import find_workload
from report import replace_file
from tailpack.controls import Controls
from tailpack.errors import TailpackError, require
from tailpack.first_run import is_compiled, measure_cores, sustainable_share
from tailpack.live_view import RunStatus, Screen
from tailpack.local.broker import Broker
from tailpack.local.jars import java, kafka_jars, payment_consumer
from tailpack.local.ports import free_ports
from tailpack.local.resources import ResourceMeter
from tailpack.local.stack import Stack
from tailpack.local.topics import create_topics
from tailpack.provenance import check_no_run, command, describe, new_folder, versions
from tailpack.reporting import report_run
from tailpack.view import counted_us, head_of, open_browser, serving
from tailpack.watch import RunState, Watcher

READY_DEADLINE_S: Final = 90.0
DRAIN_DEADLINE_S: Final = 60.0
"""If no event finishes for this time after the end of the load, the missing events count as lost."""
LEAD_S: Final = 1.0
"""Minimum time from the start signal to second 0, in which the generator gets ready."""
METER_EVERY_S: Final = 2.0
LOWEST_PRIORITY: Final = "19"


@dataclass
class Run:
    """One live run. `execute` returns the folder with its report. All processes end with it, even after an error."""

    scenario: Scenario
    console: Console
    out: Path
    bootstrap_servers: str = ""
    """Empty: the broker of `tailpack kafka start`, or else a broker that is started for this run."""
    client_properties: str = ""
    web_port: int | None = None
    load_workers: int = 1
    name: str = ""
    """Name of the run's folder and namespace of its topics; empty: a new name."""
    open_page: bool = False
    """Whether to open the live page in a browser; it is served in any case."""
    controls: bool = False
    """Whether the live page has controls, for the user who opens it by its address with a token."""
    fit_load: bool = False
    """Whether to measure the machine first, and to scale the load down to a rate that it can serve."""
    watch: Callable[[RunState, RunStatus], None] = lambda _, __: None
    """Called about four times a second with the state that the live view shows."""

    def __post_init__(self) -> None:
        self.scenario = self.scenario.for_live()
        self._compiled = is_compiled()
        if self.web_port:
            free_ports([self.web_port], option="--web-ui")
        self._new = [folder for folder in (self.out, *self.out.parents) if not folder.exists()]
        self.folder = check_no_run(self.out / self.name) if self.name else new_folder(self.out, self.scenario.name)
        self.folder.mkdir(parents=True, exist_ok=True)
        self.meter = ResourceMeter()
        self._metered_at = self._memory_mib = 0.0
        self._own_broker: Broker | None = None
        self._began = time.monotonic()
        self._first_at = 0.0
        """Monotonic time at which the first event is sent, s; 0: not known yet."""
        self._phase = "starting"
        self._pages = contextlib.ExitStack()
        self._others: list[dict[str, Any]] = []
        """Figures of the load so far under other policies, as they are simulated; {"error": why} if they are not."""
        self._controls: Controls | None = None

    def execute(self) -> Path:
        """Perform the live run; return its folder. Raises TailpackError, or KeyboardInterrupt after all has stopped."""
        try:
            require("jinja2")
            java()
            if self.scenario.autoscaler_settings().get("CLIENT") == "java":
                payment_consumer()  # is compiled before anything is started
            if self.fit_load and not self.scenario.load.trace:
                self._fit_load()
            connection = self._connect()
            create_topics(connection, self.scenario.payment.partitions, self.scenario.pipeline_partitions)
            self._load(connection)
            self._save_info(versions=versions())
            self._phase = "writing the report"
            with self.console.status("computing the report"):
                report_run(self.folder, "", while_waiting=self._measure)
            self._save_info()
            self._log(f"peak memory {self.meter.peak_mib / 1024:.2f} GiB (PSS of every process)")
        finally:
            self._pages.close()
            if self._own_broker:
                with defer_stop_signals():
                    self._own_broker.stop()
            self._remove_empty_folders()
        if self._own_broker:
            shutil.rmtree(self._own_broker.folder, ignore_errors=True)  # the Parquet files have all its data
        return self.folder

    def _fit_load(self) -> None:
        """Scale the load down to a rate that the machine can serve."""
        load, seconds = self.scenario.load, self.scenario.duration_s
        peak = int(find_workload(load.workload).events(seconds).reshape(seconds, -1).sum(axis=1).max())
        with self.console.status("measuring this machine for 3 s"):
            share = sustainable_share(measure_cores(), peak)
        result = f"is slow or busy: load scaled to {share:.0%}" if share < 1 else "can serve the load"
        self._log(f"this machine {result}, {share * peak:.0f} orders/s at the peak")
        if share < 1:
            load = dataclasses.replace(load, faults=(*load.faults, f"burst 0-{seconds} {share:g}"))
            self.scenario = dataclasses.replace(self.scenario, load=load)

    def replay(self) -> Path:
        """Send the load to services that run elsewhere, and wait until all events are finished. It makes no report."""
        try:
            connection = self._connection(self.bootstrap_servers)
            connection.librdkafka()  # raises for unreadable client properties, before anything is written
            self._load(connection, only_load=True)
        finally:
            self._pages.close()
            self._remove_empty_folders()
        return self.folder

    def _remove_empty_folders(self) -> None:
        with contextlib.suppress(OSError):
            for folder in (self.folder, *self._new):
                folder.rmdir()

    def _connection(self, address: str) -> Connection:
        options = {"client_properties": self.client_properties, "namespace": self.folder.name}
        return Connection(bootstrap_servers=address, **options)

    def _connect(self) -> Connection:
        address = self.bootstrap_servers or Broker().address()
        if not address:
            kafka_jars(self._log)
            with self.console.status("starting Apache Kafka"):
                self._own_broker = Broker(self.folder / "kafka")
                address = self._own_broker.start()
        return self._connection(address)

    def _load(self, connection: Connection, *, only_load: bool = False) -> None:
        require("locust")  # the image of services and autoscaler lacks it
        self.info = describe(self.scenario, connection, command())
        self._save_info()
        stack = Stack(self.scenario, connection, self.folder)
        target_s = self.scenario.target.latency_target_s
        watcher = Watcher(connection, self.scenario.topology, target_s, self.scenario.pipeline_partitions)
        if self.controls:
            self._controls = Controls(connection, self.scenario.load_spec(), self.folder, self._log)
        self._serve(watcher.state)
        try:
            with Screen(self.console, watcher, self._moment) as screen:
                options = {"web_port": self.web_port, "load_workers": self.load_workers}
                stack.start(self.scenario.load_spec(), **options, only_load=only_load)  # type: ignore[arg-type]
                self._until_ready(stack, screen)
                pages = [f"{name} http://127.0.0.1:{port}" for name, port in stack.ports.items()]
                self._log(" · ".join([f"kafka {self.info.bootstrap_servers}", *pages]))
                self._start_load(stack)
                watcher.state.cost_s, watcher.state.counted_us = 0.0, counted_us(self.info)
                self._until_done(stack, screen)
        except KeyboardInterrupt:
            self._save_info(interrupted=True)
            self._log(f"stopped; to report on the events so far: tailpack report {self.folder}")
            raise
        finally:
            with defer_stop_signals():
                stack.stop()
                watcher.close()
                self._save_info()

    def _serve(self, state: RunState) -> None:
        """Serve the live page until the report is written."""
        feed, controls = Feed(partial(self._page, state)), self._controls
        feed.controls = self.controls
        address = self._pages.enter_context(serving(feed.respond, controls.answer if controls else None))
        address += f"/#token={controls.token}" if controls else ""
        self._log(f"live page {address}")
        if self.open_page:
            open_browser(address, self.console)
        command = ["nice", "-n", LOWEST_PRIORITY, *python_module("bench.replay"), str(self.folder)]
        with contextlib.suppress(OSError):
            streams: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
            child = subprocess.Popen(command, start_new_session=True, **streams)
            for end in (child.wait, child.kill):  # the last one is called first
                self._pages.callback(end)
            threading.Thread(target=self._read_others, args=(child.stdout,), daemon=True).start()
            # a session has its own priority, which hides that of its processes if sched_autogroup is on
            Path(f"/proc/{child.pid}/autogroup").write_text(LOWEST_PRIORITY, encoding="ascii")

    def _read_others(self, lines: IO[bytes]) -> None:
        with lines, contextlib.suppress(msgspec.DecodeError):  # the last line may be cut
            for line in lines:
                self._others.append(msgspec.json.decode(line))

    def _page(self, state: RunState) -> dict[str, Any]:
        """Return the state of the live page. It is called in threads of the web server."""
        with state.lock:
            more = {"stages": state.stages(), "letters": len(state.dead_letters), "others": self._others[:]}
            more |= self._controls.state() if self._controls else {}
            return snapshot(state, now_us(), phase=self._phase, **head_of(self.info), **more)

    def _until_ready(self, stack: Stack, screen: Screen) -> None:
        deadline = time.monotonic() + READY_DEADLINE_S
        while waiting := self._not_ready(stack, screen):
            self._phase = screen.phase = f"starting, waiting for {', '.join(waiting)}"
            self._step(stack, screen)
            if failed := stack.failed():
                raise TailpackError(f"{failed.name} does not start: {failed.ending()}; see {failed.log}")
            if time.monotonic() > deadline:
                state = screen.watcher.state
                why = "".join(f" ({problem})" for problem in [*state.incidents, *state.problems][-1:])
                late = f"not ready within {READY_DEADLINE_S:.0f} s: {', '.join(waiting)}{why}"
                raise TailpackError(f"{late}; see {self.folder / 'logs'}")

    def _not_ready(self, stack: Stack, screen: Screen) -> list[str]:
        tick, wanted = screen.watcher.state.tick, self.scenario.autoscaler.initial_replicas
        waiting = stack.unhealthy()
        ready = tick.ready_replicas if tick else 0
        if not waiting and ready < wanted:
            waiting = [f"replicas: {ready} of {wanted} ready"]
        if waiting and tick is None and not self._compiled:
            waiting.append("autoscaler: compiling for about 30 s, only this time")
        if not all_exist(self.folder, READY_FILE, self.load_workers):
            waiting.append("load generator")
        return waiting

    def _start_load(self, stack: Stack) -> None:
        now_s = now_us() / 1e6
        second = -(-(now_s + LEAD_S) // 1)  # a whole second, so that ticks have a fixed offset from bursts
        self._first_at = time.monotonic() + second - now_s
        self.meter.full_s = 0.0
        self._save_info(started_us=int(second * 1e6))
        if self._controls:
            self._controls.started_us = self.info.started_us
        replace_file(stack.start_file, str(self.info.started_us))

    def _until_done(self, stack: Stack, screen: Screen) -> None:
        self._phase = screen.phase = "replaying"
        while any(part.exit_status is None for part in stack.load_parts):
            self._step(stack, screen)
        self._phase = screen.phase = "draining"
        if not all_exist(self.folder, RESULT_FILE, self.load_workers):
            files = (part_file_name(RESULT_FILE, part, self.load_workers) for part in range(1, self.load_workers + 1))
            parts = zip(files, stack.load_parts, strict=True)
            failed = next(part for file, part in parts if not (self.folder / file).exists())
            raise TailpackError(f"{failed.name} did not send its load: {failed.ending()}; see {failed.log}")
        sent = GeneratorResult.load(self.folder, self.load_workers)
        if sent.first_error:
            self._log(f"generator: {sent.first_error}")
        state, progress_at, before = screen.watcher.state, time.monotonic(), -1
        awaited = sent.acknowledged - (sent.repeated if sent.complete else 0)
        while len(state.finished) + len(state.dead_letters) < awaited:
            self._step(stack, screen)
            if (done := len(state.finished) + len(state.dead_letters)) != before:
                before, progress_at = done, time.monotonic()
            elif time.monotonic() > progress_at + DRAIN_DEADLINE_S:
                self._log(f"{awaited - done} events did not finish within {DRAIN_DEADLINE_S:.0f} s; they count as lost")
                break
        full_s = round(self.meter.full_s, 1)
        self._save_info(drained_us=now_us(), cores_full_s=full_s, events_scheduled=sent.scheduled - sent.repeated)

    def _step(self, stack: Stack, screen: Screen) -> None:
        screen.update()
        self.watch(screen.watcher.state, self._moment(screen.phase))
        now = time.monotonic()
        for incident in stack.supervise(now):
            screen.watcher.state.incidents.append(incident)
            self._log(incident)
        if self._controls and len(self._controls.done) > len(self.info.interventions):
            self._save_info()
        if now >= self._metered_at + METER_EVERY_S:
            self._metered_at = now
            self._measure(stack.processes().values())

    def _measure(self, pids: Iterable[int]) -> None:
        kafka = self._own_broker.nodes[1].pid if self._own_broker else None
        self._memory_mib = self.meter.sample(filter(None, (*pids, kafka, os.getpid())), time.monotonic())

    def _moment(self, phase: str) -> RunStatus:
        now, title = time.monotonic(), f"tailpack {self.scenario.name} · {self.scenario.autoscaler.policy}"
        elapsed_s = now - self._first_at if self._first_at else self._began - now
        return RunStatus(title, phase, elapsed_s, self.scenario.duration_s, self._memory_mib)

    def _save_info(self, **fields: Any) -> None:
        fields |= {"interventions": tuple(self._controls.done)} if self._controls else {}
        peak_mib = round(self.meter.peak_mib, 1) or None
        self.info = replace(self.info, peak_memory_mib=peak_mib, **fields)
        self.info.save(self.folder)

    def _log(self, sentence: str) -> None:
        at = f"[dim]{time.monotonic() - self._began:6.1f} s[/dim]"
        self.console.print(f"{at}  {escape(sentence)}", highlight=False, soft_wrap=True)
