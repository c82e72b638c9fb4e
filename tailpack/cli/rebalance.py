"""`tailpack report rebalance-times`: what runs have shown of rebalances, for the next autoscaler to begin with."""

from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from tailpack.errors import TailpackError


def teach(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN_DIR …", help="Runs that have a report; the oldest first.")],
    *,
    state_dir: Annotated[
        Path, typer.Option("--to", metavar="STATE_DIR", help="State folder of the autoscaler that shall know it.")
    ],
    namespace: Annotated[str, typer.Option(help="Of that autoscaler's topics and group, where it has one.")] = "",
    replace: Annotated[bool, typer.Option("--replace", help="Forget what an autoscaler has learned there.")] = False,
) -> None:
    """Write the rebalance times of runs where an autoscaler starts from: it plans for them at once.

    All runs must have had one delivery, which is the autoscaler's too: another's rebalances say nothing of it.
    """
    from autoscaler.live.state_dir import (  # noqa: PLC0415  only where it is needed
        FILE,
        LearnedTimes,
        StateDirTakenError,
        only_one,
    )
    from bench.lessons import lessons  # noqa: PLC0415
    from contracts.topics import Group, qualified  # noqa: PLC0415
    from report.result import RebalanceRound  # noqa: PLC0415
    from tailpack.reporting import kept_result  # noqa: PLC0415

    deliveries: set[str] = set()
    rounds: list[RebalanceRound] = []
    for run in runs:
        found = kept_result(run).rebalances
        if found is None:
            raise TailpackError(f"{run}: its report knows of no rebalances; make it again: tailpack report {run}")
        deliveries.add(found.delivery)
        rounds += found.rounds
    if len(deliveries) > 1:
        raise TailpackError(f"these runs had several deliveries ({', '.join(sorted(deliveries))}); name those of one")
    learned = lessons(rounds)
    if not learned.rounds:
        raise TailpackError("in none of these rebalances had an event to wait, so there is nothing to learn")
    group = f"{qualified(namespace, Group.PAYMENT)}, {deliveries.pop()}"
    try:
        with only_one(state_dir):
            if (state_dir / FILE).exists() and not replace:
                raise TailpackError(f"{state_dir / FILE}: an autoscaler has learned there; --replace forgets that")
            LearnedTimes(state_dir, group=group, say=_refuse).save(learned, at_once=True)
    except StateDirTakenError as taken:
        raise TailpackError(str(taken)) from taken
    except OSError as refused:
        raise TailpackError(f"{state_dir}: cannot be written ({refused.strerror or refused})") from refused
    Console(stderr=True).print(
        f"written: {learned.rounds} of {len(rounds)} rebalances, for {group}: {state_dir / FILE}",
        highlight=False, soft_wrap=True,
    )  # fmt: skip


def _refuse(sentence: str) -> NoReturn:
    raise TailpackError(sentence)
