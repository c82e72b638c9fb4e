"""The live page of a run counts what its report counts."""

import json
import re
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from http_answer import http_answer
from kafka_helpers import wait_for
from live_run import start_run

pytestmark = pytest.mark.kafka
OTHERS = ["tail-aware", "keda-hpa", "overprovisioned"]


def test_the_page_of_a_run_ends_with_the_totals_of_its_report(kafka: str, tmp_path: Path) -> None:
    run = start_run(tmp_path, "smoke", "--bootstrap-servers", kafka)
    assert run.process.stderr is not None
    address = next(found[1] for line in run.process.stderr if (found := re.search(r"live page (http\S+)", line)))

    def last() -> dict[str, Any] | None:
        with urllib.request.urlopen(f"{address}/live/state", timeout=30) as answer:  # noqa: S310
            found = json.load(answer)
        return found if found["phase"] == "writing the report" else None

    assert http_answer(f"{address}/live/control", b"{}")[0] == 405
    assert 'id="controls"' not in http_answer(address)[1]
    shown = wait_for(last, "the end of the load", deadline_s=150)
    status, result = run.ended()
    assert status == 0
    assert shown["done"] == result["events"]
    assert shown["in_time"] / shown["done"] == pytest.approx(result["in_sla"])
    owners = {row[0] for row in shown["partitions"].values()}
    assert owners <= shown["replicas"].keys()
    assert {"order", "payment", "shipment", "notification"} >= shown["stages"].keys() >= {"payment"}
    assert shown["decisions"]
    others = [one["policy"] for one in shown["others"]]  # of a busy machine: only the first, or none
    assert others == OTHERS[: len(others)]
    command = [sys.executable, "-m", "bench.replay", str(run.folder)]
    lines = subprocess.run(command, capture_output=True, timeout=150, check=True).stdout.splitlines()
    assert [json.loads(one)["policy"] for one in lines] == OTHERS
    assert shown["cost_s"] / 60 == pytest.approx(result["replica_minutes"], rel=0.2)  # a busy machine stops late
