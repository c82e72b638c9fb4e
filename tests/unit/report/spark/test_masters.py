"""A master that does not exist is reported at once, before a JVM starts."""

import pytest

from report import ReportError
from report.spark.session import check_master


@pytest.mark.parametrize(
    ("master", "message"),
    [
        ("spark://127.0.0.1:1", "no master answers .*Connection refused.; start it"),
        ("spark://here", "here is not an address; example: spark://HOST:7077"),
        ("spark://here:port", "here:port is not an address"),
        ("nonsense", r"not a master of Spark; examples: local\[2\]"),
    ],
)
def test_an_invalid_master_is_refused_in_one_line(master: str, message: str) -> None:
    with pytest.raises(ReportError, match=f"--master {master}: {message}") as refused:
        check_master(master)
    assert "\n" not in str(refused.value)
