"""A student opens a lesson in a real browser, runs its cells, and moves a slider. Ctrl-C leaves no process."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from chromium import chromium, console_errors, needs_chromium, open_page
from kafka_helpers import wait_for
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PICTURE = "return [...document.images].map(one => one.src).find(one => one.startsWith('data:image/png'))"
RUN_ALL = """
const corner = one => one.getBoundingClientRect().right + one.getBoundingClientRect().bottom;
return [...document.querySelectorAll('[data-testid=run-button]:enabled')]
    .filter(one => one.getBoundingClientRect().bottom < innerHeight).sort((a, b) => corner(b) - corner(a))[0];
"""


@needs_chromium
@pytest.mark.long
@pytest.mark.timeout(240)
def test_a_student_opens_a_lesson_runs_it_and_moves_a_slider(tmp_path: Path) -> None:
    environ = os.environ | {"HOME": str(tmp_path), "BROWSER": "true"}  # a new user, whose browser is that of this test
    command = [sys.executable, "-m", "tailpack", "lesson", "open", "1"]
    pipes: Any = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, cwd=tmp_path, env=environ, start_new_session=True, **pipes) as server,
        chromium(tmp_path / "profile") as browser,
    ):
        try:
            assert server.stdout is not None
            found = (re.search(r"http://[^\s\x1b]+", line) for line in server.stdout)
            open_page(browser, next(address[0] for address in found if address))

            def wait_for_text(text: str) -> None:
                wait_for(lambda: text in browser.execute_script("return document.body.innerText"), text)

            wait_for_text("Guess before you run")
            wait_for(lambda: browser.execute_script(RUN_ALL), "the button at the bottom right").click()
            wait_for_text("✗ lesson 01: largest_burst(")
            before = wait_for(lambda: browser.execute_script(PICTURE), "the picture")
            slider = browser.find_element(By.TAG_NAME, "marimo-slider").shadow_root
            slider.find_element(By.CSS_SELECTOR, "[role=slider]").send_keys(Keys.ARROW_LEFT)
            wait_for(lambda: browser.execute_script(PICTURE) not in (None, before), "another picture")
            assert [one for one in console_errors(browser) if one["level"] == "SEVERE"] == []
            family = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
            os.killpg(server.pid, signal.SIGINT)  # as Ctrl-C in a terminal
            assert psutil.wait_procs(family, timeout=30)[1] == []
        finally:
            if server.poll() is None:
                os.killpg(server.pid, signal.SIGKILL)
