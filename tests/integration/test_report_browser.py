"""The pages in a real browser: nothing missing, nothing wider than the screen, in both themes, and what zooming does.

The screenshots that it takes lie in its temporary folder (`--basetemp=…` chooses where), to be looked at.
"""

import base64
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from example_comparison import example_comparison
from example_report import example
from kafka_helpers import wait_for
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from report.page import page
from report.page.comparison_page import COMPARISON_PAGE, write_comparison
from report.result import HeatMap, Result

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
PAGES = (page.PAGE_FILE, COMPARISON_PAGE)
SMALLEST_CONTRAST = """
const light = c => { const v = c.map(x => x / 255).map(x => x <= 0.03928 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
    return 0.2126 * v[0] + 0.7152 * v[1] + 0.0722 * v[2]; };
const ratio = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
const parts = c => c.match(/[0-9.]+/g).map(Number);
const behind = e => { for (; e; e = e.parentElement) { const c = parts(getComputedStyle(e).backgroundColor);
    if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
document.querySelectorAll('details').forEach(d => { d.open = true; });
let worst = [99, ''];
for (const e of document.querySelectorAll('body *')) {
    const own = [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    if (!own || !e.getClientRects().length || e.closest('script, style, .unseen, .skip, [disabled], .key')) continue;
    const style = getComputedStyle(e), colour = e.closest('svg') ? style.fill : style.color;
    const found = ratio(parts(colour).slice(0, 3), behind(e));
    if (found < worst[0]) worst = [found, e.outerHTML.slice(0, 120)];
}
return worst;
"""
MEASURED = (
    "return [...document.querySelectorAll('#time .wide [data-series]')].map(p => [p.getBBox(), p.getTotalLength()])"
)


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
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    page.write(example(), folder / page.PAGE_FILE)
    write_comparison(example_comparison(), folder / COMPARISON_PAGE)
    return folder


@pytest.fixture(scope="module")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("screenshots")


@pytest.fixture
def report(pages: Path) -> str:
    return (pages / page.PAGE_FILE).as_uri()


def look(browser: Any, address: str, *, width: int = 1440, scheme: str = "light", medium: str = "screen") -> None:
    """Open a page at a width in a colour scheme."""
    features = [
        {"name": "prefers-color-scheme", "value": scheme},
        {"name": "prefers-reduced-motion", "value": "reduce"},
    ]
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": features})
    screen = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 500}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    browser.get(address)


def keep_screenshot(browser: Any, path: Path, width: int) -> None:
    height = browser.execute_script("return document.documentElement.scrollHeight")
    area = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
    taken = browser.execute_cdp_cmd("Page.captureScreenshot", {"captureBeyondViewport": True, "clip": area})
    path.write_bytes(base64.b64decode(taken["data"]))


def complaints(browser: Any) -> list[Any]:
    return [entry for entry in browser.get_log("browser") if entry["level"] in LOUDER]


def plot(browser: Any, name: str = "time") -> WebElement:
    found: WebElement = browser.find_element(By.CSS_SELECTOR, f"#{name} .plot")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    return found


def span(browser: Any) -> str:
    """Return what the page says it shows, once it is drawn."""
    wait = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
    browser.execute_async_script(wait)
    return str(browser.find_element(By.CSS_SELECTOR, "#time [data-span]").text)


def tip(browser: Any, name: str = "time") -> str:
    return str(browser.find_element(By.CSS_SELECTOR, f"#{name} .tip").text)


def touch(browser: Any, kind: str, *places: tuple[float, float]) -> None:
    points = [{"x": x, "y": y, "id": finger} for finger, (x, y) in enumerate(places)]
    browser.execute_cdp_cmd("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", PAGES)
def test_the_page_fits_and_the_console_is_silent(
    browser: Any, pages: Path, screenshots: Path, *, name: str, width: int, scheme: str
) -> None:
    look(browser, (pages / name).as_uri(), width=width, scheme=scheme)

    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert complaints(browser) == []
    figures = browser.execute_script(
        "return [...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect()).filter(b => b.width)"
    )
    assert len(figures) == len(browser.find_elements(By.TAG_NAME, "figure")), (
        "each shows in exactly one of its two sizes"
    )
    assert all(figure["width"] > 0.7 * min(width, 960) and figure["height"] > 100 for figure in figures)
    taken = screenshots / f"{Path(name).stem}-{width}-{scheme}.png"
    keep_screenshot(browser, taken, width)
    assert taken.stat().st_size > 30_000


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1440])
@pytest.mark.parametrize("name", PAGES)
def test_all_text_stands_out_from_what_is_behind_it(
    browser: Any, pages: Path, name: str, width: int, scheme: str
) -> None:
    look(browser, (pages / name).as_uri(), width=width, scheme=scheme)
    contrast, where = browser.execute_script(SMALLEST_CONTRAST)
    assert contrast >= 4.5, where


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_fetched(browser: Any, pages: Path, name: str) -> None:
    look(browser, (pages / name).as_uri(), width=768)
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [name for name in fetched if not name.startswith("data:")] == []


def test_without_script_everything_is_there_but_the_zoom(browser: Any, report: str) -> None:
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        look(browser, report)
        tools = browser.find_elements(By.CSS_SELECTOR, ".tools, .keys, .tip, .brush")
        assert tools
        assert not any(part.is_displayed() for part in tools)
        assert browser.find_element(By.CSS_SELECTOR, "#time .wide svg").is_displayed()
        line = browser.find_element(By.CSS_SELECTOR, "#time .wide [data-series=p99]").get_attribute("d")
        assert len(line) > 500
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})


def test_the_script_draws_at_full_length_what_was_drawn_without_it(browser: Any, pages: Path, report: str) -> None:
    look(browser, report)
    span(browser)
    drawn = browser.execute_script(MEASURED)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.get(report)
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
        static = browser.execute_script(MEASURED)
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert len(drawn) == len(static) > 5
    for (box, length), (other, other_length) in zip(drawn, static, strict=True):
        assert all(abs(box[key] - other[key]) < 1 for key in ("x", "y", "width", "height"))
        assert abs(length - other_length) < 0.02 * other_length


def test_dragging_across_zooms_and_reset_shows_all_again(browser: Any, report: str) -> None:
    look(browser, report)
    area = plot(browser)
    before = browser.find_element(By.CSS_SELECTOR, "#time .wide [data-series=p99]").get_attribute("d")
    assert span(browser) == "the whole run"

    ActionChains(browser).move_to_element_with_offset(area, 0, -100).click_and_hold().move_by_offset(
        100, 5
    ).release().perform()

    first, last = span(browser).split(" – ")
    assert first >= "0:55"
    assert last <= "1:25"
    assert browser.find_element(By.CSS_SELECTOR, "#time .wide [data-series=p99]").get_attribute("d") != before
    labels = browser.find_elements(By.CSS_SELECTOR, "#time .wide [data-axis] text")
    assert all(first <= label.text <= last for label in labels)
    heat = [label.text for label in browser.find_elements(By.CSS_SELECTOR, "#cells .wide [data-axis] text")]
    assert heat == [label.text for label in labels], "all drawings over time show the same stretch"

    browser.find_element(By.CSS_SELECTOR, "#time [data-do=reset]").click()
    assert span(browser) == "the whole run"
    assert complaints(browser) == []


def test_the_wheel_scrolls_the_page_until_the_drawing_is_clicked(browser: Any, report: str) -> None:
    look(browser, report)
    area = plot(browser)
    ActionChains(browser).scroll_from_origin(_at(area), 0, -120).perform()
    assert span(browser) == "the whole run"

    area = plot(browser)
    ActionChains(browser).move_to_element_with_offset(area, 0, -200).click().perform()
    ActionChains(browser).scroll_from_origin(_at(area), 0, -300).perform()
    assert span(browser) != "the whole run"
    for _ in range(4):
        ActionChains(browser).scroll_from_origin(_at(area), 0, 600).perform()
    assert span(browser) == "the whole run"


def test_the_keyboard_does_all_that_the_mouse_does(browser: Any, report: str) -> None:
    look(browser, report)
    area = plot(browser)
    browser.execute_script("arguments[0].focus()", area)
    area.send_keys("+")
    assert span(browser) == "0:31 – 1:33"
    area.send_keys(Keys.PAGE_UP)
    assert span(browser) == "0:00 – 1:02"
    area.send_keys(Keys.HOME)
    assert span(browser) == "the whole run"
    area.send_keys("n")
    assert "down: 2 replicas" in tip(browser)
    area.send_keys("n", "p")
    assert "down: 2 replicas" in tip(browser)
    spoken = browser.find_element(By.CSS_SELECTOR, "#time [aria-live]").get_attribute("textContent")
    assert "fits 2 replicas" in spoken, "the reason of the decision"
    area.send_keys(Keys.ARROW_RIGHT)
    assert "arrivals" in tip(browser)
    area.send_keys(Keys.ESCAPE)
    assert not browser.find_element(By.CSS_SELECTOR, "#time .tip").is_displayed()


def test_every_control_can_be_reached_and_shows_that_it_is(browser: Any, report: str) -> None:
    look(browser, report)
    body = browser.find_element(By.TAG_NAME, "body")
    reached = []
    for _ in range(30):
        body = browser.switch_to.active_element
        body.send_keys(Keys.TAB)
        reached.append(
            browser.execute_script(
                "const e = document.activeElement, s = getComputedStyle(e);"
                "return [e.dataset.do ?? e.className ?? e.tagName, s.outlineStyle, parseFloat(s.outlineWidth)]"
            )
        )
    names = [name for name, _, _ in reached]
    assert {"skip", "in", "out", "left", "right", "previous", "next", "plot"} <= set(names)
    assert all(style != "none" and width >= 1 for _, style, width in reached)


def test_the_pointer_reads_values_reasons_and_causes(browser: Any, report: str) -> None:
    look(browser, report)
    area = plot(browser)
    box = browser.find_element(By.CSS_SELECTOR, "#time .wide svg").size
    at_62_5 = box["width"] * ((52 + 62.5 / 124 * (950 - 52)) / 960 - 0.5)
    ActionChains(browser).move_to_element_with_offset(area, round(at_62_5), 0).perform()
    words = tip(browser)
    assert words.startswith("1:02")
    assert "late: overloaded\n2 /s" in words
    assert "handover payment-1 → payment-0: partition 3; payment-1 → payment-2: partitions 4, 5" in words

    area = plot(browser, "cells")
    ActionChains(browser).move_to_element_with_offset(area, round(at_62_5), 0).perform()
    words = tip(browser, "cells")
    assert "owner\npayment-2" in words
    assert "worst latency" in words


def test_a_time_in_a_table_leads_to_its_place(browser: Any, report: str) -> None:
    look(browser, report)
    link = browser.find_element(By.CSS_SELECTOR, "#late td a, #late th a")
    browser.execute_script("arguments[0].click()", link)
    assert span(browser) == "0:46 – 1:07"


def test_a_spell_leads_to_its_place_and_its_place_back_to_the_spell(browser: Any, report: str) -> None:
    look(browser, report)
    link = browser.find_elements(By.CSS_SELECTOR, "#late th.when a")[1]
    browser.execute_script("arguments[0].click()", link)
    assert span(browser) == "0:50 – 1:12"
    assert browser.find_element(By.CSS_SELECTOR, "#time .wide .band").get_attribute("d"), "the stretch is marked"

    way = browser.find_element(By.CSS_SELECTOR, "#time [data-here] a")
    assert way.text.startswith("1:00 – 1:01: Replica dead, partition 3")
    way.click()
    row = browser.find_element(By.CSS_SELECTOR, "#late tr:target")
    assert row.find_element(By.CSS_SELECTOR, "a").text == link.text
    assert 0 <= browser.execute_script("return arguments[0].getBoundingClientRect().top", row) < 800
    assert complaints(browser) == []


def test_a_click_keeps_the_reasons_of_a_second_below_the_drawing(browser: Any, report: str) -> None:
    look(browser, report)
    area = plot(browser)
    box = browser.find_element(By.CSS_SELECTOR, "#time .wide svg").size
    at_61 = box["width"] * ((52 + 61.1 / 124 * (950 - 52)) / 960 - 0.5)
    ActionChains(browser).move_to_element_with_offset(area, round(at_61), 0).click().perform()
    kept = browser.find_element(By.CSS_SELECTOR, "#time [data-here]")
    assert "killed by signal 9" in kept.text, "what happened"
    assert [way.get_attribute("href").split("#")[1] for way in kept.find_elements(By.TAG_NAME, "a")] == [
        "spell-1", "spell-2",
    ], "the largest first"  # fmt: skip
    browser.switch_to.active_element.send_keys(Keys.ESCAPE)
    assert not kept.is_displayed()


def test_keys_go_from_spell_to_spell(browser: Any, report: str) -> None:
    look(browser, report)
    area = plot(browser)
    browser.execute_script("arguments[0].focus()", area)
    for number in range(4):
        area.send_keys("l")
        way = browser.find_element(By.CSS_SELECTOR, "#time [data-here] a")
        assert way.get_attribute("href").endswith(f"#spell-{number}")
    area.send_keys("L")
    assert browser.find_element(By.CSS_SELECTOR, "#time [data-here] a").get_attribute("href").endswith("#spell-2")


def test_fingers_tap_drag_and_pinch(browser: Any, report: str) -> None:
    look(browser, report, width=360)
    browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": True, "maxTouchPoints": 2})
    try:
        look(browser, report, width=360)
        box = browser.execute_script("return arguments[0].getBoundingClientRect()", plot(browser))
        y, middle = box["y"] + box["height"] * 0.6, box["x"] + box["width"] / 2

        touch(browser, "touchStart", (middle, y))
        touch(browser, "touchEnd")
        assert "arrivals" in tip(browser)
        shown = browser.find_element(By.CSS_SELECTOR, "#time .tip").rect
        assert shown["x"] >= 0
        assert shown["x"] + shown["width"] <= 360

        touch(browser, "touchStart", (middle - 20, y))
        touch(browser, "touchStart", (middle - 20, y), (middle + 20, y))
        touch(browser, "touchMove", (middle - 60, y), (middle + 60, y))
        touch(browser, "touchEnd")
        first, last = span(browser).split(" – ")
        assert "0:35" <= first < last <= "1:30", "three times as long, around the same moment"

        touch(browser, "touchStart", (middle - 60, y))
        touch(browser, "touchMove", (middle, y))
        touch(browser, "touchEnd")
        again, until = span(browser).split(" – ")
        assert first < again < until < last
        assert complaints(browser) == []
    finally:
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": False})


def test_a_phone_reads_each_spell_without_scrolling_sideways(browser: Any, report: str) -> None:
    look(browser, report, width=360)
    for words in browser.find_elements(By.CSS_SELECTOR, "#late .words, #decisions .reason"):
        assert words.rect["x"] + words.rect["width"] <= 360
        assert words.rect["width"] > 250


def test_printed_it_is_light_and_whole(browser: Any, report: str) -> None:
    look(browser, report, scheme="dark", medium="print")
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert browser.execute_script("return getComputedStyle(document.querySelector('td')).color") == "rgb(27, 29, 33)"
    assert not any(part.is_displayed() for part in browser.find_elements(By.CSS_SELECTOR, ".tools, .keys, nav"))
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return [...document.querySelectorAll('details')].every(d => d.open)")
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")


def test_who_wants_no_motion_gets_none(browser: Any, report: str) -> None:
    look(browser, report)
    moving = browser.execute_script(
        "return [...document.querySelectorAll('*')].filter(e => { const s = getComputedStyle(e);"
        "return s.transitionDuration !== '0s' || s.animationName !== 'none' || s.scrollBehavior === 'smooth'; }).length"
    )
    assert moving == 0


def test_ten_hours_are_drawn_with_no_more_than_a_screen_can_show(browser: Any, tmp_path: Path) -> None:
    page.write(_ten_hours(), tmp_path / page.PAGE_FILE)
    assert (tmp_path / page.PAGE_FILE).stat().st_size < 5_000_000
    look(browser, (tmp_path / page.PAGE_FILE).as_uri())
    drawn = "return document.querySelector('#time').innerHTML"
    whole = browser.execute_script(drawn)
    assert len(whole) < 500_000, "of 36,000 seconds there are as many points as a screen has columns"
    browser.find_element(By.CSS_SELECTOR, "#time [data-do=in]").click()
    zoomed = wait_for(lambda: (now := browser.execute_script(drawn)) != whole and now, "the zoomed drawing")
    assert len(zoomed) < 500_000
    assert browser.execute_script("return document.querySelectorAll('*').length") < 30_000
    assert complaints(browser) == []


def _at(area: WebElement) -> Any:
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    return ScrollOrigin.from_element(area, 0, 0)


def _ten_hours() -> Result:
    """Repeat the example until it fills ten hours."""
    times, seconds = 300, 36_000
    short = example()
    heat = short.heat
    assert heat
    names = short.series.__struct_fields__
    series = msgspec.structs.replace(
        short.series, **{name: tuple(getattr(short.series, name)[:120]) * times for name in names}
    )
    wide = HeatMap(
        cell_s=1.0,
        partitions=tuple(range(9)),
        max_s=tuple(row[:120] * times for row in heat.max_s),
        owners=tuple(row[:120] * times for row in heat.owners),
    )
    decisions = tuple(
        msgspec.structs.replace(made, at_s=made.at_s + 120 * turn) for turn in range(times) for made in short.decisions
    )
    return msgspec.structs.replace(
        short, series=series, heat=wide, decisions=decisions, events=10_000_000, duration_s=float(seconds)
    )
