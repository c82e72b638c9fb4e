"""Draw the live view of a run: load, latency, handovers, owners of partitions, and decisions with their reasons."""

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.progress_bar import ProgressBar
from rich.table import Column, Table
from rich.text import Text

from autoscaler.page.decisions import NO_CHANGE
from contracts.journal import TickRecord
from report.wording import share
from tailpack.watch import WINDOW_S, RunState, Watcher

LINE_EVERY_S: Final = 5.0
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
WAIT_STYLES: Final = ("white on blue", "black on yellow", "bold white on red")
"""Style of a partition whose newest event waits at most half of the latency target, at most the target, or longer."""
MAX_DECISIONS: Final = 6
ACTION_STYLES: Final = {"up": "bold green", "down": "bold blue", "reassign": "bold yellow", "no-change": "dim"}


@dataclass(frozen=True, slots=True)
class RunStatus:
    """Progress of the run. elapsed_s: seconds since second 0. During start-up: minus the seconds since it began."""

    title: str
    phase: str
    elapsed_s: float
    duration_s: float
    memory_mib: float


class Screen:
    """The live view. A terminal is redrawn continuously; any other output gets a line every 5 s."""

    def __init__(self, console: Console, watcher: Watcher, moment: Callable[[str], RunStatus]) -> None:
        self.watcher = watcher
        self.phase = "starting"
        self._moment = moment
        self._console = console
        self._line_at = 0.0
        self._live = Live(console=console, auto_refresh=False, transient=True) if console.is_terminal else None

    def __enter__(self) -> "Screen":
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def update(self) -> None:
        """Read records for 0.25 s, then draw the view."""
        state = self.watcher.poll(0.25)
        moment = self._moment(self.phase)
        if self._live:
            self._live.update(render(state, moment), refresh=True)
        elif time.monotonic() >= self._line_at + LINE_EVERY_S:
            self._line_at = time.monotonic()
            self._console.print(line(state, moment), highlight=False, soft_wrap=True)


def render(state: RunState, moment: RunStatus) -> RenderableType:
    """Return the view with all its panels."""
    pair = Table.grid(Column(ratio=1), Column(ratio=1), expand=True)
    pair.add_row(_load(state), _latency(state))
    problems = (Panel(Text(problem, style="bold white on red"), border_style="bold red") for problem in state.problems)
    parts = (_owners(state.tick, state), _decisions(state))
    return Group(_header(moment, len(state.finished)), *problems, pair, *parts)


def line(state: RunState, moment: RunStatus) -> str:
    """Return the state in one line, for logs and terminals that cannot be redrawn."""
    tick, latency = state.tick, state.percentiles()
    load = (
        f"{sum(p.arrival_rate for p in tick.partitions):5.0f} ev/s  lag {sum(p.lag for p in tick.partitions):4d}  "
        f"replicas {tick.ready_replicas}/{tick.requested_replicas}  epoch {tick.epoch}"
        if tick
        else "waiting for the first tick"
    )
    moved = f"  moved {state.moved}, pause ≤ {state.longest_pause_s * 1e3:.0f} ms" if state.moved else ""
    tail = f"  p50 {latency[0] * 1e3:.0f}  p99 {latency[1] * 1e3:.0f}  max {latency[2] * 1e3:.0f} ms" if latency else ""
    problems = "".join(f"  PROBLEM: {problem}" for problem in state.problems)
    if moment.elapsed_s < 0:
        return f"{moment.phase}, {-moment.elapsed_s:.0f} s so far{problems}"
    return f"{moment.elapsed_s:5.0f} s  {load}{tail}{moved}  done {len(state.finished)}  {moment.phase}{problems}"


def sparkline(values: Iterable[float], width: int, top: float | None = None) -> str:
    """Return the last `width` values as block characters. top: value of a full block; None: highest of these values."""
    shown = list(values)[-width:]
    highest = top or max(shown, default=0.0) or 1.0
    return "".join(BLOCKS[min(8, max(0, round(value / highest * 8)))] for value in shown)


def _panel(columns: int | tuple[Column, ...], rows: Iterable[Sequence[RenderableType]], **titles: str) -> Panel:
    shape = tuple(Column(no_wrap=True) for _ in range(columns)) if isinstance(columns, int) else columns
    table = Table.grid(*shape, padding=(0, 1), expand=not isinstance(columns, int))
    for row in rows:
        table.add_row(*row)
    return Panel(table, border_style="dim", **titles)  # type: ignore[arg-type]


def _header(moment: RunStatus, done: int) -> RenderableType:
    elapsed_s = min(max(0.0, moment.elapsed_s), moment.duration_s)
    table = Table.grid(Column(), Column(ratio=1), Column(justify="right"), expand=True, padding=(0, 1))
    bar, memory = ProgressBar(total=moment.duration_s, completed=elapsed_s), f"{moment.memory_mib / 1024:.2f} GiB"
    figures = f"{elapsed_s:.0f}/{moment.duration_s:.0f} s · {moment.phase} · {done:,} done · {memory}"
    table.add_row(Text(moment.title, style="bold"), bar, Text(figures))
    return table


def _load(state: RunState) -> Panel:
    curves = (
        ("arrival rate", [rate for _, rate, _ in state.sums], "ev/s", "cyan"),
        ("lag", [lag for _, _, lag in state.sums], "events", "yellow"),
        ("replicas", [tick.requested_replicas for tick, _, _ in state.sums], "requested", "green"),
    )
    rows = [
        (name, Text(f"{values[-1]:5.0f}" if values else "    –", style="bold"), unit,
         Text(sparkline(values, 28), style=style))
        for name, values, unit, style in curves
    ]  # fmt: skip
    return _panel(4, rows, title="load")


def _latency(state: RunState) -> Panel:
    rows: list[tuple[RenderableType, ...]] = []
    for name, value in zip(("p50", "p99", "max"), state.percentiles() or (None, None, None), strict=True):
        style = "green" if value is None or value <= state.latency_target_s else "bold red"
        bar = "█" * min(30, max(1, round(value / state.latency_target_s * 20))) if value is not None else ""
        shown = Text("    –" if value is None else f"{value * 1e3:5.0f}", style=f"bold {style}")
        rows.append((name, shown, "ms", Text(bar, style=style)))
    done = len(state.finished)
    in_time = share(state.in_sla / done if done else None)
    return _panel(
        4, rows, title=f"latency, last {WINDOW_S:.0f} s · target {state.latency_target_s * 1e3:.0f} ms",
        subtitle=f"{in_time} in time, worst {state.worst_s * 1e3:.0f} ms",
    )  # fmt: skip


def _owners(tick: TickRecord | None, state: RunState) -> Panel:
    partitions = tick.partitions if tick else ()
    rows = []
    for replica in sorted({*(partition.owner or "none" for partition in partitions), *state.replicas}):
        owned = [partition for partition in partitions if (partition.owner or "none") == replica]
        rate = sum(load.arrival_rate for load in owned)
        mu = tick.service_rate if tick else 0.0
        used = f"{rate:4.0f} ev/s" + (f" = {100 * rate / mu:3.0f} % of μ" if mu else "") if owned else ""
        cells = Text()
        for load in owned:
            wait = load.lag / mu / state.latency_target_s if mu else 0.0
            text = f" p{load.partition} {load.arrival_rate:.0f}{' !' * (wait > 1)} "
            cells.append(text, style=WAIT_STYLES[(wait > 0.5) + (wait > 1)])
            cells.append(" ")
        rows.append((replica, Text(used or str(state.replicas.get(replica, "")), style="dim"), cells))
    columns = (Column(no_wrap=True), Column(no_wrap=True), Column(ratio=1))
    return _panel(columns, rows, title="partitions of each replica (events/s; !: waits too long)")


def _decisions(state: RunState) -> Panel:
    rows: list[tuple[RenderableType, ...]] = [
        ("", Text("incident", style="bold red"), "", Text(incident)) for incident in reversed(state.incidents)
    ]
    for row in reversed([*state.decisions.rows.values()][-MAX_DECISIONS:]):  # a small screen cuts off the oldest
        pause_s, (before, after) = state.pauses_s.get(row.epoch), row.replicas
        moved = f"{len(row.moves)} moved" + (f", {pause_s * 1e3:.0f} ms" if pause_s else "") if row.moves else ""
        verb = f"{row.action} {before} → {after}" if row.action != NO_CHANGE else f"no change ×{row.times}"
        at_s = (row.last_us - (state.first_us or 0)) / 1e6
        style = ACTION_STYLES.get(row.action, "")
        rows.append((f"{at_s:.0f} s", Text(verb, style=style), Text(moved, style="yellow"), Text(row.why)))
    columns = (*(Column(no_wrap=True) for _ in range(3)), Column(ratio=1, overflow="fold"))
    return _panel(columns, rows, title="decisions, the newest first")
