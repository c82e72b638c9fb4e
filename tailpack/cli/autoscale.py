"""`tailpack autoscale`: the live autoscaler for any consumer group that follows plans."""

from pathlib import Path
from typing import Annotated

import typer


def autoscale(
    configs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[CONFIG.toml …]",
            help="Settings; those of the environment stand above. Of several groups one behind the other: a file each.",
        ),
    ] = None,
    *,
    stop_replicas: Annotated[
        bool, typer.Option("--stop-replicas", help="Stop the replicas that an earlier autoscaler left, and end.")
    ] = False,
) -> None:
    """Scale the group of your own service, or a chain of groups as one, until Ctrl-C, which stops the replicas too.

    SIGTERM leaves them serving.
    Exit status 2: wrong settings, 3: another autoscaler has taken the group over, 4: Kafka or a topic is not there,
    5: replicas cannot be started or looked after.
    """
    from autoscaler.live.start import autoscale as run  # noqa: PLC0415  numpy and clients only where they are needed

    raise typer.Exit(run(*(configs or ()), only_stop=stop_replicas))
