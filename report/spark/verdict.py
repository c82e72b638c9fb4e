"""A result in words: does the measurement stand, and was the promise kept."""

from typing import Final

from report.result import Effects, Lateness
from report.run_info import RunInfo
from report.wording import duration, several, share

LATENESS_SHARE: Final = 0.05
"""Of the latency target; a generator whose p99 is later than that measures itself."""


def problems(run: RunInfo, events: int, refused: int, lateness: Lateness) -> tuple[str, ...]:
    """Return why the measurement does not stand, one clause each; empty when it does.

    events, refused: distinct events found in the topics; they do not overlap.
    """
    found = []
    if events == 0:
        found.append(f"every one of {refused:,} events was refused")
    allowed_s = LATENESS_SHARE * run.latency_target_s
    if lateness.p99_s is not None and lateness.p99_s > allowed_s:
        found.append(
            f"the generator was late: p99 of placed − intended is {duration(lateness.p99_s)}, "
            f"allowed are {duration(allowed_s)} (5 % of the target)"
        )
    if run.interrupted:
        found.append("the run was interrupted")
    if events + refused < run.events_scheduled:
        found.append(f"only {events + refused:,} of {run.events_scheduled:,} scheduled events were produced")
    return tuple(found)


def sentence(
    run: RunInfo,
    *,
    events: int,
    in_sla: float,
    lost: int,
    effects: Effects | None,
    replica_minutes: float | None,
    problems: tuple[str, ...],
    suspect: tuple[str, ...] = (),
) -> str:
    """Return the verdict in one sentence, validity first. suspect: what must not be in a run, beside losses.

    effects: None where nobody counted them.
    """
    kept = "kept" if in_sla >= run.percentile else "missed"
    where = " in simulation" if run.world == "simulated" else ""
    promise = (
        f"promise {kept}{where}: {share(in_sla)} of {events:,} events were done within "
        f"{duration(run.latency_target_s)} (promised {share(run.percentile)})"
    )
    cost = "" if replica_minutes is None else f" for {replica_minutes:.2f} replica-minutes"
    beside = [what for what in suspect if not what.endswith(" lost")]
    marked = f"; marked as suspect: {', '.join(beside)}" if beside else ""
    body = promise + cost + "; " + integrity(lost, effects) + marked + "."
    if problems:
        return f"Not a valid measurement, because {' and '.join(problems)}; as measured, {body}"
    return body[0].upper() + body[1:]


def integrity(lost: int, effects: Effects | None) -> str:
    """Return what became of the orders, in words."""
    loss = "nothing was lost" if lost == 0 else f"{several(lost, 'event')} lost"
    if effects is None:
        return loss
    if effects.exactly_once == effects.orders:
        return f"{loss}, every order had each of its effects exactly once"
    wrong = [f"{several(effects.missing, 'order')} without all effects"] if effects.missing else []
    wrong += [f"{several(effects.doubled, 'order')} with an effect twice"] if effects.doubled else []
    return ", ".join([loss, *wrong])
