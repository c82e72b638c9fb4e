"""`tailpack bench cluster` and `bench keda`: the papers' workloads on a Kubernetes, with the same files and figures as
at home; and how soon pods follow a plan through KEDA, beside a patch of the scale subresource.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer
from rich.console import Console

from bench import results
from tailpack.cli.options import AsJson, Duration, Into, Out, print_json, several, several_policies
from tailpack.cli.progress import progress

if TYPE_CHECKING:
    from bench.cluster import Cluster
    from bench.scenario import Scenario

KIND: Final = Path(__file__).parents[2] / "infra" / "k8s" / "overlays" / "kind"
IMAGE: Final = "tailpack:0.1.0"

Context = Annotated[str, typer.Option(help="Context of the kubeconfig.  [default: its current one]")]
Overlay = Annotated[Path, typer.Option(help="What is applied: a folder of kustomize.")]
Image = Annotated[str, typer.Option(help="Of services, autoscaler and load; the cluster has it, or pulls it.")]
ReportImage = Annotated[str, typer.Option(help="Of the report.")]


def cluster(
    *,
    context: Context = "",
    scenarios: Annotated[str, typer.Option(help="Separated by commas.")] = "w1",
    policies: Annotated[str, typer.Option(help="Separated by commas.")] = "tail-aware",
    runs: Annotated[int, typer.Option(min=1, help="So many of each, with seeds 1, 2, …")] = 1,
    order: Annotated[int, typer.Option(help="Seed of the order in which they take their turns.")] = 1,
    duration: Duration = None,
    overlay: Overlay = KIND,
    image: Image = IMAGE,
    report_image: ReportImage = "tailpack-report:0.1.0",
    as_json: AsJson = False,
    out: Out = Path("out"),
    into: Into = Path("out/cluster"),
) -> None:
    """Run scenarios on a Kubernetes, one after the other, each in a namespace of its own that is gone afterwards.

    Load and report run there as a Job; the files of each run come to --out, the figures to cluster.json in --into. What
    --into has is not measured again, unless it was invalid: the same command goes on where it was interrupted.
    """
    from bench.cluster import Cluster  # noqa: PLC0415  modules that measure only where they are needed
    from bench.scenario import load_scenario, scenario_names  # noqa: PLC0415
    from tailpack.measured_runs import cluster_row, run_all, run_live, shuffled  # noqa: PLC0415

    there = Cluster(context=context, overlay=overlay, images={"tailpack": image, "tailpack-report": report_image})
    console = Console(stderr=as_json)

    def run_one(scenario: str, changes: dict[str, object], out: Path) -> Path:
        return _run(load_scenario(scenario, changes | {"duration_s": duration}), there, out, console)

    questions = shuffled(several(scenarios, scenario_names(), what="scenario"), several_policies(policies), runs, order)
    kept = ("cluster", results.ClusterRow)
    run_all(questions, into, lambda one: run_live(one, out, run_one, row_of=cluster_row), console.rule, answers=kept)
    if as_json:
        print_json({"runs": [row.flat() for row in results.load(*kept, into)]})


def _run(scenario: "Scenario", there: "Cluster", out: Path, console: Console) -> Path:
    """Run it, show its report, return its folder."""
    from bench.cluster import run_there  # noqa: PLC0415
    from report.result import Result  # noqa: PLC0415
    from tailpack.provenance import new_folder  # noqa: PLC0415
    from tailpack.reporting import show  # noqa: PLC0415

    folder = new_folder(out, scenario.name)
    try:
        with progress(scenario.name) as tell:
            run_there(scenario, there, folder, lambda said: tell(said=said))
    finally:
        if not any(folder.iterdir()):
            folder.rmdir()
    show(Result.load(folder), folder, console, as_json=False)
    return folder
