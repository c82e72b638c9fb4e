"""The result as one HTML file that needs nothing beside it: no network, no script, light and dark, phone to desktop."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from jinja2 import Environment, PackageLoader, StrictUndefined

from bench.report import plots
from bench.report.result import STAGES, Result
from bench.report.terminal import figures
from bench.report.wording import count, duration, moment

PAGE_FILE: Final = "report.html"
WIDE_IN: Final = 9.0
NARROW_IN: Final = 4.2


def write(result: Result, path: Path) -> None:
    """Write the page to `path`; a reader never sees half of it."""
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(html(result), encoding="utf-8")
    temporary.replace(path)


def html(result: Result) -> str:
    """Return the whole page."""
    environment = Environment(
        loader=PackageLoader("bench.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(count=count, duration=duration, moment=moment)
    good = result.valid and result.kept and result.effects.exactly_once == result.effects.orders
    return environment.get_template("page.html.jinja").render(
        result=result,
        css=(Path(__file__).parent / "page.css").read_text(encoding="utf-8"),
        mood="good" if good else "bad",
        badge=_badge(result),
        figures=figures(result),
        spans=STAGES,
        distribution=_both(plots.distribution, result) if result.distribution.share else None,
        timeline=_both(plots.timeline, result),
        provenance=_provenance(result),
    )


def _badge(result: Result) -> str:
    if not result.valid:
        return "not valid"
    if result.effects.exactly_once != result.effects.orders:
        return "integrity broken"
    return "kept" if result.kept else "missed"


def _both(plot, result: Result) -> dict[str, str]:  # type: ignore[no-untyped-def]
    return {"wide": plot(result, WIDE_IN), "narrow": plot(result, NARROW_IN)}


def _provenance(result: Result) -> list[tuple[str, str]]:
    made = result.provenance
    started = datetime.fromtimestamp(made.started_us / 1e6, tz=UTC)
    rows = [
        ("run", result.run),
        ("started", f"{started:%Y-%m-%d %H:%M:%S} UTC, {result.duration_s:g} s of load"),
        ("topology", f"{result.topology}, {result.payment_partitions} payment partitions"),
        ("seed", str(result.seed)),
        ("commit", made.commit),
        ("machine", made.machine),
        (
            "peak memory",
            "" if made.peak_memory_mib is None else f"{made.peak_memory_mib:,.0f} MiB (PSS of all processes)",
        ),
        ("versions", ", ".join(f"{name} {version}" for name, version in made.versions.items())),
    ]
    return [(label, text) for label, text in rows if text]
