"""The command line: `tailpack --help`. Every command stands here, with its group and an example."""

import os
import signal
import sys
import threading
from collections.abc import Callable
from typing import Annotated, Any, Final, Never

import typer
from confluent_kafka import KafkaException
from rich.console import Console

from bench import BenchError
from contracts.children import STOPPING
from contracts.validation import InvalidSettingsError
from tailpack.cli import (
    bench,
    campaigns,
    catalogue,
    chaos,
    cluster,
    grouping,
    handover,
    kafka,
    report,
    run,
    simulate,
    sla,
    studies,
    taxi,
    topics,
)
from tailpack.errors import INTERRUPTED, STOPPED, TailpackError, explain

FINALISED_S: Final = 0.05
_interrupted: Final = threading.Event()

LIVE, SIMULATED, REPORTS, CHOICE, STUDIES = (
    "Run on Kafka",
    "Simulate, in seconds",
    "Report",
    "What there is to choose from",
    "Measure and reproduce",
)

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Event-driven services on Kafka, an autoscaler that decides [b]how many[/b] Payment replicas run and "
    "[b]which partition each one owns[/b], and the measurements that show what that is worth.\n\n"
    "Start with [b]tailpack demo[/b]: two minutes, nothing to set up but Java.",
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


def _group(name: str, panel: str, text: str, example: str, **how: Any) -> typer.Typer:
    group = typer.Typer(no_args_is_help=True, help=text, epilog=f"Example: {example}", **how)
    app.add_typer(group, name=name, rich_help_panel=panel)
    return group


def _add(into: typer.Typer, name: str, command: Callable[..., None], example: str, panel: str | None = None) -> None:
    own = {"allow_extra_args": True, "ignore_unknown_options": True} if command is kafka.consumer_groups else None
    into.command(name, epilog=f"Example: {example}", rich_help_panel=panel, context_settings=own)(command)


_add(app, "demo", run.demo, "tailpack demo --policy keda-hpa", LIVE)
_add(app, "run", run.run, "tailpack run w1 --set payment.delivery=eager", LIVE)
_add(app, "autoscale", run.autoscale, "tailpack autoscale greeter.toml", LIVE)
KAFKA = _group(
    "kafka", LIVE, "An embedded Apache Kafka for your own experiments; `tailpack run` uses it.", "tailpack kafka start"
)
_add(KAFKA, "start", kafka.start, "tailpack kafka start --brokers 3")
_add(KAFKA, "stop", kafka.stop, "tailpack kafka stop")
_add(KAFKA, "status", kafka.status, "tailpack kafka status")
_add(KAFKA, "consumer-groups", kafka.consumer_groups, "tailpack kafka consumer-groups --describe --all-groups")
REACH = "--bootstrap-servers kafka:9092 --namespace mine"
CREATE = f"tailpack topics create demo {REACH}"
TOPICS = _group(
    "topics", LIVE, "Topics, and the rights on them: of a run put together by hand, or of a group of your own.", CREATE
)
_add(TOPICS, "create", topics.create, CREATE)
_add(app, "load", run.load, f"tailpack load demo {REACH}", LIVE)
_add(
    app,
    "record",
    run.record,
    "tailpack record --bootstrap-servers kafka:9092 --topic orders --out orders.parquet",
    LIVE,
)
_add(app, "jars", run.jars, "tailpack jars kafka", LIVE)

_add(app, "simulate", simulate.simulate, "tailpack simulate w1 --policy keda-hpa", SIMULATED)
_add(app, "compare", campaigns.compare, "tailpack compare --scenarios w1,taxi --policies tail-aware,linear", SIMULATED)
_add(app, "sweep", campaigns.sweep, "tailpack sweep startup --scenarios taxi", SIMULATED)
_add(app, "optimum", simulate.optimum, "tailpack optimum w1", SIMULATED)
_add(app, "replay", simulate.replay, "tailpack replay out/demo-20260105-101500 --policy linear", SIMULATED)

REPORT = _group(
    "report",
    REPORTS,
    "Report on a run, or compare runs. `tailpack report RUN_DIR` is short for `tailpack report run RUN_DIR`.",
    "tailpack report out/demo-20260105-101500",
    cls=report.RunUnlessNamed,
)
_add(REPORT, "run", report.run, "tailpack report out/demo-20260105-101500 --format markdown")
_add(REPORT, "compare", report.compare, "tailpack report compare out/one out/another")
_add(REPORT, "rebalance-times", report.rebalance_times, "tailpack report rebalance-times out/one --to state/autoscaler")
_add(app, "sla", sla.sla, "tailpack sla out/demo-20260105-101500 --window 10", REPORTS)

_add(app, "scenarios", catalogue.scenarios, "tailpack scenarios --json", CHOICE)
_add(app, "policies", catalogue.policies, "tailpack policies tail-aware", CHOICE)
_add(app, "settings", catalogue.settings, "tailpack settings > settings.md", CHOICE)
_add(app, "metrics", catalogue.metrics, "tailpack metrics > metrics.md", CHOICE)

_add(app, "paper", studies.paper, "tailpack paper --quick", STUDIES)
PACKING = _group(
    "packing",
    STUDIES,
    "Packing heuristics: what they move, what they cost, how long events wait.",
    "tailpack packing compare --quick",
)
_add(PACKING, "compare", studies.packing_compare, "tailpack packing compare --quick")
GROUPING = _group(
    "grouping",
    STUDIES,
    "Which partition an event goes to: how even that makes the load, and what it costs.",
    "tailpack grouping compare --quick",
)
_add(GROUPING, "compare", grouping.compare, "tailpack grouping compare --quick")
_add(app, "taxi", taxi.taxi, "tailpack taxi yellow_tripdata_2013-01.parquet --out taxi.csv", STUDIES)
_add(app, "chaos", chaos.chaos, "tailpack chaos --schedules 20 --seed 7", STUDIES)
BENCH = _group(
    "bench",
    STUDIES,
    "Measure this machine. Figures go to bench/reference, tables to the docs.",
    "tailpack bench simulator --quick",
)
_add(BENCH, "pipeline", bench.pipeline, "tailpack bench pipeline --quick --stages shipment")
_add(BENCH, "startup", bench.startup, "tailpack bench startup")
_add(BENCH, "report", bench.report, "tailpack bench report --events 100000 --json")
_add(BENCH, "simulator", bench.simulator, "tailpack bench simulator --quick")
_add(BENCH, "decisions", bench.decisions, "tailpack bench decisions")
_add(BENCH, "live-scale", bench.live_scale, "tailpack bench live-scale --quick")
_add(BENCH, "loadgen", bench.loadgen, "tailpack bench loadgen --quick --json")
_add(BENCH, "targets", campaigns.targets, "tailpack bench targets --from out/figures")
_add(BENCH, "fronts", campaigns.fronts, "tailpack bench fronts --worlds spike,square-5 --seeds 5")
_add(BENCH, "drawn", campaigns.drawn, "tailpack bench drawn --worlds 10")
_add(BENCH, "sensitivity", campaigns.sensitivity, "tailpack bench sensitivity --numbers price,GAIN")
_add(BENCH, "classes", campaigns.classes, "tailpack bench classes --loads w1 --seeds 5")
_add(BENCH, "handover", handover.handover, "tailpack bench handover --quick")
_add(BENCH, "failover", handover.failover, "tailpack bench failover --quick")
_add(BENCH, "cluster", cluster.cluster, "tailpack bench cluster --scenarios w1 --policies tail-aware,linear")


def main() -> None:
    """Run the command line; errors the user can mend are one line and exit status 2, Ctrl-C is one and 130."""
    for stop in STOPPING:
        signal.signal(stop, _interrupt)
    sys.unraisablehook = _dropped
    _interrupted.clear()
    try:
        status = app(standalone_mode=False)  # without its standalone mode, typer returns a command's exit status
        if status == INTERRUPTED:  # typer has made that of a KeyboardInterrupt, or a command that kept its result has
            raise KeyboardInterrupt
        sys.exit(status)
    except (TailpackError, BenchError, InvalidSettingsError) as wrong:
        problems = wrong.problems if isinstance(wrong, InvalidSettingsError) else [str(wrong)]
        _fail("\n".join(f"tailpack: {problem}" for problem in problems), 2)
    except KafkaException as failed:
        _fail(f"tailpack: Kafka: {failed.args[0].str()}", 2)
    except OSError as refused:
        _fail(f"tailpack: {explain(refused)}", 2)
    except typer.Exit as done:
        sys.exit(done.exit_code)
    except (KeyboardInterrupt, typer.Abort):
        _fail(STOPPED, INTERRUPTED)
    except Exception as wrong:
        if _interrupted.is_set():  # the compiler makes another error of it
            _fail(STOPPED, INTERRUPTED)
        if not hasattr(wrong, "format_message"):
            raise
        # click's own: a wrong option or argument; empty after the help; with pydantic's words before what is wrong
        message = wrong.format_message().replace("Value error, ", "")
        _fail(f"tailpack: {message}" if message else "", 2)


def _fail(message: str, status: int) -> Never:
    if message:
        Console(stderr=True).print(message, highlight=False, soft_wrap=True, markup=False)
    sys.exit(status)


def _interrupt(*_: object) -> Never:
    _interrupted.set()
    raise KeyboardInterrupt


def _dropped(what: "sys.UnraisableHookArgs") -> None:
    """Interrupt once more, a moment later, where Python drops it: in what finalises objects, as the compiler has."""
    if issubclass(what.exc_type, KeyboardInterrupt):
        again = threading.Timer(FINALISED_S, os.kill, (os.getpid(), signal.SIGINT))
        again.daemon = True
        again.start()
    else:
        sys.__unraisablehook__(what)
