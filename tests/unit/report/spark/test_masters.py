"""A master that does not exist is reported at once, before any JVM is started."""

import pytest

from report import ReportError
from report.spark.session import check_master


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("spark://127.0.0.1:1", "no master answers .*Connection refused.; start it"),
        ("spark://here", "here is no address; an example is spark://HOST:7077"),
        ("spark://here:port", "here:port is no address"),
        ("nonsense", r"Spark has no such master; examples: local\[2\]"),
    ],
)
def test_what_is_no_master_is_refused_in_one_line(master: str, said: str) -> None:
    with pytest.raises(ReportError, match=f"--master {master}: {said}") as refused:
        check_master(master)
    assert "\n" not in str(refused.value)
