"""The linter of English finds what its rules name, wherever the text is written."""

import pytest
from prose.lint import Block, in_comments, in_docstrings, in_markdown, lint


def found(text: str) -> set[str]:
    return {hit.rule for hit in lint([Block("docs/page.md", 1, text)])}


@pytest.mark.parametrize(
    ("rule", "wrong", "right"),
    [
        ("Words", "The loop mends the plan.", "The loop fixes the plan. It recommends none."),
        (
            "Subject",
            "It stops. Whoever\nkeeps a partition goes on.",
            "Who keeps a partition? Each replica that owns it.",
        ),
        ("EndlessSentence", "one " * 46 + "end.", "It counts a sentence. " * 20),
        ("LongSentence", "one " * 31 + "end.", "one " * 15 + "half. " + "Two " * 15 + "halves."),
        ("Provenance", "Measured at 1a2b3c4 it took 2 s.", "It took 2000000 µs."),
        ("People", "The broker believes it.", "The broker reports it."),
        ("HouseWords", "Both players lose.", "Both contenders lose."),
    ],
)
def test_each_rule_finds_its_error_and_nothing_in_a_sentence_without_it(rule: str, wrong: str, right: str) -> None:
    assert rule in found(wrong)
    assert rule not in found(right)


def lines(blocks: list[Block]) -> list[int]:
    return [hit.line for hit in lint(blocks) if hit.rule == "Words"]


def test_an_error_in_a_page_is_found_at_its_line_but_code_is_not_read() -> None:
    page = "# Told\n\nOne line,\n`told`, told.\n\n| a |\n|---|\n| told |\n\n```\ntold\n```\n- told\n"

    assert lines([*in_markdown("docs/page.md", page)]) == [1, 4, 8, 13]


def test_an_error_in_python_is_found_at_its_line_in_docstrings_of_fields_and_in_comments() -> None:
    source = 'class A:\n    """Is it?\n    Told."""\n    b = 1\t# told\n    """Told."""\n# is not\n# told\ntold = 2\n'

    assert lines([*in_docstrings("a.py", source)]) == [3, 5]
    assert lines([*in_comments("a.py", source)]) == [4, 7]
