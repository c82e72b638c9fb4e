"""`tailpack autoscale`, `shadow` and `scaler`: for the consumer group of your own service."""

from pathlib import Path
from typing import Annotated

import typer

from tailpack.errors import TailpackError

Config = Annotated[
    Path | None, typer.Argument(metavar="[CONFIG.toml]", help="Settings; the environment overrides them.")
]


def autoscale(
    configs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[CONFIG.toml …]",
            help="Settings; the environment overrides them. One file for each group of a chain.",
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


def shadow(config: Config = None) -> None:
    """Watch a group that others scale, and report what the autoscaler would do, until Ctrl-C.

    It reads offsets and members only: it joins no group, commits nothing and writes no record. The last line on
    standard output summarises what would have been saved. Exit status 2: wrong settings.
    """
    from autoscaler.shadow.__main__ import main  # noqa: PLC0415  numpy and clients only where they are needed

    raise typer.Exit(main(config))


def scaler(config: Config = None) -> None:
    """Answer KEDA with the replica count of the newest plan, until Ctrl-C.

    It is KEDA's external scaler, by gRPC on `grpc_port`. It reads the plan topic of the autoscaler and nothing else.
    Exit status 2: wrong settings.
    """
    try:
        from autoscaler.keda.__main__ import main  # noqa: PLC0415  gRPC comes with an extra
    except ImportError as missing:
        raise TailpackError(f"{missing.name} is not installed: in a clone, pip install '.[keda]'") from missing

    raise typer.Exit(main(config))
