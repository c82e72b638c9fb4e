"""How Sphinx builds the site from the Markdown pages: `make docs`. A broken link or anchor is an error there."""

from pathlib import Path
from typing import Any, Final

SECTIONS: Final = {
    "Lessons": ["docs/lessons"],
    "Tutorials": ["docs/tutorials"],
    "How-to guides": ["docs/howto"],
    "Reference": ["docs/reference"],
    "Explanation": ["docs/explanation"],
    "Results": ["docs/results"],
    "Project": ["", "docs/project", "docs/project/decisions"],
}
"""Heading of the navigation → folders whose pages are below it."""

project = html_title = "tailpack"
root_doc = "docs/index"
include_patterns = ["*.md", "docs/**.md"]
exclude_patterns = [".*", "out", "build", "docs/examples"]
extensions = ["myst_parser"]
myst_heading_anchors = 6  # anchors of headings, as forges make them
nitpicky = True
html_theme = "furo"
html_show_copyright = html_show_sphinx = html_copy_source = False


def add_navigation(app: Any, page: str, source: list[str]) -> None:
    """Append the navigation to the first page, so that no page needs a directive."""
    if page != root_doc:
        return
    for title, folders in SECTIONS.items():
        pages = [
            docname
            for docname in sorted(app.project.docnames)
            if docname.rpartition("/")[0] in folders and docname != root_doc
        ]
        listed = "\n".join(f"/{one}" for one in pages)
        source[0] += f"\n\n```{{toctree}}\n:hidden:\n:caption: {title}\n\n{listed}\n```"


def add_entrance(app: Any, _: Exception | None) -> None:
    """Write a page at the top of the site that leads to the first page."""
    target = f"{root_doc}.html"
    Path(app.outdir, "index.html").write_text(
        f'<meta http-equiv="refresh" content="0; url={target}">', encoding="utf-8"
    )


def setup(app: Any) -> None:
    """Register the above with Sphinx."""
    app.connect("source-read", add_navigation)
    app.connect("build-finished", add_entrance)
