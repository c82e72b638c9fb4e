"""Runs of the laboratory: simulated, live, or read from a folder. All figures are those of the report."""

import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np

from autoscaler.live.launchers.processes import read_pid_files
from autoscaler.policies.registry import policy_factory, use_class
from bench.scenario import load_scenario
from bench.sections import SECTIONS
from contracts.clock import now_us
from contracts.journal import JournalEntry, TickRecord
from contracts.settings import unknown_name
from contracts.validation import InvalidSettingsError
from report import stored
from report.columns import StoredRows
from report.figures import measure
from report.picture import BLUE, GREEN, GREY, RED, Picture, nines, picture
from report.records import EVENT_TYPES
from report.result import Result
from report.run_info import EVENTS, RunInfo, load_run
from report.wording import share
from tailpack.errors import TailpackError

SCENARIO_KEYS: Final = [option.name for section in SECTIONS.values() for option in fields(section)]
_TIMES: Final = ("intended_us", "done_us")


@dataclass(frozen=True, eq=False)
class Run:
    """A finished run: its figures, and pictures of them."""

    info: RunInfo
    rows: StoredRows
    """All events, as the report reads them."""
    entries: tuple[JournalEntry, ...]
    """The journal: observations, decisions and changes of replicas."""

    @cached_property
    def result(self) -> Result:
        """All figures, as in result.json. Raises ReportError for a run without events."""
        return measure(self.info, self.rows, self.entries, now_us=max(now_us(), self.info.drained_us or 0))

    @property
    def in_time(self) -> float:
        """Share of events within the latency target; lost events count as late."""
        return self.result.in_sla

    @property
    def late(self) -> int:
        """Number of events over the latency target or never completed."""
        return self.result.events - round(self.result.in_sla * self.result.events)

    @property
    def replica_minutes(self) -> float:
        """Cost of the run: the requested replicas, summed over its duration."""
        return self.result.replica_minutes or 0.0

    @cached_property
    def events(self) -> Mapping[str, np.ndarray[Any, Any]]:
        """One entry per event, by intended time: `intended_s`, `done_s` and `latency_s` in seconds, and `partition`.

        Times are since the start of the run. Events that were never completed are left out.
        """
        table = self.rows.table()
        done = np.flatnonzero(table["done_us"] > 0)
        done = done[np.argsort(table["intended_us"][done], kind="stable")]
        intended_s, done_s = ((table[name][done] - (self.info.started_us or 0)) / 1e6 for name in _TIMES)
        latency_s = done_s - intended_s
        columns = {"intended_s": intended_s, "done_s": done_s, "latency_s": latency_s}
        return columns | {"partition": table["partition"][done]}

    def decision(self, at: float) -> TickRecord:
        """Return the last decision at or before `at`, in seconds since the start: action, reason and alternatives.

        The first alternative is the chosen plan. Raises ValueError if there was no decision yet.
        """
        until_us = (self.info.started_us or 0) + round(at * 1e6)
        ticks = [entry for entry in self.entries if isinstance(entry, TickRecord) and entry.at_us <= until_us]
        if not ticks:
            raise ValueError(f"no decision was made before {at:g} s")
        return ticks[-1]

    def timeline(self) -> Picture:
        """Draw arrivals, worst latency and requested replicas of each second."""
        series, target_s = self.result.series, self.info.latency_target_s
        with picture(self._title(), 3) as (drawn, axes):
            axes[0].plot(series.arrivals, color=GREY)
            axes[0].set_ylabel("events/s")
            axes[1].plot(_numbers(series.max_s), color=BLUE)
            axes[1].axhline(target_s, color=RED, linestyle="--", label="latency target")
            axes[1].set(ylabel="worst latency, s", yscale="log")
            axes[1].legend(loc="upper right")
            axes[2].step(range(len(series.requested_replicas)), _numbers(series.requested_replicas), where="post")
            axes[2].set(ylabel="replicas", xlabel="seconds", ylim=(0, None))
        return drawn

    def partitions(self) -> Picture:
        """Draw the worst latency of each partition and second; red cells are over the latency target."""
        heat, target_s = self.result.heat, self.info.latency_target_s
        with picture(self._title()) as (drawn, (axes,)):
            axes.grid(visible=False)
            cells = np.array([_numbers(row) for row in heat.max_s]) if heat else np.zeros((1, 1))
            end_s = cells.shape[1] * (heat.cell_s if heat else 1)
            limits = {"vmin": 0, "vmax": 2 * target_s, "extent": (0, end_s, len(cells) - 0.5, -0.5)}
            shown = axes.imshow(cells, aspect="auto", cmap="RdYlBu_r", interpolation="none", **limits)
            axes.set(xlabel="seconds", ylabel="partition", yticks=range(len(cells)))
            drawn.colorbar(shown, ax=axes, extend="max", label=f"worst latency, s (target {target_s:g})")
        return drawn

    def latency(self) -> Picture:
        """Draw the latency distribution on an axis of nines: 90 %, 99 %, 99.9 %, …"""
        with picture(self._title()) as (drawn, (axes,)):
            nines(axes, self.events["latency_s"], "from the intended time", BLUE)
            axes.axhline(self.info.latency_target_s, color=RED, linestyle="--", label="latency target")
            axes.legend(loc="upper left")
        return drawn

    def decisions(self) -> Picture:
        """Draw the replicas of each plan, and the partitions that it moved."""
        plans = self.result.decisions
        colours = {"up": RED, "down": GREEN, "reassign": BLUE}
        with picture(f"{self.result.policy}: {len(plans)} plans", 2) as (drawn, axes):
            axes[0].step([plan.at_s for plan in plans], [plan.replicas for plan in plans], where="post", color=GREY)
            for action, colour in colours.items():
                own = [plan for plan in plans if plan.action == action]
                axes[0].plot([p.at_s for p in own], [p.replicas for p in own], "o", color=colour, label=action)
                axes[1].bar([plan.at_s for plan in own], [plan.moved for plan in own], width=1.0, color=colour)
            axes[0].set(ylabel="replicas", ylim=(0, None))
            axes[0].legend(loc="upper left", ncols=3)
            axes[1].set(ylabel="moved partitions", xlabel="seconds")
        return drawn

    def _title(self) -> str:
        figures = f"{share(self.in_time)} in time, {self.replica_minutes:.1f} replica-minutes"
        return f"{self.result.scenario}, {self.result.policy}: {figures}"


def _numbers(values: Any) -> list[float]:
    return [float("nan") if value is None else float(value) for value in values]


@contextmanager
def configured(policy: str | type, settings: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the changes of a scenario. An unknown name raises InvalidSettingsError with the nearest one."""
    name = policy if isinstance(policy, str) else use_class(policy)
    options = [option.name for option in fields(policy_factory(name).options)] if name else []
    known = [*SCENARIO_KEYS, *options]
    if problems := [f"{key} is {unknown_name(key, known)}" for key in settings if "." not in key and key not in known]:
        raise InvalidSettingsError(problems)
    own = [key for key in settings if key in options and key not in SCENARIO_KEYS]
    changes = {f"policy.{key}" if key in own else key: value for key, value in settings.items()}
    try:
        yield changes | ({"autoscaler.policy": name} if name else {})
    except InvalidSettingsError as error:
        raise InvalidSettingsError([problem.replace("--set ", "") for problem in error.problems]) from error


def simulate(scenario: str, *, policy: str | type = "", seed: int = 1, **settings: Any) -> Run:
    """Simulate a scenario, and return the run with all its events. W1 takes half a second, after its first run.

    scenario: a name or the path of a TOML file. policy: a name, `static-N`, `path.py:Class` or a class with `decide`;
    empty: the scenario's. settings: names of settings and of the policy's options, such as `startup_s=10`.
    Raises InvalidSettingsError, with the nearest name for an unknown one.
    """
    import pyarrow  # noqa: PLC0415  only the bench extra brings it

    from bench.simulation.folder import before_the_start, timeline  # noqa: PLC0415
    from bench.simulation.run import run_scenario  # noqa: PLC0415
    from bench.simulation.sent_events import build_events  # noqa: PLC0415
    from tailpack.provenance import describe_simulated  # noqa: PLC0415

    with configured(policy, settings) as changes:
        chosen = load_scenario(scenario, {**changes, "seed": seed})
        sent = build_events(chosen)
        run, _ = run_scenario(chosen, sent)
    info = describe_simulated(chosen, sent, run.drained_us, Path(f"{chosen.name}-{chosen.autoscaler.policy}"))
    columns = timeline(run)
    rows = StoredRows(
        EVENT_TYPES, lambda name: pyarrow.chunked_array([pyarrow.array(columns[name])]), frozenset(EVENT_TYPES)
    )
    return Run(info, rows, tuple(map(before_the_start, run.entries())))


def read(folder: str | Path) -> Run:
    """Return the run in a folder, which `tailpack run`, `demo` or `simulate --out` wrote. Raises ReportError."""
    place = Path(folder)
    return Run(load_run(place), stored.load_events(place / EVENTS), tuple(stored.load_journal(place)))


def live(
    scenario: str,
    *,
    policy: str | type = "",
    seed: int = 1,
    kill: str = "",
    freeze: str = "",
    out: str = "out",
    **settings: Any,
) -> Run:
    """Run a scenario on a real Kafka, which takes its duration and half a minute. Return the same kind of run.

    policy: a name or `path.py:Class`, because other processes load it. kill: "payment-1@20" kills this replica 20 s
    after the first event. freeze: "30+2" stops the broker for 2 s, 30 s after the first event. out: folder in which
    the run gets a folder. Raises InvalidSettingsError, or TailpackError if Java or another part is missing.
    """  # fmt: skip
    from rich.console import Console  # noqa: PLC0415  clients and services only where they are needed

    from tailpack.run import Run as LiveRun  # noqa: PLC0415

    if not isinstance(policy, str):
        raise TailpackError("a live run loads its policy in another process; pass policy='path.py:Class'")
    replica, _, kill_at = kill.partition("@")
    freeze_at, _, freeze_s = freeze.partition("+")
    try:
        due = [(float(kill_at), signal.SIGKILL)] if kill else []
        if freeze:
            due += [(float(freeze_at), signal.SIGSTOP), (float(freeze_at) + float(freeze_s), signal.SIGCONT)]
    except ValueError:
        raise TailpackError(f"kill={kill!r}, freeze={freeze!r}: write for example payment-1@20 and 30+2") from None
    with configured(policy, settings) as changes:
        run = LiveRun(load_scenario(scenario, {**changes, "seed": seed}), Console(stderr=True), Path(out))

    def act(_: object, status: Any) -> None:
        while due and min(due)[0] <= status.elapsed_s:
            due.remove(first := min(due))
            pids = {name: process.pid for name, _, process in read_pid_files(run.folder / "replicas") if process}
            pids[""] = run._own_broker.nodes[1].pid if run._own_broker else None
            if (pid := pids.get(replica if first[1] == signal.SIGKILL else "")) is None:
                raise TailpackError(f"{replica or 'a broker that this run started'}: no such process at that time")
            os.kill(pid, first[1])

    run.watch = act
    return read(run.execute())
