"""`tailpack autoscale`, `shadow` and `scaler`, which are commands for the consumer group of your own service."""

from pathlib import Path
from typing import Annotated

import typer

from tailpack.cli.options import Config


def autoscale(
    configs: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[CONFIG.toml …]",
            help="File of settings; TAILPACK_… variables override it. For a chain, one file per group.",
        ),
    ] = None,
    *,
    stop_replicas: Annotated[
        bool, typer.Option("--stop-replicas", help="Stop the replicas of an earlier autoscaler, and exit.")
    ] = False,
) -> None:
    """Scale the consumer group of your service, or a chain of groups, until Ctrl-C.

    Ctrl-C stops the replicas too; SIGTERM leaves them running. Exit status 2: invalid settings, 3: another autoscaler
    took over the group, 4: Kafka is not reachable or a topic is missing, 5: replicas cannot be started or observed.
    """
    from autoscaler.live.start import autoscale as run  # noqa: PLC0415  numpy and clients only where they are needed

    raise typer.Exit(run(*(configs or ()), only_stop=stop_replicas))


def shadow(config: Config = None) -> None:
    """Watch a group that another scaler manages, and report what the autoscaler would do, until Ctrl-C.

    This is `autoscale` with `act = "off"`. It only reads offsets and members: it joins no group, commits nothing and
    writes no plan. The last line on standard output summarises the savings. Exit status 2: invalid settings.
    """
    from autoscaler.live.start import autoscale as run  # noqa: PLC0415  as above

    raise typer.Exit(run(*filter(None, [config]), act="off"))


def scaler(config: Config = None) -> None:
    """Serve the replica count of the newest plan to KEDA, until Ctrl-C.

    It is an external scaler of KEDA, with gRPC on `grpc_port`. It only reads the plan topic of the autoscaler.
    Exit status 2: invalid settings.
    """
    from autoscaler.keda.__main__ import main  # noqa: PLC0415  gRPC comes with an extra

    raise typer.Exit(main(config))
