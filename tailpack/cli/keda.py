"""`tailpack bench keda`: how soon pods follow a plan through KEDA, beside a patch of the scale subresource."""

from typing import Annotated

import typer
from rich.console import Console

from tailpack.cli.options import AsJson, print_json
from tailpack.cli.progress import progress
from tailpack.errors import TailpackError


def keda(
    *,
    context: Annotated[str, typer.Option(help="Context of the kubeconfig.  [default: its current one]")] = "",
    address: Annotated[str, typer.Option(help="Address of this machine as pods reach it.  [default: found out]")] = "",
    as_json: AsJson = False,
) -> None:
    """Seconds from a plan until its pods are ready, through KEDA and the HPA of a cluster; and by a direct patch.

    Needs a kubeconfig, KEDA in that cluster, and pods that can reach this machine. Makes a namespace and removes it.
    """
    try:
        from bench.keda import connect, measure  # noqa: PLC0415  packages of an extra
    except ImportError as missing:
        raise TailpackError(f"{missing.name} is not installed: pip install 'tailpack[keda]'") from missing
    from tailpack.local.topics import own_kafka  # noqa: PLC0415

    api = connect(context or None)
    with progress("keda") as tell, own_kafka("keda", 4) as connection:
        found = measure(api, connection, address=address, announce=lambda said: tell(said=said))
    if as_json:
        print_json(found)
    else:
        said = (
            f"through KEDA and the HPA {found.reaction_p50_s:.1f} s at the median ({found.reaction_max_s:.1f} s at "
            f"most, {found.n} HPAs), by a direct patch {found.direct_reaction_p50_s:.1f} s, "
            f"simulated {found.simulated_reaction_p50_s:.1f} s"
        )
        Console().print(said, highlight=False, soft_wrap=True)
