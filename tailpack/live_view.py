"""The live view of a run: load, latency against the target, handovers, owners, each decision and why."""

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

from contracts.journal import TickRecord
from report.wording import share
from tailpack.watch import WINDOW_S, Handovers, LiveState, Watcher

LINE_EVERY_S: Final = 5.0
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
HUES: Final = ("cyan", "magenta", "green", "yellow", "blue")
PALETTE: Final = (*HUES, *(f"bright_{hue}" for hue in ("red", *HUES[:3])))
ACTION_STYLES: Final = {"up": "bold green", "down": "bold blue", "reassign": "bold yellow", "hold": "dim"}


@dataclass(frozen=True, slots=True)
class Moment:
    """Where the run stands. elapsed_s counts from second 0 of the workload; negative while things start."""

    title: str
    phase: str
    elapsed_s: float
    duration_s: float
    memory_mib: float


class Screen:
    """The live view: redrawn on a terminal, a line now and then elsewhere."""

    def __init__(self, console: Console, watcher: Watcher, moment: Callable[[str], Moment]) -> None:
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
        """Take in what arrived within a quarter of a second and draw."""
        state = self.watcher.poll(0.25)
        moment = self._moment(self.phase)
        if self._live:
            self._live.update(render(state, moment), refresh=True)
        elif time.monotonic() >= self._line_at + LINE_EVERY_S:
            self._line_at = time.monotonic()
            self._console.print(line(state, moment), highlight=False, soft_wrap=True)


def render(state: LiveState, moment: Moment) -> RenderableType:
    """Return the whole view."""
    beside = Table.grid(Column(ratio=1), Column(ratio=1), expand=True)
    beside.add_row(_load(state), _latency(state))
    return Group(
        _header(moment, len(state.finished)),
        beside,
        _handovers(state.handovers, state.latency_target_s),
        _owners(state.tick, state),
        _decisions(state),
        *(
            Panel(Text(trouble, style="bold white on red"), title="trouble", border_style="bold red")
            for trouble in state.troubles
        ),
    )


def line(state: LiveState, moment: Moment) -> str:
    """Return the same in one line, for terminals that cannot be redrawn and for logs."""
    tick, latency = state.tick, state.percentiles()
    seen = (
        f"{sum(p.arrival_rate for p in tick.partitions):5.0f} ev/s  lag {sum(p.lag for p in tick.partitions):4d}  "
        f"replicas {tick.ready_replicas}/{tick.requested_replicas}  epoch {tick.epoch}"
        if tick
        else "waiting for the first observation"
    )
    moves = state.handovers
    moved = f"  moved {moves.moved}, pause ≤ {moves.longest_pause_s * 1e3:.0f} ms" if moves.moved else ""
    tail = f"  p50 {latency[0] * 1e3:.0f}  p99 {latency[1] * 1e3:.0f}  max {latency[2] * 1e3:.0f} ms" if latency else ""
    troubles = "".join(f"  TROUBLE: {trouble}" for trouble in state.troubles)
    if moment.elapsed_s < 0:
        return f"{moment.phase}, {-moment.elapsed_s:.0f} s so far{troubles}"
    return f"{moment.elapsed_s:5.0f} s  {seen}{tail}{moved}  done {len(state.finished)}  {moment.phase}{troubles}"


def sparkline(values: Iterable[float], width: int, top: float | None = None) -> str:
    """Return the last `width` values as block characters; `top` is the value of a full block."""
    shown = list(values)[-width:]
    highest = top or max(shown, default=0.0) or 1.0
    return "".join(BLOCKS[min(8, max(0, round(value / highest * 8)))] for value in shown)


def _header(moment: Moment, done: int) -> RenderableType:
    elapsed_s = min(max(0.0, moment.elapsed_s), moment.duration_s)
    table = Table.grid(Column(), Column(ratio=1), Column(justify="right"), expand=True, padding=(0, 1))
    table.add_row(
        Text(moment.title, style="bold"),
        ProgressBar(total=moment.duration_s, completed=elapsed_s),
        Text(
            f"{elapsed_s:.0f}/{moment.duration_s:.0f} s · {moment.phase} · {done:,} done · "
            f"{moment.memory_mib / 1024:.2f} GiB"
        ),
    )
    return table


def _load(state: LiveState) -> Panel:
    rates = [sum(p.arrival_rate for p in tick.partitions) for tick in state.ticks if tick.partitions]
    lags = [sum(p.lag for p in tick.partitions) for tick in state.ticks if tick.partitions]
    replicas = [tick.requested_replicas for tick in state.ticks if tick.partitions]
    table = Table.grid(padding=(0, 1))
    for name, values, unit, style in (
        ("arrival rate", rates, "ev/s", "cyan"),
        ("lag", lags, "events", "yellow"),
        ("replicas", replicas, "requested", "green"),
    ):
        newest = f"{values[-1]:.0f}" if values else "–"
        table.add_row(name, Text(f"{newest:>5}", style="bold"), unit, Text(sparkline(values, 28), style=style))
    return Panel(table, title="load", border_style="dim")


def _latency(state: LiveState) -> Panel:
    target_ms = state.latency_target_s * 1e3
    table = Table.grid(padding=(0, 1))
    figures = state.percentiles()
    for name, value in zip(("p50", "p99", "max"), figures or (None, None, None), strict=True):
        if value is None:
            table.add_row(name, "    –", "ms", "")
            continue
        style = "green" if value <= state.latency_target_s else "bold red"
        bar = "█" * min(30, max(1, round(value / state.latency_target_s * 20)))
        table.add_row(name, Text(f"{value * 1e3:5.0f}", style="bold " + style), "ms", Text(bar, style=style))
    done = len(state.finished)
    in_time = share(state.in_sla / done if done else None)
    return Panel(
        table,
        title=f"latency, last {WINDOW_S:.0f} s · target {target_ms:.0f} ms",
        subtitle=f"{in_time} in time, worst {state.worst_s * 1e3:.0f} ms",
        border_style="dim",
    )


def _handovers(handovers: Handovers, latency_target_s: float) -> Panel:
    """The worst latency of each second, and beneath it how many partitions moved in that second."""
    latency, moves = Text(), Text()
    for second in handovers.curve():
        late = second.worst_s > latency_target_s
        latency.append(sparkline([second.worst_s], 1, latency_target_s), style="bold red" if late else "green")
        moves.append(
            "·" if not second.moved else str(min(second.moved, 9)), style="bold yellow" if second.moved else "dim"
        )
    table = Table.grid(padding=(0, 1))
    table.add_row("worst", latency)
    table.add_row("moved", moves)
    pause = f", nobody served one for at most {handovers.longest_pause_s * 1e3:.0f} ms" if handovers.pauses_s else ""
    return Panel(
        table,
        title=f"each second: worst latency (full block {latency_target_s * 1e3:.0f} ms), partitions moved",
        subtitle=f"{handovers.moved} partitions moved by {handovers.plans} plans{pause}",
        border_style="dim",
    )


def _owners(tick: TickRecord | None, state: LiveState) -> Panel:
    table = Table.grid(Column(no_wrap=True), Column(no_wrap=True), Column(ratio=1), padding=(0, 1), expand=True)
    owned: dict[str, list[int]] = {}
    rates = {seen.partition: seen.arrival_rate for seen in tick.partitions} if tick else {}
    for seen in tick.partitions if tick else ():
        owned.setdefault(seen.owner or "nobody", []).append(seen.partition)
    for replica in sorted({*owned, *state.replicas}):
        partitions = owned.get(replica, [])
        rate = sum(rates[partition] for partition in partitions)
        of_capacity = f"{rate:4.0f} ev/s = {100 * rate / tick.service_rate:3.0f} % of μ" if tick and partitions else ""
        table.add_row(
            replica, Text(of_capacity or str(state.replicas.get(replica, "")), style="dim"), _cells(partitions, rates)
        )
    return Panel(table, title="who owns which partition (events/s)", border_style="dim")


def _cells(partitions: Sequence[int], rates: dict[int, float]) -> Text:
    cells = Text()
    for partition in partitions:
        cells.append(f" p{partition} {rates[partition]:.0f} ", style=f"black on {PALETTE[partition % len(PALETTE)]}")
        cells.append(" ")
    return cells


def _decisions(state: LiveState) -> Panel:
    reason = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    table = Table.grid(*(Column(no_wrap=True) for _ in range(3)), reason, padding=(0, 1), expand=True)
    for plan in list(state.plans)[-6:]:
        pause_s = state.handovers.pauses_s.get(plan.epoch)
        table.add_row(
            f"epoch {plan.epoch}",
            Text(plan.action, style=ACTION_STYLES.get(plan.action, "")),
            Text(f"{plan.moved} moved" + (f", {pause_s * 1e3:.0f} ms" if pause_s else ""), style="yellow"),
            plan.reason,
        )
    newest = state.ticks[-1] if state.ticks else None
    if newest:
        table.add_row(
            "now", Text(newest.action, style=ACTION_STYLES.get(newest.action, "")), "", Text(newest.reason, style="dim")
        )
    for incident in state.incidents:
        table.add_row("", Text("incident", style="bold red"), "", incident)
    return Panel(table, title="decisions", border_style="dim")
