"""A student takes a lesson in a real browser: runs it, moves a slider, and has a wrong and a right answer checked."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from chromium import chromium, needs_chromium, open_page
from kafka_helpers import wait_for
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from tailpack.lab.course import LESSONS
from tailpack.local.ports import free_port

pytestmark = [needs_chromium, pytest.mark.timeout(180)]
PICTURE = (
    "return [...document.querySelectorAll('img')].map(one => one.src).find(one => one.startsWith('data:image/png'))"
)
EDITOR = (
    "return [...document.querySelectorAll('.cm-content')].find(one => one.textContent.startsWith('def largest_burst'))"
)
ANSWER = "def largest_burst(service_rate, target_s): return int(service_rate * target_s + 1e-9)"


def test_a_student_moves_a_slider_and_has_an_answer_checked(tmp_path: Path) -> None:
    shutil.copyfile(LESSONS / "lesson_01.py", tmp_path / "lesson_01.py")
    address = f"--port={free_port()}"
    command = [sys.executable, "-m", "marimo", "edit", "--headless", "--no-token", "--skip-update-check", address]
    environ = os.environ | {"HOME": str(tmp_path)}  # the configuration of a new user
    with (
        subprocess.Popen(
            [*command, "lesson_01.py"], cwd=tmp_path, env=environ, stdout=subprocess.PIPE, text=True
        ) as server,
        chromium(tmp_path / "profile") as browser,
    ):
        try:
            assert server.stdout is not None
            next(line for line in server.stdout if "http://" in line)
            open_page(browser, address.replace("--port=", "http://127.0.0.1:"))

            def wait_for_text(text: str) -> None:
                wait_for(lambda: text in browser.execute_script("return document.body.innerText"), text)

            wait_for_text("Guess before you run")
            browser.find_element(By.ID, "run-button").click()
            wait_for_text("✗ lesson 01: largest_burst(")
            before = wait_for(lambda: browser.execute_script(PICTURE), "the picture")
            slider = browser.find_element(By.TAG_NAME, "marimo-slider").shadow_root
            slider.find_element(By.CSS_SELECTOR, "[role=slider]").send_keys(Keys.ARROW_LEFT)
            wait_for(lambda: browser.execute_script(PICTURE) not in (None, before), "another picture")

            editor = browser.execute_script(EDITOR)
            editor.click()
            editor.send_keys(Keys.CONTROL, "a")
            browser.execute_cdp_cmd("Input.insertText", {"text": ANSWER})
            editor.send_keys(Keys.CONTROL, Keys.ENTER)
            wait_for_text("✓ lesson 01: passed, 50 cases")
        finally:
            server.terminate()
