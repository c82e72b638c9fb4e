"""Run schedules of faults and check the pipeline's guarantees: `make chaos SEEDS=5`.

The exit status is 1 if a guarantee was violated, and the logs of that schedule remain. It is 130 after Ctrl-C.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, closing
from itertools import count
from pathlib import Path

from chaos_suite.faults import Variant, schedule
from chaos_suite.suite import Pipeline, Schedule, outcome
from chaos_suite.world import Cluster, World


def main() -> int:
    parser = argparse.ArgumentParser(prog="chaos_suite", description=__doc__)
    parser.add_argument("--seeds", type=int, default=5, help="number of schedules that count (5)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first schedule (1); the next ones follow")
    variants = parser.add_argument("--variant", type=Variant, choices=[*Variant], default=Variant.SHORT)
    variants.help = "how schedules are drawn (short)"
    parser.add_argument("--json", type=Path, help="file for the result; standard output without it")
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for the logs of broken schedules (out)")
    given = parser.parse_args()
    done: list[Schedule] = []
    left_out: tuple[str, ...] = ()
    interrupted = False
    with tempfile.TemporaryDirectory(prefix="tailpack-chaos-", ignore_cleanup_errors=True) as folder:
        try:
            with Cluster(Path(folder)) as cluster:
                left_out = tuple(f"{kind}: {why}" for kind, why in cluster.left_out.items())
                for found in run(cluster, count(given.seed), given.out, given.variant):
                    done.append(found)
                    if sum(not schedule.not_done for schedule in done) >= given.seeds or len(done) >= 2 * given.seeds:
                        break
        except KeyboardInterrupt:
            interrupted = True
    result = outcome(done, left_out)
    text = json.dumps(result, indent=1, ensure_ascii=False)
    if given.json:
        given.json.write_text(f"{text}\n", encoding="utf-8")
    sys.stdout.write(f"{text}\n")
    return 130 if interrupted else 1 if result["violations"] else 0


def say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def run(cluster: Cluster, seeds: Iterable[int], out: Path, drawn: Variant) -> Iterator[Schedule]:
    """Yield each schedule. All use the same pipeline, until a schedule has a violation."""
    with ExitStack() as living:
        pipeline: Pipeline | None = None
        for seed in seeds:
            if pipeline is None:
                say("the pipeline starts")
                world = living.enter_context(closing(World(cluster)))
                world.start()
                pipeline = living.enter_context(closing(Pipeline(world)))
            variant = drawn.of(seed)
            faults = schedule(seed, frozenset(cluster.left_out), variant)
            found = pipeline.run(seed, faults, lambda text, seed=seed: say(f"seed {seed}: {text}"), variant)
            if found.violations:
                found.logs = str(out / f"chaos-{seed}")
                world.keep_logs(Path(found.logs))
                lines = (
                    *found.violations,
                    f"logs: {found.logs}",
                    f"repeat: make chaos SEEDS=1 SEED={seed} VARIANT={variant}",
                )
                say("\n  ".join(lines))
                living.close()
                pipeline = None
            yield found


if __name__ == "__main__":
    sys.exit(main())
