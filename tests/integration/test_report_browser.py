"""The page in a real browser: nothing missing, nothing wider than the screen, in light and dark."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver

from bench.report import page
from bench.report.example import example

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif(
        not (CHROMIUM and DRIVER), reason="no Chromium here; on Debian: apt install chromium chromium-driver"
    ),
]
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
WIDTHS = (360, 768, 1440)
LOUDER = ("SEVERE", "WARNING")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('chromium')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(str(DRIVER)))
    driver.set_page_load_timeout(30)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / page.PAGE_FILE
    page.write(example(), path)
    return Path(path).as_uri()


def look(browser: Any, report: str, width: int, scheme: str) -> None:
    """Open the page at a width in a colour scheme."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(report)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_and_the_console_is_silent(browser: Any, report: str, width: int, scheme: str) -> None:
    look(browser, report, width, scheme)

    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert [entry for entry in browser.get_log("browser") if entry["level"] in LOUDER] == []
    figures = browser.execute_script(
        "return [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect()).filter(b => b.width)"
    )
    assert len(figures) == 2, "each figure shows in exactly one of its two sizes"
    assert all(figure["width"] > 0.75 * min(width, 960) and figure["height"] > 150 for figure in figures)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_curves_stand_out_from_the_paper(browser: Any, report: str, scheme: str) -> None:
    look(browser, report, 1440, scheme)
    contrast = browser.execute_script("""
        const light = c => { const v = c.match(/[0-9.]+/g).slice(0, 3).map(x => x / 255)
            .map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
            return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
        const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p);
            return (x + 0.05) / (y + 0.05); };
        const card = getComputedStyle(document.querySelector('figure')).backgroundColor;
        const shown = [...document.querySelectorAll('.wide svg text')].map(e => getComputedStyle(e).fill);
        return Math.min(...shown.map(c => ratio(c, card)));
    """)
    assert contrast >= 4.5


def test_nothing_is_fetched(browser: Any, report: str) -> None:
    look(browser, report, 768, "light")
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []
