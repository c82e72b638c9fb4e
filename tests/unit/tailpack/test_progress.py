"""What a command says of how far it is where no bar moves."""

import pytest

from tailpack.cli import progress as shown


@pytest.mark.parametrize(
    ("total", "said"), [(3000, "reading: 1,501 of 3,000 after 0 s"), (None, "reading: 1,501 after 0 s")]
)
def test_a_log_has_lines(
    total: int | None, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shown, "LINE_S", 0.0)
    with shown.progress("reading", total) as tell:
        tell(completed=1500)
        tell(advance=1)
    assert any(line.startswith(said) for line in capsys.readouterr().err.splitlines())


def test_a_log_has_few_lines(capsys: pytest.CaptureFixture[str]) -> None:
    with shown.progress("reading", 3000) as tell:
        for _ in range(100):
            tell(advance=1)
    assert "reading:" not in capsys.readouterr().err
