"""A service that ends in mid-run is started again, with growing pauses; what is asked to stop is stopped."""

import os
import signal
import time
from pathlib import Path

import pytest
from kafka_helpers import wait_for

from tailpack.local.processes import Child, Children, uninterrupted


def child(folder: Path, body: str) -> Child:
    """A child whose module runs `body`."""
    (folder / "a_child.py").write_text(body)
    environ = os.environ | {"PYTHONPATH": str(folder)}
    return Child("a child", "a_child", environ, folder / "a.log")


def test_a_child_that_ends_is_started_again_after_a_pause(tmp_path: Path) -> None:
    one = child(tmp_path, "print('no broker'); raise SystemExit(3)")
    one.start()
    wait_for(lambda: one.exit_status is not None, "the first end")
    now = time.monotonic()
    assert one.supervise(now) == "a child ended (exit status 3: no broker); starting it again in 0.5 s"
    assert one.supervise(now + 0.4) is None
    assert one.supervise(now + 0.6) == "a child started again (1)"
    wait_for(lambda: one.exit_status is not None, "the second end")
    assert "in 1 s" in (one.supervise(now + 1) or "")


def test_a_child_that_ignores_sigterm_is_ended_by_force(tmp_path: Path) -> None:
    body = "from signal import *\nsignal(SIGTERM, SIG_IGN)\nprint('up', flush=True)\nwhile True: pause()"
    children = Children()
    one = children.start(child(tmp_path, body))
    wait_for(lambda: one.last_words() == "up", "the child's start")
    children.stop(deadline_s=0.3)
    assert one.exit_status == -9
    assert children.started == []


def test_the_signal_is_delivered_at_the_end_of_the_block() -> None:
    steps = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012  the block's end is what raises
        with uninterrupted():
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGINT)
            steps.append("whole")
        steps.append("never reached")
    assert steps == ["whole"]
