"""Pairs of live runs of a chain: a Kafka of its own for each run, and each pair kept as soon as it is there."""

import dataclasses
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench import results
from bench.live_chain.pairs import NAME, ChainLiveRow, LiveWay, question
from bench.live_chain.run import LiveChain, live_stages
from bench.scenario import Scenario
from bench.simulation.chain import run_chain
from bench.simulation.sent import sent_by
from contracts.topics import ScaledGroup
from loadgen.trace import EventTrace, Trace
from tailpack.cli.options import load_scenario_with
from tailpack.cli.progress import progress
from tailpack.local.topics import create_control_topics, own_kafka
from tailpack.provenance import origin

WAYS = {"blind": False, "as_one": True}


def live_pairs(
    scenarios: Sequence[str], runs: int, trace: Path | None, into: Path | None, announce: Callable[[str], None]
) -> list[ChainLiveRow]:
    """Return the pairs with seeds 1 … `runs` of each scenario, those that `into` holds and those that were run now.

    Raises BenchError where a run does not come to its end, InvalidSettingsError for a scenario that is not good.
    """
    kept = results.load(NAME, ChainLiveRow, into) if into else []
    known = {question(row.result): row.result for row in kept if row.result.valid}
    for name in scenarios:  # every mistake before the first run
        live_stages(load_scenario_with(name, trace, {})[0])
    rows = []
    for seed in range(1, runs + 1):
        for name in scenarios:
            title = f"{Path(name).stem} {trace.stem}" if trace else Path(name).stem
            if (title, seed) in known:
                rows.append(known[title, seed])
                continue
            ways = {}
            for way in WAYS if seed % 2 else reversed(WAYS):
                announce(f"{title}, {way.replace('_', ' ')}, seed {seed} of {runs}")
                ways[way] = _run(*load_scenario_with(name, trace, {"chain.coordinated": WAYS[way], "seed": seed}))
            rows.append(ChainLiveRow(scenario=title, seed=seed, **ways))
            if into:
                results.keep(NAME, rows[-1:], origin(), into, question)
    return rows


def _run(scenario: Scenario, played: Trace | EventTrace | None) -> LiveWay:
    with (
        progress(scenario.name) as tell,
        own_kafka("chain", scenario.payment.partitions, scenario.pipeline_partitions) as connection,
        tempfile.TemporaryDirectory() as folder,
    ):
        chain = LiveChain(scenario, connection, Path(folder))
        for namespace in chain.behind:
            create_control_topics(dataclasses.replace(connection, namespace=namespace), ScaledGroup(), 0)
        live, sent, repeated = chain.run(lambda said: tell(said=said))
    return LiveWay(
        live=live,
        simulated=run_chain(scenario, sent_by(scenario, played))[2],
        valid=sent.valid,
        lateness_p99_s=None if sent.lateness_p99_us is None else sent.lateness_p99_us / 1e6,
        repeated=repeated,
    )
