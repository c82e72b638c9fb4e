"""The result as a table in the terminal."""

from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from report.page.answers import answers, key_figures, late_by_cause
from report.result import STAGES, Result
from report.wording import duration, several


def show(result: Result, console: Console) -> None:
    """Print verdict, key figures, why events were late, and the stages."""
    colour = "green" if result.valid and result.kept and result.whole else "yellow" if result.valid else "red"
    name = f"{result.scenario} · {result.policy} · seed {result.seed}"
    name = result.scenario if result.world == "unknown" else name
    heading = Text.assemble((f"{name}\n", "bold"), (result.verdict, colour))
    figures = Table(show_header=False, box=None, pad_edge=False, padding=(0, 2, 0, 0))
    figures.add_column(justify="left")
    figures.add_column(justify="right", style="bold")
    for label, text, note in key_figures(result):
        figures.add_row(label, text, note)
    parts: list[RenderableType] = [heading, Padding(figures, (1, 0))]
    if result.tail and result.tail.causes:
        told = f"{late_by_cause(result.tail)} (of {several(result.tail.late, 'late event')})"
        parts.append(Padding(Text.assemble(("why late  ", "bold"), told), (0, 0, 1, 0)))
    table = Table("stage", box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("p50", "p90", "p95", "p99", "p99.9", "p99.99", "max"):
        table.add_column(name, justify="right", no_wrap=True)
    for one in result.stages:
        ranks = (one.p50_s, one.p90_s, one.p95_s, one.p99_s, one.p999_s, one.p9999_s, one.max_s)
        table.add_row(STAGES.get(one.stage, one.stage), *map(duration, ranks))
    console.print(Group(*parts, table))
    if result.otherwise:
        told = "; ".join(f"{label}: {text}" for label, text, *_ in answers(result)[2].bars)
        console.print(Text.assemble("\n", ("replica-minutes  ", "bold"), told))
