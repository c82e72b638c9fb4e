"""Write the generated pages of the documentation: `python docs/generate.py`; `make docs` runs it.

A page's content comes from declarations in the code, and from the TOML files in docs/. `make check` compares the
committed pages with what is generated.
"""

from collections.abc import Callable
from typing import Final

from generators import DOCS, commands, lists, metrics, records, settings

PAGES: Final[dict[str, Callable[[], str]]] = {
    "reference/cli.md": commands.page,
    "reference/settings.md": settings.page,
    "reference/metrics.md": metrics.page,
    "reference/records.md": records.records_page,
    "reference/report-fields.md": records.report_fields_page,
    "reference/scenarios.md": lists.scenarios_page,
    "reference/policies.md": lists.policies_page,
    "project/code-tour.md": lists.code_tour_page,
}
"""Path below docs/ → the function that makes the page."""


if __name__ == "__main__":
    for path, page in PAGES.items():
        (DOCS / path).write_text(page(), encoding="utf-8")
