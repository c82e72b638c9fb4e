"""`tailpack explain`: explain the decisions of an autoscaler."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from autoscaler.page.decisions import NO_CHANGE, Decided, Decisions
from contracts.journal import JournalEntry, PlanAlternative, TickRecord
from report.wording import duration, share
from tailpack.cli.options import AsJson, group_settings, print_json, require_topics
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from autoscaler.policies.tail_aware.plans import Candidate

WOULD: Final = "would: "
"""Begin of the reasons of an autoscaler that only observes."""
DAY_S: Final = 86_400
MAX_ALTERNATIVES: Final = 5
MOVED_LISTED: Final = 8
TAIL: Final = 20_000
"""Records that are read back from the journal topic."""
DEADLINE_S: Final = 15.0
POLL_S: Final = 0.5


def explain(
    which: Annotated[
        str,
        typer.Argument(
            metavar="last|all|EPOCH|HH:MM:SS",
            help="Decision: the last, all, or that of a plan or of a time (UTC).",
        ),
    ] = "last",
    *,
    run: Annotated[
        Path | None, typer.Option("--run", metavar="RUN_DIR", help="Folder of a run or a simulation.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="File of the autoscaler; TAILPACK_… variables override it.")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", help="Print each decision as it is made, until Ctrl-C.")] = False,
    why_not: Annotated[
        int | None, typer.Option("--why-not", metavar="N", min=1, help="Also print the prediction for N replicas.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Explain decisions: what changed, why, which plans were compared, and the effect after ten seconds.

    Without --run, the journal of the group's autoscaler is read from Kafka. Decisions to change nothing are folded.
    """
    if follow and (run is not None or as_json or which != "last"):
        raise TailpackError("--follow prints what a running autoscaler decides; leave out --run, --json and a decision")
    if as_json and why_not is not None:
        raise TailpackError("--json has every compared plan; leave out --why-not")
    if follow:
        _follow(config, why_not)
        return
    entries = _of_run(run) if run is not None else next(_journal(config, has_comparisons=why_not is not None))
    try:
        found = select(explained(entries), which)
    except ValueError as error:
        raise TailpackError(str(error)) from error
    if not found:
        raise TailpackError("the journal has no decision yet")
    if as_json:
        print_json(found)
    else:
        _print(found, why_not, entries)


def _print(found: list[Decided], why_not: int | None, entries: Iterable[JournalEntry]) -> None:
    wanted = {one.at_us for one in found if why_not is not None}
    ticks = (entry for entry in entries if isinstance(entry, TickRecord) and entry.at_us in wanted)
    comparisons = {tick.at_us: tick.comparison for tick in ticks}
    for one in found:
        for text in lines(one, why_not, comparisons.get(one.at_us, "")):
            typer.echo(text)


def _of_run(folder: Path) -> list[JournalEntry]:
    from report.stored import load_journal  # noqa: PLC0415  pyarrow only where it is needed

    if not (found := load_journal(folder)):
        raise TailpackError(f"{folder} has no journal; name the folder of a run, or of `tailpack simulate --out`")
    return found


def _journal(config: Path | None, *, has_comparisons: bool) -> Iterator[list[JournalEntry]]:
    """Yield the entries of the group's journal read so far, again and again. Raises TailpackError."""
    from contextlib import suppress  # noqa: PLC0415

    from msgspec.structs import replace  # noqa: PLC0415

    from contracts.journal import JournalDecoder  # noqa: PLC0415  clients only where they are needed
    from contracts.record_reader import BEGINNING, RecordReader  # noqa: PLC0415
    from contracts.topics import Topic, qualified  # noqa: PLC0415
    from contracts.validation import DECODE_ERRORS  # noqa: PLC0415

    connection, settings = group_settings(config)
    topic = qualified(connection.namespace, Topic.JOURNAL)
    require_topics(connection, {topic: 0})
    key = settings.journal_key(connection.namespace)
    records = RecordReader(connection, {(topic, 0): BEGINNING}, tail=TAIL, wait_ms=250)
    entries, is_read = list[JournalEntry](), False
    decoder, deadline_s = JournalDecoder(), time.monotonic() + DEADLINE_S
    try:
        while True:
            for record in records.read(TAIL, POLL_S):
                with suppress(*DECODE_ERRORS):
                    entry = decoder.decode(record.value or b"") if record.key == key else None
                    if isinstance(entry, TickRecord) and not has_comparisons:  # each may have 300 kB
                        entry = replace(entry, comparison="")
                    entries += [entry] if entry is not None else []
            if (is_whole := records.is_at_end()) or time.monotonic() > deadline_s:
                if not (is_whole or is_read):
                    missing = f"its end was not reached within {DEADLINE_S:g} s, so the newest decisions are missing"
                    typer.echo(f"tailpack: {topic}: {missing}", err=True)
                is_read = True
                yield entries
    finally:
        records.close()


def _follow(config: Path | None, why_not: int | None) -> None:
    shown = -1
    for entries in _journal(config, has_comparisons=why_not is not None):
        found = explained(entries)
        fresh = [one for one in found[:-1] if one.at_us > shown]  # the last one may still be folded
        _print(fresh, why_not, entries)
        shown = fresh[-1].at_us if fresh else shown


def explained(entries: Iterable[JournalEntry]) -> list[Decided]:
    """Return every decision of a journal, oldest first. Consecutive decisions to change nothing are folded."""
    found = Decisions(most=sys.maxsize)
    for entry in entries:
        found.record(entry)
    return [*found.rows.values()]


def lines(one: Decided, why_not: int | None = None, comparison: str = "") -> Iterator[str]:
    """Yield a decision as lines, the first with time and change; also the prediction for `why_not` replicas, if any.

    comparison: what the policy compared, from the journal; empty: unknown.
    """
    before, after = one.replicas
    what = f"{one.action} {before} → {_replicas(after)}" if before != after else one.action
    what = f"would {what}" if one.why.startswith(WOULD) else what
    what = f"no change ×{one.times} at {_replicas(after)}" if one.action == NO_CHANGE else what
    moves = [f"p{partition} → {owner}" for partition, owner in one.moves]
    moved = ", ".join(moves[:MOVED_LISTED]) + (", …" if len(moves) > MOVED_LISTED else "")
    yield f"{clock(one.at_us)}  {what}, plan {one.epoch}" + (f"; {len(moves)} moved: {moved}" if moves else "")
    yield f"  why       {one.why}"
    if one.rails:
        yield f"  rails     {', '.join(one.rails)}; without: {_replicas(one.uncapped)}"
    for plan in one.compared[:MAX_ALTERNATIVES]:
        yield f"  compared  {_prediction(plan)}"
    if why_not is not None:
        yield f"  why not   {compare_again(comparison, why_not) if comparison else explain_why_not(one, why_not)}"
    if one.effect is not None:
        parts = [f"{one.waiting} → {one.effect[0]} events waiting", f"{_replicas(one.effect[1])} ready"]
        parts += [f"{name} ready after {duration(took_s)}" for name, took_s in one.started]
        yield f"  after 10 s  {', '.join(parts)}"
    for problem in one.problems:
        yield f"  problem   {problem}"


def explain_why_not(one: Decided, count: int) -> str:
    """Return the prediction for another replica count beside that of the chosen plan, from the journal."""
    found = next((_prediction(plan) for plan in one.compared if plan.replicas == count), "")
    others = ", ".join(dict.fromkeys(str(plan.replicas) for plan in one.compared)) or "none: it follows a rule"
    chosen = "".join(f"; chosen: {_prediction(plan)}" for plan in one.compared[:1])
    return f"{found or f'{count} was not compared; the counts are {others}'}{chosen}"


def compare_again(comparison: str, count: int) -> str:
    """Return the prediction for `count` replicas beside that of the policy's choice: the policy runs again."""
    from autoscaler.comparisons import decode  # noqa: PLC0415  numpy only where it is needed

    try:
        compared = decode(comparison)
    except ValueError as error:
        return str(error)
    try:
        chosen = compared.choose(compared.plans())
        found = min(compared.plans(count), key=lambda one: one.cost, default=None)
    except (ValueError, ArithmeticError, IndexError) as error:
        return f"the comparison in the journal is damaged ({error})"
    other = _candidate(found) if found else f"{_replicas(count)}: more than the partitions"
    return f"{other}; chosen: {_candidate(chosen)}" if chosen else other


def clock(at_us: int) -> str:
    """Return the time of day in UTC: "14:03:12"."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).strftime("%H:%M:%S")


def select(found: Sequence[Decided], which: str) -> list[Decided]:
    """Return the decisions that a user asks for. Raises ValueError with one sentence.

    which: `last` (the last change and what follows it), `all`, the epoch of a plan, or a time HH:MM:SS in UTC.
    """
    if which == "all" or not found:
        return list(found)
    if which == "last":
        last = max((at for at, one in enumerate(found) if one.action != NO_CHANGE), default=0)
        return list(found[last:])
    if which.isdecimal():
        wanted: Callable[[Decided], bool] = lambda one: one.epoch == int(which)  # noqa: E731
        return _first(found, wanted, f"no decision led to plan {which}")
    try:
        of_day = datetime.strptime(f"1970 {which}", "%Y %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError(f"{which!r} is neither last, all, the epoch of a plan nor a time HH:MM:SS") from None
    last_s = found[-1].last_us // 1_000_000
    wanted_s = last_s - (last_s - of_day.timestamp()) % DAY_S  # the latest such time that the journal reaches
    reach = f"{clock(found[0].at_us)} to {clock(found[-1].last_us)}"
    problem = f"the journal has no decision at or before {which} UTC; it reaches from {reach}"
    return _first(found[::-1], lambda one: one.at_us // 1_000_000 <= wanted_s, problem)


def _first(found: Iterable[Decided], wanted: Callable[[Decided], bool], problem: str) -> list[Decided]:
    for one in found:
        if wanted(one):
            return [one]
    raise ValueError(problem)


def _prediction(plan: PlanAlternative) -> str:
    result = f"{share(plan.in_sla)} in time at cost {plan.cost_s:.1f}"
    return f"{_replicas(plan.replicas)}, {plan.moved} moved: {result}"


def _candidate(one: "Candidate") -> str:
    plan = PlanAlternative(replicas=one.replicas, moved=one.moved, in_sla=one.in_sla, cost_s=one.cost)
    return f"{_prediction(plan)}, {one.late:,.1f} late events"


def _replicas(count: int) -> str:
    return "1 replica" if count == 1 else f"{count} replicas"
