"""The result as a table in the terminal."""

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from report.causes import title
from report.result import STAGES, Result, Tail
from report.wording import count, duration, minutes, several, share


def show(result: Result, console: Console) -> None:
    """Print verdict, key figures, why events were late, and the stages."""
    parts = [_heading(result), Padding(_figures(result), (1, 0))]
    if result.tail and result.tail.causes:
        parts.append(Padding(_causes(result.tail), (0, 0, 1, 0)))
    console.print(Group(*parts, _stages(result)))


def _heading(result: Result) -> RenderableType:
    good = result.valid and result.kept and result.whole
    return Text.assemble(
        (f"{result.scenario} · {result.policy} · seed {result.seed}\n", "bold"),
        (result.verdict, "green" if good else "yellow" if result.valid else "red"),
    )


def _figures(result: Result) -> Table:
    table = Table(show_header=False, box=None, pad_edge=False, padding=(0, 3, 0, 0))
    for justify in ("left", "right", "left", "right"):
        table.add_column(justify=justify)
    cells = figures(result)
    half = (len(cells) + 1) // 2
    for left, right in zip(cells[:half], [*cells[half:], ("", "")], strict=False):
        table.add_row(*left, *right)
    return table


def figures(result: Result) -> list[tuple[str, str]]:
    """Return label and text of every key figure, most wanted first."""
    actions = f"{result.scale_ups} / {result.scale_downs} / {result.reassignments}"
    effects = result.effects
    return [
        (f"within {duration(result.latency_target_s)}", share(result.in_sla)),
        ("p50", duration(result.p50_s)),
        ("p99", duration(result.p99_s)),
        ("p99.9", duration(result.p999_s)),
        ("max", duration(result.max_s)),
        ("replica-minutes", minutes(result.replica_minutes)),
        ("ups / downs / reassigned", actions),
        ("partitions moved", count(result.moved_partitions)),
        ("events", count(result.events)),
        ("lost", count(result.lost)),
        ("refused (dead letters)", f"{count(result.refused)} ({count(result.dead_letters)})"),
        ("duplicate records", count(result.duplicates)),
        ("out of order", count(result.order_violations)),
        ("effects exactly once", f"{count(effects.exactly_once)} of {count(effects.orders)}" if effects else "–"),
        ("effects missing / doubled", f"{count(effects.missing)} / {count(effects.doubled)}" if effects else "–"),
        ("generator late, p99", duration(result.lateness.p99_s)),
    ]


def _causes(tail: Tail) -> Text:
    causes = ", ".join(f"{count(one.events)} {title(one.cause).lower()}" for one in tail.causes)
    return Text.assemble(("why late  ", "bold"), f"{causes} (of {several(tail.late, 'late event')})")


def _stages(result: Result) -> Table:
    table = Table("stage", box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for stage in result.stages:
        values = (stage.p50_s, stage.p90_s, stage.p95_s, stage.p99_s, stage.p999_s, stage.p9999_s, stage.max_s)
        table.add_row(STAGES.get(stage.stage, stage.stage), *map(duration, values))
    return table
