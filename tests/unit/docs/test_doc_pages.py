"""A page is followed block by block, and no block of a tutorial or guide is left out."""

import ast
import re
import tomllib
from pathlib import Path

import pytest
from follow import DOCS, ROOT, TAGS, Reader, blocks

TEXT = """# A page

```toml
# a.toml
port = 8600
```

<!-- sh
touch there
-->

1. Look:

```sh
test -e there && grep -q "port = $(cat port)" a.toml
```

```python status=3
raise SystemExit(3)
```

```sh background
trap 'exit 0' INT; while true; do sleep 0.1; done
```

```sh kubernetes
false
```
"""


def test_a_page_is_followed_from_top_to_bottom_without_the_blocks_of_another_suite(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text(TEXT + "\nhttp://127.0.0.1:8600\n")
    reader = Reader(tmp_path / "page.md", tmp_path, "kafka.example:1", nothing="")
    (tmp_path / "port").write_text(reader.ports["8600"])
    reader.follow(settle_s=0.5)
    assert (tmp_path / "there").exists()


PAGES = [*(DOCS / "tutorials").rglob("*.md"), *(DOCS / "howto").rglob("*.md")]
LANGUAGES = {"sh", "python", "toml", "yaml", "dockerfile", "properties", "json", "text"}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_block_is_left_out_by_its_tag_language_or_indent(page: Path) -> None:
    assert {tag for one in blocks(page) for tag in one.tags if not TAGS.fullmatch(tag)} == set()
    assert {one.language for one in blocks(page)} <= LANGUAGES
    assert re.findall(r"^ +```\w.*", page.read_text("utf-8"), re.MULTILINE) == []


PACKAGES = tomllib.loads((ROOT / "tests" / "unit" / "budgets.toml").read_text("utf-8"))["lines"]


def printed_texts() -> str:
    """Return every string of the product, an f-string without its values, and the script that makes the environment."""
    found = [(ROOT / "infra" / "bootstrap.sh").read_text("utf-8")]
    for file in (file for package in PACKAGES for file in (ROOT / package).rglob("*.py")):
        nodes = ast.walk(ast.parse(file.read_text("utf-8")))
        found += [one.value for one in nodes if isinstance(one, ast.Constant) and isinstance(one.value, str)]
    return "\n".join(found)


def test_the_programs_print_each_line_that_troubleshoot_explains() -> None:
    page = (DOCS / "howto" / "troubleshoot.md").read_text("utf-8")
    lines = re.findall(r"`([^`]+)`", " ".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    parts = {part.strip() for line in lines for part in line.split("…")}
    texts = printed_texts()

    assert len(parts) > 50
    assert {part for part in parts if part not in texts} == set()
