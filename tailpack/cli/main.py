"""The command line. The module of a command is imported only if the command is run or its help is printed."""

import logging
import os
import re
import signal
import sys
import threading
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final, Never

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command_from_info
from typer.models import CommandInfo

from bench import BenchError
from bench.benchmarks import BENCHMARKS
from contracts.children import STOP_SIGNALS
from tailpack.errors import INTERRUPTED, STOPPED, TailpackError, explain, problems_of

INTERRUPT_DELAY_S: Final = 0.05
_interrupted: Final = threading.Event()

START, OWN, DECIDE, RUN, LIST, KAFKA = "Start", "Your group", "Decide", "Run", "List", "Kafka"
LEARN: Final = "Learn"
DEV: Final = ""
"""Panel of the commands for maintainers. The top-level help does not show it."""
SERVER_OPTION: Final = "--bootstrap-servers kafka:9092"

COMMANDS: Final = (
    # command, definition as "module:function", example, panel
    ("demo", "tailpack.cli.run:demo", "demo --policy keda-hpa", START),
    ("view", "tailpack.view:view", "view --demo", START),
    ("doctor", "tailpack.cli.setup:doctor", f"doctor {SERVER_OPTION}", START),
    ("init", "tailpack.cli.setup:init", "init group shadow.toml", START),
    ("autoscale", "tailpack.cli.group:autoscale", "autoscale greeter.toml", OWN),
    ("shadow", "tailpack.cli.group:shadow", "shadow shadow.toml", OWN),
    ("scaler", "tailpack.cli.group:scaler", "scaler scaler.toml", OWN),
    ("status", "tailpack.cli.holds:status", "status greeter.toml", OWN),
    ("explain", "tailpack.cli.explain:explain", "explain last --run out/demo-20260105-101500", OWN),
    (
        "pause",
        "tailpack.cli.holds:pause",
        "pause greeter.toml --scale-in --for 2h --reason 'move of the database'",
        OWN,
    ),
    ("pin", "tailpack.cli.holds:pin", "pin 6 greeter.toml --for 30m", OWN),
    ("resume", "tailpack.cli.holds:resume", "resume greeter.toml", OWN),
    ("topics create", "tailpack.cli.kafka:create", f"topics create demo {SERVER_OPTION} --namespace mine", OWN),
    ("dlq list", "tailpack.cli.dlq:list_letters", f"dlq list mine.dead.letters {SERVER_OPTION}", OWN),
    ("dlq show", "tailpack.cli.dlq:show", f"dlq show mine.dead.letters 0:17 {SERVER_OPTION}", OWN),
    ("dlq replay", "tailpack.cli.dlq:replay", f"dlq replay mine.dead.letters 0:17 {SERVER_OPTION}", OWN),
    ("record", "tailpack.cli.record:record", f"record {SERVER_OPTION} --topic orders --out orders.parquet", OWN),
    (
        "backtest",
        "tailpack.cli.backtest:backtest",
        "backtest --trace orders.parquet --current 'keda lagThreshold=500' --service-time 5ms",
        DECIDE,
    ),
    ("simulate", "tailpack.cli.simulate:simulate", "simulate w1 --policy keda-hpa", DECIDE),
    ("compare", "tailpack.cli.campaigns:compare", "compare w1 taxi --policy tail-aware --policy linear", DECIDE),
    ("optimum", "tailpack.cli.simulate:optimum", "optimum w1", DECIDE),
    ("run", "tailpack.cli.run:run", "run w1 --set payment.rebalance_protocol=eager", RUN),
    ("report run", "tailpack.cli.report:run", "report out/demo-20260105-101500 --format markdown", RUN),
    ("report compare", "tailpack.cli.report:compare", "report compare out/one out/another", RUN),
    ("list scenarios", "tailpack.cli.catalogue:list_scenarios", "list scenarios --json", LIST),
    ("list policies", "tailpack.cli.catalogue:list_policies", "list policies --json", LIST),
    ("show policy", "tailpack.cli.catalogue:show_policy", "show policy tail-aware", LIST),
    ("show scenario", "tailpack.cli.catalogue:show_scenario", "show scenario w1", LIST),
    ("show setting", "tailpack.cli.catalogue:show_setting", "show setting startup", LIST),
    ("kafka start", "tailpack.cli.kafka:start", "kafka start --brokers 3", KAFKA),
    ("kafka stop", "tailpack.cli.kafka:stop", "kafka stop", KAFKA),
    ("kafka status", "tailpack.cli.kafka:status", "kafka status", KAFKA),
    ("kafka groups", "tailpack.cli.kafka:groups", "kafka groups --describe --all-groups", KAFKA),
    ("lesson list", "tailpack.cli.course:list_lessons", "lesson list", LEARN),
    ("lesson open", "tailpack.cli.course:open_lesson", "lesson open 1", LEARN),
    ("lesson check", "tailpack.cli.course:check_lesson", "lesson check 1 lesson_01.py", LEARN),
    ("dev load", "tailpack.cli.run:load", f"dev load demo {SERVER_OPTION} --namespace mine", DEV),
    ("dev league", "tailpack.cli.course:league", "dev league mine.py --seed SECRET", DEV),
    ("dev jars", "tailpack.cli.run:jars", "dev jars", DEV),
    *((f"dev bench {name}", target, f"dev bench {name} {words}", DEV) for name, (target, words) in BENCHMARKS.items()),
)
GROUPS: Final = {
    # group: (panel, help)
    "topics": (OWN, "Create topics, and print or create the rights (ACLs) on them."),
    "dlq": (OWN, "List, show and replay the records that a service refused (dead letters)."),
    "report": (RUN, "Report on a run, or compare runs. `tailpack report RUN_DIR` is short for `tailpack report run`."),
    "list": (LIST, "List scenarios or policies."),
    "show": (LIST, "Show one policy, scenario or setting."),
    "kafka": (KAFKA, "Start and stop an embedded Apache Kafka; `tailpack run` uses it while it runs."),
    "lesson": (LEARN, "Take the ten lessons of the course on event-driven scaling, and check your answers."),
    "dev": (DEV, "Run benchmarks, and single steps of a run (for maintainers)."),
    "dev bench": (DEV, "Measure this machine."),
}
RENAMED: Final = {
    # former name: present command
    "scenarios": "list scenarios",
    "policies": "list policies",
    "replay": "simulate --from",
    "bench": "dev bench",
    "load": "dev load",
    "jars": "dev jars",
    "league": "dev league",
    "kafka consumer-groups": "kafka groups",
}
"""Former names, which work for one more release."""
PASSED_ON: Final = {"allow_extra_args": True, "ignore_unknown_options": True}
"""Context settings of `kafka groups`, whose options are Kafka's own."""


class Command(TyperCommand):
    """A command whose module is imported only when it runs or prints its help."""

    def __init__(self, path: str, target: str, example: str, panel: str) -> None:
        """target: "module:function". The summary is read from the source text, so that nothing is imported."""
        self.target = target
        hidden = not (panel or path.startswith("dev "))
        summary, example = _summary(*target.split(":")), f"Example: tailpack {example}"
        super().__init__(
            path.rpartition(" ")[2], help=summary, epilog=example, hidden=hidden, rich_help_panel=panel or None
        )

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        """Return the context of the imported command."""
        return self.load().make_context(info_name, args, parent, **extra)

    @cache  # noqa: B019  commands live as long as the process
    def load(self) -> Any:
        """Import the module, and return the command with its options."""
        module, function = self.target.split(":")
        callback = getattr(import_module(module), function)
        if isinstance(callback, type):  # a benchmark
            callback = import_module("tailpack.cli.bench").command(callback)
        info = CommandInfo(self.name, callback=callback, context_settings=PASSED_ON if self.name == "groups" else None)
        info.epilog, info.hidden = self.epilog, self.hidden
        return get_command_from_info(info, pretty_exceptions_short=False, rich_markup_mode="rich")


class Group(TyperGroup):
    """A group of commands. For an unknown name it suggests similar visible commands of all groups."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the named command. Raises click's error with similar names if it does not exist."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            own = {name: name for name, command in self.commands.items() if not command.hidden}
            elsewhere = {path.rpartition(" ")[2]: path for path, *_, panel in COMMANDS if panel and " " in path}
            similar = get_close_matches(args[0], own) or get_close_matches(args[0], elsewhere)
            meant = ", ".join(f"'{(own if name in own else elsewhere)[name]}'" for name in similar)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean {meant}?" if meant else ""))
        return super().resolve_command(ctx, args)


class Report(Group):
    """The group `report`, in which `tailpack report [RUN_DIR]` is short for `tailpack report run [RUN_DIR]`."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Insert `run` if the first argument is not a command."""
        named = bool(args) and (args[0] in self.commands or args[0] in ctx.help_option_names)
        return super().parse_args(ctx, args if named else ["run", *args])


class Root(Group):
    """The top-level command."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        groups: dict[str, Any] = {"": self}
        for path, target, example, panel in COMMANDS:
            above = path.split()[:-1]
            for depth in range(len(above)):
                if (group := " ".join(above[: depth + 1])) not in groups:
                    own, text = GROUPS[group]
                    groups[group] = (Report if group == "report" else Group)(
                        name=above[depth], help=text, epilog=f"Example: tailpack {example}", no_args_is_help=True,
                        rich_help_panel=own or None, hidden=not (own or depth), rich_markup_mode="rich",
                    )  # fmt: skip
                    groups[" ".join(above[:depth])].add_command(groups[group])
            groups[" ".join(above)].add_command(Command(path, target, example, panel))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Replace a former name by the present one, and print that."""
        for former, present in RENAMED.items():
            if args[: (count := len(former.split()))] == former.split():
                if not ctx.resilient_parsing:
                    sys.stderr.write(f"tailpack: `{former}` is now `tailpack {present}`\n")
                rest, is_help = args[count:], not {*args}.isdisjoint(ctx.help_option_names)
                args = [*(word for word in present.split() if not (is_help and word.startswith("-"))), *rest]
        return super().parse_args(ctx, args)


app = typer.Typer(
    cls=Root,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Run event-driven services on Kafka with an autoscaler that decides [b]how many[/b] Payment replicas run and "
    "[b]which partitions each one owns[/b], and measure latency and cost.\n\n"
    "Start with [b]tailpack demo[/b]: it takes two minutes and needs only Java.",
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        sys.stdout.write(f"tailpack {version('tailpack')}\n")
        raise typer.Exit


@app.callback()
def _about(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None: ...


@cache
def _source(module: str) -> str:
    folder = find_spec(module.partition(".")[0]).submodule_search_locations[0]  # type: ignore[union-attr,index]
    return Path(folder, *module.split(".")[1:]).with_suffix(".py").read_text(encoding="utf-8")


def _summary(module: str, function: str) -> str:
    found = re.search(
        rf'^(?:def|class) {function}\(.*?^    """(.*?)(?:"""|\n)', _source(module), re.MULTILINE | re.DOTALL
    )
    return found[1] if found else ""


def main() -> None:
    """Run the command line. The exit status is 2 after an error that the user can fix, and 130 after Ctrl-C."""
    for stop in STOP_SIGNALS:
        signal.signal(stop, _interrupt)
    sys.unraisablehook = _interrupt_again
    _interrupted.clear()
    logging.getLogger("matplotlib").setLevel(logging.ERROR)  # the user cannot act on its warnings
    try:
        status = app(standalone_mode=False)  # otherwise typer would print errors and exit
        if status == INTERRUPTED:  # after Ctrl-C, also if the command saved a partial result
            raise KeyboardInterrupt
        sys.exit(status)
    except (TailpackError, BenchError) as error:
        _fail(f"tailpack: {error}", 2)
    except OSError as error:
        _fail(f"tailpack: {explain(error)}", 2)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail(STOPPED, INTERRUPTED)
    except Exception as error:
        if _interrupted.is_set():  # Ctrl-C during compilation surfaces as a compiler error
            _fail(STOPPED, INTERRUPTED)
        if problems := problems_of(error):
            _fail("\n".join(f"tailpack: {problem}" for problem in problems), 2)
        if (kafka := sys.modules.get("confluent_kafka")) and isinstance(error, kafka.KafkaException):
            _fail(f"tailpack: Kafka: {error.args[0].str()}", 2)
        if not hasattr(error, "format_message"):
            raise
        # an error of click about an option; its message is empty after the help, and pydantic adds a prefix
        message = error.format_message().replace("Value error, ", "")
        if message.startswith("Missing argument 'SCENARIO"):
            message = f"{message.rstrip('.')}: for example w1, taxi; `tailpack list scenarios` lists all"
        _fail(f"tailpack: {message}" if message else "", 2)


def _fail(message: str, status: int) -> Never:
    if message:
        sys.stderr.write(f"{message}\n")
    sys.exit(status)


def _interrupt(*_: object) -> Never:
    _interrupted.set()
    raise KeyboardInterrupt


def _interrupt_again(unraisable: "sys.UnraisableHookArgs") -> None:
    """Send SIGINT again if Python has ignored a KeyboardInterrupt, which it does in finalisers and compiled code."""
    if issubclass(unraisable.exc_type, KeyboardInterrupt):
        again = threading.Timer(INTERRUPT_DELAY_S, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(unraisable)
