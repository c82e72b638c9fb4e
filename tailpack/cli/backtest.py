"""`tailpack backtest`: simulate other scalers on past traffic."""

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
import typer
from rich.console import Console
from rich.table import Table

from contracts.connection import Connection
from report.wording import count, duration, share
from tailpack.cli.options import (
    AsJson,
    Changes,
    Latency,
    Max,
    Percentile,
    Processes,
    Properties,
    Servers,
    ServiceTime,
    Startup,
    check_policy,
    load_with_trace,
    parse_changes,
    print_json,
    slo_changes,
)
from tailpack.cli.progress import matrix_progress, next_step
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from bench.backtest.backtest import Backtest, Line
    from bench.backtest.contenders import Question
    from bench.matrix import Contender
    from report.measures import Interval
    from tailpack.backtest.page import Texts

FAILED_UNDER: Final = 99
"""Exit status if a policy is below --fail-under."""
NOT_MODELLED: Final = "Not modelled: outages of brokers, pauses of a runtime, databases that replicas share."
PAGE: Final = "backtest.html"
PRICE: Final = re.compile(r"(\d+(?:\.\d+)?)\s*/\s*h")


def backtest(
    *,
    current: Annotated[
        str,
        typer.Option(
            metavar="TEXT",
            help="Today's scaler: 'keda lagThreshold=500 max=12', 'hpa averageValue=100', 'static 12', or a policy "
            "with policy.NAME=VALUE. Also protocol=eager|cooperative-sticky|kip848 and heartbeat=3s.",
        ),
    ],
    service_time: ServiceTime,
    trace: Annotated[Path | None, typer.Option(help="CSV or Parquet file, as for `tailpack simulate --trace`.")] = None,
    topic: Annotated[str, typer.Option(help="Record this topic, or import it from --prometheus.")] = "",
    group: Annotated[str, typer.Option(help="Group observed for --service-time auto.")] = "",
    bootstrap_servers: Servers = "",
    client_properties: Properties = "",
    prometheus: Annotated[
        str, typer.Option(metavar="URL", help="Import from this Prometheus; its token: TAILPACK_PROMETHEUS_TOKEN.")
    ] = "",
    query: Annotated[
        str, typer.Option(metavar="PROMQL", help="Rate of each partition; default: of --topic in kafka-exporter.")
    ] = "",
    past: Annotated[str, typer.Option(metavar="DURATION", help="Imported range, up to now: 7d.")] = "7d",
    step: Annotated[str, typer.Option(metavar="DURATION", help="Time between two samples of the import.")] = "30s",
    policies: Annotated[list[str] | None, typer.Option("--policy", help="Policies; default: tail-aware.")] = None,
    goals: Annotated[bool, typer.Option("--goals", help="Also compare the goals savings and reliability.")] = False,
    latency: Latency = "500ms",
    percentile: Percentile = 99.9,
    startup: Startup = "25s",
    most: Max = None,
    price: Annotated[str, typer.Option(metavar="PRICE/h", help="Price of a replica: 0.031/h.")] = "",
    changes: Changes = None,
    fail_under: Annotated[
        float | None, typer.Option(min=0, max=100, help="Exit with status 99 if a smaller share is in time, %.")
    ] = None,
    out: Annotated[Path, typer.Option(help="Folder for the import, runs and backtest.json.")] = Path("out/backtest"),
    processes: Processes = 0,
    as_json: AsJson = False,
) -> None:
    """Simulate past traffic under today's scaler and under other policies, and compare share in time and cost.

    A trace of more than 96 minutes is sampled. If it has only counts, figures are a band:
    from evenly spaced events to one burst each second.
    """
    from bench.backtest.backtest import backtest as answer  # noqa: PLC0415  numpy only where it is needed
    from bench.backtest.contenders import Question  # noqa: PLC0415
    from bench.matrix import Contender  # noqa: PLC0415
    from loadgen.schedule import Spacing  # noqa: PLC0415
    from loadgen.trace import EventTrace  # noqa: PLC0415
    from report import replace_file  # noqa: PLC0415
    from tailpack.backtest.page import html  # noqa: PLC0415
    from tailpack.backtest.traffic import AUTO, Traffic, read_today, within  # noqa: PLC0415

    amount = _price(price)
    contenders = [Contender(policy=check_policy(name)) for name in dict.fromkeys(policies or ["tail-aware"])]
    contenders += _goals() if goals else []
    connection = Connection(bootstrap_servers=bootstrap_servers, client_properties=client_properties)
    traffic = Traffic(
        trace=trace, topic=topic, group=group, connection=connection,
        prometheus=prometheus, query=query, past=past, step=step,
    )  # fmt: skip
    own = parse_changes(changes)
    if "duration_s" in own:
        raise TailpackError("--set duration_s: the whole trace is compared; leave it out, or use a shorter trace")
    given = slo_changes(latency, percentile, None if service_time == AUTO else service_time, startup, None)
    settings = {"autoscaler.rebalance_time_s": 0.05, **own, **given}
    now = read_today(current, settings)
    path, settings["payment.service_time_s"], notes = traffic.read(service_time, out)
    scenario, found = load_with_trace("w1", path, settings, in_parts=True)
    if found is None:
        raise TailpackError(f"{path} has no events")
    if found.partitions is None and not {"partitions", "payment.partitions"} & {*settings}:
        raise TailpackError(f"{path} has totals only; give the number of partitions: --set partitions=12")
    is_exact = isinstance(found, EventTrace)
    spacings = (Spacing.SMOOTH,) if is_exact else (Spacing.SMOOTH, Spacing.BURST)
    question = Question(
        trace=path, policies=contenders, set=settings,
        service_time_s=scenario.payment.service_time_s, latency_target_s=scenario.target.latency_target_s,
        percentile=scenario.target.percentile, spacings=spacings,
        partitions=(partitions := found.partitions or scenario.payment.partitions),
        current=within(now, partitions), most=min(most or partitions, partitions),
    )  # fmt: skip
    if most is not None and most > partitions:
        notes.append(f"--max {most}: {partitions} are used, because more replicas than partitions are idle.")
    with matrix_progress("simulated runs", out) as announce:
        result = answer(question, found, out, processes=processes, announce=announce)
    if not result.lines:
        raise TailpackError(f"no scaler could be simulated: {result.failed[0]}")
    result = msgspec.structs.replace(result, notes=(*notes, *result.notes))
    (out / "backtest.json").write_bytes(msgspec.json.format(msgspec.json.encode(result), indent=1) + b"\n")
    texts = _texts(result, amount, question, band=not is_exact)
    replace_file(out / PAGE, html(result, texts))
    if as_json:
        print_json(result)
    else:
        _print(texts)
        Console().print(f"page: {out / PAGE}", highlight=False, soft_wrap=True)
    least = min(
        (line.in_time[0] for line in result.lines if line.name in {one.label for one in contenders}), default=0.0
    )
    next_step("tailpack shadow shadow.toml", as_json=as_json)
    if fail_under is not None and least < fail_under / 100:
        typer.echo(f"tailpack: {share(least)} in time is less than --fail-under {fail_under:g}", err=True)
        raise typer.Exit(FAILED_UNDER)
    raise typer.Exit(1 if result.failed else 0)


def _goals() -> "list[Contender]":
    from autoscaler.live.settings import GOALS, PolicyOptions  # noqa: PLC0415  clients only where they are needed
    from bench.matrix import Contender  # noqa: PLC0415

    options = {goal: PolicyOptions(goal=goal).options() for goal, factor in GOALS.items() if factor != 1}
    return [
        Contender(policy="tail-aware", name=f"tail-aware, {goal}", set={f"policy.{key}": n for key, n in own.items()})
        for goal, own in options.items()
    ]


def _price(text: str) -> float | None:
    match = PRICE.fullmatch(text)
    if text and not match:
        raise TailpackError(f"--price {text!r}: must be an amount for each hour, for example 0.031/h")
    return float(match[1]) if match else None


def _texts(result: "Backtest", price: float | None, question: "Question", *, band: bool) -> "Texts":
    """Return the texts of the result, for terminal and page."""
    from tailpack.backtest.page import Texts, clock  # noqa: PLC0415  only with a result

    sampled = f", {duration(result.simulated_s)} of it simulated" if result.simulated_s < result.duration_s else ""
    load = f"{count(result.events)} events, {result.partitions} partitions"
    title = f"{result.trace}: {duration(result.duration_s)}{sampled}, {load}"
    cost = [f"cost at {price:g}/h"] if price is not None else []
    packed = ("each second packed alone", result.packed_replica_hours)
    name, hours = ("lower bound", result.bound.replica_hours) if result.bound else packed
    priced = [] if price is None else [_amount(hours * price)]
    notes = ["Bands: events spaced evenly … in one burst each second; the trace does not show which."] if band else []
    if worst := result.worst:
        notes.append(
            f"Worst time of {worst.name}: {clock(worst.begin_s)} to {clock(worst.end_s)} after the start, "
            f"{share(worst.in_time)} in time; up to {worst.peak_events_per_s:,} events/s after a mean of "
            f"{worst.before_events_per_s:,.0f}."
        )
    if result.bound:
        notes.append(f"Lower bound: no policy that meets the SLO costs less; proven by {result.bound.method}.")
    return Texts(
        title=title,
        conditions=f"SLO: {100 * question.percentile:g} % within {duration(question.latency_target_s)}. "
        f"A replica needs {duration(result.service_time_s)} for an event.",
        columns=["", "in time", "late events/day", "replica-hours", *cost, "cost against today"],
        rows=[*(_cells(line, price) for line in result.lines), [name, "", "", _amount(hours), *priced, ""]],
        notes=[*notes, *result.notes, *(f"failed: {why}" for why in result.failed), NOT_MODELLED],
    )


def _print(texts: "Texts") -> None:
    console = Console()
    table = Table(*texts.columns, box=None, title=texts.title)
    for column in table.columns[1:]:
        column.justify, column.min_width = "right", max(map(len, str(column.header).split()))
    table.columns[0].overflow = "fold"
    for row in texts.rows:
        table.add_row(*row)
    console.print(table)
    for text in texts.notes:
        console.print(text, highlight=False, markup=False, style="dim")


def _cells(line: "Line", price: float | None) -> list[str]:
    cost = [] if price is None else [_band([price * value for value in line.replica_hours], _amount)]
    shares = list(dict.fromkeys(map(share, line.in_time)))
    late, hours = _band(line.late_per_day, "{:,.0f}".format), _band(line.replica_hours, _amount)
    return [line.name, " … ".join(shares), late, hours, *cost, _change(line.cost_change)]


def _amount(value: float) -> str:
    return f"{value:,.2f}" if value >= 1 else f"{value:.3g}"


def _band(values: Iterable[float], words: Callable[[float], str]) -> str:
    return " … ".join(dict.fromkeys(map(words, values)))


def _change(change: "Interval | None") -> str:
    if change is None:
        return "–"
    return f"{change.mean:+.1%} ({change.low:+.1%} … {change.high:+.1%})"
