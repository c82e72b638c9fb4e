"""A master that is not there is told at once, before any JVM is started."""

import pytest

from report import ReportError
from report.spark.session import check_master


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("spark://127.0.0.1:1", "nothing answers there .Connection refused.; start it"),
        ("k8s://https://127.0.0.1:1", "nothing answers there .Connection refused."),
        ("spark://here", "not an address .it has no port.; as spark://HOST:7077"),
        ("spark://here:port", "not an address"),
        ("nonsense", r"no master of Spark; as local\[2\]"),
    ],
)
def test_what_is_no_master_is_said_in_one_line(master: str, said: str) -> None:
    with pytest.raises(ReportError, match=f"--master {master}: {said}") as refused:
        check_master(master)
    assert "\n" not in str(refused.value)
