"""The page in a real browser: it fits the screen in both themes, and zoom, keys and pointer work."""

import base64
from pathlib import Path
from typing import Any

import pytest
from chromium import console_errors, needs_chromium, open_page
from example_report import changed, example
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.wait import WebDriverWait

from report.page import page

pytestmark = [pytest.mark.spark, needs_chromium]
WIDTHS = (390, 768, 1440)
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
    const style = getComputedStyle(e), colour = style.color;
    const found = ratio(parts(colour).slice(0, 3), behind(e));
    if (found < worst[0]) worst = [found, e.outerHTML.slice(0, 120)];
}
return worst;
"""
PAINTED = """
const canvas = document.querySelector(arguments[0] + ' canvas'), wide = canvas.width, tall = canvas.height;
const bytes = canvas.getContext('2d').getImageData(0, 0, wide, tall).data;
let hash = 0, inked = 0;
for (let k = 0; k < bytes.length; k += 4) if (bytes[k + 3]) {
    inked++;
    hash = (hash * 31 + bytes[k] + 3 * bytes[k + 1] + 7 * bytes[k + 2] + k) | 0;
}
return [inked / (wide * tall), hash];
"""


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("pages") / page.PAGE_FILE
    page.write(example(), place)
    return place.as_uri()


def plot(browser: Any, name: str = "panel-0") -> WebElement:
    """Return the plotting area of a chart."""
    found: WebElement = browser.find_element(By.CSS_SELECTOR, f"#{name} .u-over")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", found)
    return found


def span(browser: Any) -> str:
    """Return the displayed time span, once it is drawn."""
    wait = "requestAnimationFrame(() => requestAnimationFrame(arguments[0]))"
    browser.execute_async_script(wait)
    return str(browser.find_element(By.CSS_SELECTOR, "#time [data-span]").text)


def painted(browser: Any, name: str = "panel-0") -> tuple[float, int]:
    """Return the painted share of a chart, and a hash of its pixels."""
    browser.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")
    share, code = browser.execute_script(PAINTED, f"#{name}")
    return share, code


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_the_page_fits_the_screen_with_readable_contrast_and_no_console_errors(
    browser: Any, report: str, *, width: int, scheme: str
) -> None:
    open_page(browser, report, width=width, scheme=scheme)

    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    charts = browser.execute_script(
        "return [...document.querySelectorAll('.uplot')].map(c => [c.parentElement.id, c.clientWidth])"
    )
    assert len(charts) == 9
    assert all(200 < wide <= width for _, wide in charts)
    assert all(painted(browser, chart)[0] > 0.005 for chart, _ in charts)
    titles = "[...document.querySelectorAll('h1, h2, h3, .key')]"
    assert not browser.execute_script(f"return {titles}.some(e => e.scrollWidth > e.clientWidth + 1)"), "clipped"
    contrast, where = browser.execute_script(SMALLEST_CONTRAST)
    assert contrast >= 4.5, where
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert [address for address in fetched if not address.startswith("data:")] == []
    assert console_errors(browser) == []


def test_charts_follow_the_theme_and_the_printer(browser: Any, report: str) -> None:
    open_page(browser, report)
    light = painted(browser)
    browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    )
    assert painted(browser)[1] != light[1]
    open_page(browser, report, scheme="dark", medium="print")
    assert browser.execute_script("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not any(part.is_displayed() for part in browser.find_elements(By.CSS_SELECTOR, ".tools, nav"))
    browser.execute_script("dispatchEvent(new Event('beforeprint'))")
    assert browser.execute_script("return [...document.querySelectorAll('details')].every(d => d.open)")
    assert base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"]).startswith(b"%PDF")


def test_dragging_zooms_all_panels_and_reset_shows_all_again(browser: Any, report: str) -> None:
    open_page(browser, report)
    area = plot(browser)
    assert span(browser) == "the whole run"
    before = {name: painted(browser, name) for name in ("panel-0", "panel-3", "panel-heat")}

    ActionChains(browser).move_to_element(area).click_and_hold().move_by_offset(100, 5).release().perform()

    first, last = span(browser).split(" – ")
    assert "0:55" <= first < last <= "1:25"
    assert all(painted(browser, name)[1] != known[1] for name, known in before.items()), "all show the same span"
    browser.find_element(By.CSS_SELECTOR, "#time [data-do=reset]").click()
    assert span(browser) == "the whole run"
    assert console_errors(browser) == []


def test_the_keyboard_can_zoom_move_and_list_changes(browser: Any, report: str) -> None:
    open_page(browser, report)
    panels = browser.find_element(By.CSS_SELECTOR, "#time .panels")
    browser.execute_script("arguments[0].focus()", panels)
    panels.send_keys("+")
    assert span(browser) == "0:31 – 1:33"
    panels.send_keys(Keys.PAGE_UP)
    assert span(browser) == "0:00 – 1:02"
    panels.send_keys("0")
    assert span(browser) == "the whole run"
    here = browser.find_element(By.CSS_SELECTOR, "#time [data-here]")
    panels.send_keys("n")
    assert "fits 2 replicas" in here.text, "the reason of the first decision"
    for number in range(3):
        if number == 0:
            panels.send_keys(Keys.ESCAPE)
        panels.send_keys("l")
        ways = here.find_elements(By.CSS_SELECTOR, "a[href^='#episode']")
        assert [way.get_attribute("href").split("#")[1] for way in ways] == [f"episode-{number}"]
    panels.send_keys(Keys.ARROW_RIGHT)
    assert browser.find_element(By.CSS_SELECTOR, "[data-value='Events per second|arrivals']").text
    panels.send_keys(Keys.ESCAPE)
    assert not here.is_displayed()


def test_the_pointer_shows_values_and_a_click_lists_reasons(browser: Any, report: str) -> None:
    open_page(browser, report)
    area = plot(browser)
    at_61 = round(area.size["width"] * (61.5 / 124 - 0.5))
    ActionChains(browser).move_to_element_with_offset(area, at_61, 0).click().perform()
    values = {
        box.get_attribute("data-value"): box.text for box in browser.find_elements(By.CSS_SELECTOR, "[data-value]")
    }
    assert values["late|Replica dead"] == "2"
    assert values["Replicas|requested"] == "3"
    here = browser.find_element(By.CSS_SELECTOR, "#time [data-here]")
    assert "killed by signal 9" in here.text, "what happened"
    ways = [way.get_attribute("href").split("#")[1] for way in here.find_elements(By.CSS_SELECTOR, "a[href^='#ep']")]
    assert ways == ["episode-1"]
    lines = here.text.splitlines()
    assert lines[-7] == "1:00 no change: three replicas are enough"
    assert lines[-4:-2] == ["payment-1", "partitions 3, 4, 5, worst 690 ms"]

    area = plot(browser, "panel-heat")
    ActionChains(browser).move_to_element_with_offset(area, round(area.size["width"] * (62.5 / 124 - 0.5)), 0).perform()
    assert "1:02 · partition 4 · payment-2" in browser.find_element(By.ID, "heat-here").text


def test_an_episode_links_to_its_time_and_back_to_its_row(browser: Any, report: str) -> None:
    open_page(browser, report)
    link = browser.find_elements(By.CSS_SELECTOR, "#episodes th.when a")[1]
    before = painted(browser)
    browser.execute_script("arguments[0].click()", link)
    assert span(browser) == "0:50 – 1:12"
    assert painted(browser)[1] != before[1], "the span is marked"

    way = browser.find_element(By.CSS_SELECTOR, "#time [data-here] a[href^='#episode']")
    assert way.text == "Replica dead, 5 late"
    way.click()
    row = browser.find_element(By.CSS_SELECTOR, "#episodes tr:target")
    assert row.find_element(By.CSS_SELECTOR, "a").text == link.text
    assert 0 <= browser.execute_script("return arguments[0].getBoundingClientRect().top", row) < 800
    assert console_errors(browser) == []


def test_another_run_is_laid_over_the_panels(browser: Any, report: str, tmp_path: Path) -> None:
    other = changed(policy="keda-hpa", run="other")
    other.save(tmp_path)
    (tmp_path / "broken.json").write_text("{}")
    open_page(browser, report)
    before = {name: painted(browser, name)[1] for name in ("panel-0", "panel-1", "panel-3")}
    file = browser.find_element(By.CSS_SELECTOR, "#time input[type=file]")
    note = browser.find_element(By.CSS_SELECTOR, "#time [data-other]")
    for name, shown in (
        ("broken.json", "broken.json is not"),
        ("result.json", "dotted: keda-hpa (other), 99.921 % in"),
    ):
        file.send_keys(str(tmp_path / name))
        wait = WebDriverWait(browser, 20, poll_frequency=0.1)
        wait.until(lambda _, shown=shown: note.text.startswith(shown))
    assert {name: painted(browser, name)[1] != code for name, code in before.items()} == {
        "panel-0": False, "panel-1": True, "panel-3": True,
    }  # fmt: skip
    browser.find_element(By.CSS_SELECTOR, "#time [data-do=next]").click()
    assert "keda-hpa (other run): " in browser.find_element(By.CSS_SELECTOR, "#time [data-here]").text
    assert console_errors(browser) == []
