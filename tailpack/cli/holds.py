"""`tailpack pause`, `pin`, `resume` and `status`, by which an operator overrides an autoscaler."""

import os
from getpass import getuser
from pathlib import Path
from socket import gethostname
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
import typer

from contracts.clock import now_us
from contracts.holds import ORDERS, Direction, Hold, hold_key
from contracts.settings import duration_s
from contracts.topics import ScaledGroup, Topic, qualified
from tailpack.cli.options import AsJson, Config, group_settings, print_json, require_topics
from tailpack.errors import TailpackError

if TYPE_CHECKING:
    from autoscaler.live.settings import AutoscalerSettings
    from contracts.connection import Connection

DEADLINE_S: Final = 8.0  # a web page of ours waits 10 s for an answer
PAGE_S: Final = 2.0
MAX_FOR_S: Final = 366 * 86_400.0
For = Annotated[str, typer.Option("--for", metavar="DURATION", help="Duration of the pause, pin or --act.")]
Reason = Annotated[str, typer.Option(help="Reason, shown in the log, the health page and every decision.")]


def pause(
    config: Config = None,
    *,
    scale_in: Annotated[bool, typer.Option("--scale-in", help="Prevent only removals.")] = False,
    scale_out: Annotated[bool, typer.Option("--scale-out", help="Prevent only additions.")] = False,
    act: Annotated[
        Literal["off", "propose"] | None,
        typer.Option(help="Set `act` instead: off, or propose a number for KEDA."),
    ] = None,
    duration: For = "24h",
    reason: Reason = "",
) -> None:
    """Pause the autoscaler of a group: replicas and owners stay as they are. The policy goes on deciding.

    A replica that dies is replaced also during a pause, but not with --act. A restart does not end it.
    """
    if act and (scale_in or scale_out):
        raise TailpackError("--act prevents every change; leave out --scale-in and --scale-out")
    kinds = {(False, False): Direction.ALL, (True, True): Direction.ALL, (True, False): Direction.IN}
    _write(config, Direction(act) if act else kinds.get((scale_in, scale_out), Direction.OUT), duration, reason)


def pin(
    replicas: Annotated[int, typer.Argument(min=1, help="Number of replicas.")],
    config: Config = None,
    *,
    duration: For = "24h",
    reason: Reason = "",
) -> None:
    """Give a group exactly this number of replicas. Partitions may still move between them."""
    _write(config, Direction.PIN, duration, reason, replicas)


def resume(
    config: Config = None,
    *,
    act: Annotated[Literal["on"] | None, typer.Option(help="Set `act` instead: on.")] = None,
    duration: For = "24h",
    reason: Reason = "",
) -> None:
    """End a pause or a pin; or with --act, also if the file of the autoscaler has another value, let it act."""
    _write(config, Direction.ON if act else Direction.NONE, duration, reason)


def status(config: Config = None, *, as_json: AsJson = False) -> None:
    """Print the plan in force for a group, its pause or pin, an order, and the conditions of its autoscaler.

    The conditions come from the page of the running autoscaler, if `http_port` is set.
    """
    from autoscaler.live.hold_reader import HoldReader  # noqa: PLC0415  clients only where they are needed
    from autoscaler.live.plan_log import PlanNotWrittenError, read_plans  # noqa: PLC0415

    connection, settings = _read(config)
    holds = HoldReader(connection, settings)
    hold = holds.current()
    holds.act("")
    holds.close()
    if not holds.is_read:
        raise TailpackError(holds.problem)
    try:
        plan = read_plans(connection, settings, DEADLINE_S).newest
    except PlanNotWrittenError as error:
        raise TailpackError(str(error)) from error
    conditions, group = _conditions(settings), settings.group_in(connection.namespace)
    if as_json:
        print_json({"group": group, "plan": plan, "hold": hold, "order": holds.order, "conditions": conditions})
        return
    held = [one["message"] for one in conditions if one["reason"].endswith(("Paused", "Pinned"))]  # also annotations
    typer.echo(f"{group}: {next((one for one in held if str(hold or '') in one), hold) or 'not paused'}")
    if holds.order:
        typer.echo(f"{group}: {holds.order}")
    for one in conditions:
        about = f": {one['message']}" if one["message"] else ""
        typer.echo(f"{one['type']:<10} {one['status']:<8} {one['reason']} since {one['since']}{about}")
    if plan is None:
        typer.echo("no plan is in force")
    else:
        typer.echo(f"plan {plan.epoch}: {plan.count} replicas ({', '.join(plan.replicas)}); {plan.reason}")


def _conditions(settings: "AutoscalerSettings") -> list[dict[str, str]]:
    """Return the conditions on the page of a running autoscaler; none if it has no page, or does not answer here."""
    import json  # noqa: PLC0415
    from urllib.request import urlopen  # noqa: PLC0415

    host = {"0.0.0.0": "127.0.0.1"}.get(settings.http_host, settings.http_host)  # noqa: S104  # an address to ask
    try:
        if settings.http_port:
            with urlopen(f"http://{host}:{settings.http_port}/status", timeout=PAGE_S) as answer:
                return json.loads(answer.read())["conditions"]  # type: ignore[no-any-return]
    except (OSError, ValueError, KeyError) as error:
        typer.echo(f"# no conditions: {host}:{settings.http_port}/status does not answer ({error})", err=True)
    return []


def _read(config: Path | None) -> "tuple[Connection, AutoscalerSettings]":
    """Return connection and settings of the group. Raises TailpackError without a control topic."""
    connection, settings = group_settings(config)
    require_topics(connection, {qualified(connection.namespace, Topic.HOLDS): 0})
    return connection, settings


def _write(config: Path | None, direction: Direction, duration: str, reason: str, replicas: int = 0) -> None:
    try:
        for_s = duration_s(duration)
    except ValueError as error:
        raise TailpackError(f"--for: {error}") from error
    if not 1 <= for_s <= MAX_FOR_S:
        raise TailpackError(f"--for {duration!r}: must be from 1s to 366d")
    connection, settings = _read(config)
    least, most = settings.min_replicas, settings.max_replicas
    if direction is Direction.PIN and (replicas < least or 0 < most < replicas):
        raise TailpackError(f"{replicas} is outside of min_replicas and max_replicas: {least} to {most or '…'}")
    hold = write_hold(connection, settings, direction, for_s, reason=reason, replicas=replicas)
    typer.echo(f"{settings.group_in(connection.namespace)}: {hold if direction is not Direction.NONE else 'resumed'}")


def _user() -> str:
    try:
        return getuser()
    except (KeyError, OSError):  # in a container the user may have a number only
        return str(os.getuid())


def write_hold(
    connection: "Connection", scaled: ScaledGroup, direction: Direction, for_s: float, *, reason: str, replicas: int = 0
) -> Hold:
    """Write and return a hold of this group; the brokers have stored it. Raises TailpackError."""
    from confluent_kafka import KafkaException, Producer  # noqa: PLC0415  as above

    space, errors = connection.namespace, list[Any](["no answer"])
    at_us, by = now_us(), f"{_user()}@{gethostname()}"
    hold = Hold(
        at_us=at_us, direction=direction, until_us=at_us + round(for_s * 1e6), replicas=replicas, by=by[:200],
        reason=reason[:500],
    )  # fmt: skip
    try:
        producer = Producer(connection.librdkafka() | {"message.timeout.ms": int(DEADLINE_S * 1000), "log_level": 0})
        producer.produce(
            qualified(space, Topic.HOLDS), msgspec.json.encode(hold), partition=0,
            key=hold_key(scaled.group_in(space), scaled.topic_in(space), is_order=direction in ORDERS),
            on_delivery=lambda error, _: errors.__setitem__(0, error and error.str()),
        )  # fmt: skip
        producer.flush(DEADLINE_S)
    except KafkaException as error:
        errors[0] = error.args[0].str()
    if errors[0]:
        raise TailpackError(f"the control topic at {connection.bootstrap_servers} was not written: {errors[0]}")
    return hold
