"""The live page in a real browser: blocks follow the plans, at three widths, in both themes, after a restart too."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_core_python.selenium import Axe
from chromium import chromium, console_errors, needs_chromium, open_page
from live_story import SECOND, Story, changed
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from contracts.journal import ReplicaChange
from contracts.pages import WebServer
from tailpack.view import DEMO, Viewer, load_recordings

pytestmark = needs_chromium
HOSTILE = "<script>document.title = 'taken over'</script>"
OWNERS = """
return Object.fromEntries([...document.querySelectorAll('.block')].map(
    block => [block.dataset.partition, block.closest('.replica').dataset.replica]));
"""
TEXTS = "return [...document.querySelectorAll('#decisions summary')].map(one => one.textContent).join()"


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with chromium(tmp_path_factory.mktemp("chromium")) as driver:
        yield driver


@pytest.fixture
def story() -> Story:
    return Story()


@pytest.fixture
def server(story: Story, browser: Any) -> Iterator[WebServer]:
    server = story.serve()
    yield server
    browser.get("about:blank")
    server.close()


def wait(browser: Any, condition: Callable[[], object]) -> None:
    WebDriverWait(browser, 60, poll_frequency=0.1).until(lambda _: condition())


def owners(browser: Any) -> dict[int, str]:
    return {int(number): owner for number, owner in browser.execute_script(OWNERS).items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 900, 500])
def test_each_block_lies_in_the_replica_of_the_newest_plan_and_the_page_is_accessible(
    browser: Any, story: Story, server: WebServer, *, width: int, scheme: str
) -> None:
    open_page(browser, f"http://127.0.0.1:{server.port}/", width=width, scheme=scheme)
    wait(browser, lambda: owners(browser) == story.owners)
    browser.execute_script("window.block = document.querySelector('.block[data-partition=\"3\"]')")

    story.state.record_entry(changed(1, "payment-1", ReplicaChange.REQUESTED))
    story.tick(action="up", reason="60 > 50", planned_replicas=2)
    story.plan_for(story.owners | {3: "payment-1", 5: "payment-1"})
    wait(browser, lambda: owners(browser) == story.owners)

    assert browser.execute_script("return window.block.closest('.replica').dataset.replica") == "payment-1", "it moved"
    wait(browser, lambda: "p3 → payment-1, p5 → payment-1" in browser.execute_script(TEXTS))
    assert "scale out 1 → 2" in browser.find_element(By.ID, "said").get_attribute("textContent"), "it is announced"
    assert browser.find_element(By.ID, "share").text == "84 %", "of 100 latencies up to 594 ms"
    story.plan_for(dict.fromkeys(story.owners, "payment-0"), action="down", reason="idle")
    wait(browser, lambda: owners(browser) == story.owners)

    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    findings = Axe().run(browser)["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in findings] == []
    fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
    assert {address.rpartition("/")[2] for address in fetched if not address.startswith("data:")} <= {"events"}
    assert console_errors(browser) == []


def test_a_moved_block_slides(browser: Any, story: Story, server: WebServer) -> None:
    open_page(browser, f"http://127.0.0.1:{server.port}/")
    motion = {"name": "prefers-reduced-motion", "value": "no-preference"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [motion]})
    wait(browser, lambda: owners(browser) == story.owners)
    browser.execute_script("""
        window.slid = [];
        const animate = Element.prototype.animate;
        Element.prototype.animate = function (...rest) {
            slid.push(this.dataset.partition);
            return animate.apply(this, rest);
        };
    """)
    story.plan_for(story.owners | {3: "payment-1"})
    wait(browser, lambda: "3" in browser.execute_script("return window.slid"))


def test_the_page_reconnects_after_the_process_was_restarted(browser: Any, story: Story) -> None:
    first = story.serve()
    open_page(browser, f"http://127.0.0.1:{first.port}/")
    wait(browser, lambda: owners(browser) == story.owners)
    first.close()
    phase = browser.find_element(By.ID, "phase")
    wait(browser, lambda: "disconnected" in phase.text)
    again = Story(partitions=3)
    second = again.serve(first.port)
    try:
        wait(browser, lambda: owners(browser) == again.owners)
        assert "disconnected" not in phase.text
    finally:
        browser.get("about:blank")
        second.close()
    browser.get_log("browser")  # refused connections are errors of this console


def test_texts_of_records_stay_texts(browser: Any, story: Story, server: WebServer) -> None:
    story.plan_for({0: HOSTILE, 1: "payment-0"}, reason=HOSTILE)
    story.tick(action="up", reason=HOSTILE, problems=(HOSTILE,))
    open_page(browser, f"http://127.0.0.1:{server.port}/")
    wait(browser, lambda: owners(browser) == story.owners)
    assert HOSTILE in browser.find_element(By.ID, "problems").text
    assert HOSTILE in browser.execute_script(TEXTS)
    assert browser.title == "story · tailpack"
    assert console_errors(browser) == []


def test_more_than_300_partitions_are_a_picture_with_a_description(browser: Any) -> None:
    server = Story(partitions=301).serve()
    open_page(browser, f"http://127.0.0.1:{server.port}/")
    try:
        wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "canvas.strip"))
        strip = browser.find_element(By.CSS_SELECTOR, "canvas.strip")
        assert strip.get_attribute("aria-label").startswith("301 partitions")
        assert console_errors(browser) == []
    finally:
        browser.get("about:blank")
        server.close()


def test_a_recording_is_replayed_to_any_time_beside_another_run(browser: Any) -> None:
    assert DEMO.stat().st_size <= 300_000
    recordings = load_recordings(DEMO)
    server = WebServer(Viewer(recordings).respond, 0)
    server.start()

    def expected(second: float) -> dict[int, str]:
        found: dict[int, str] = {}
        for at_us, patch in recordings[0].frames:
            if at_us <= second * SECOND + 1000:
                found |= {int(number): row[0] for number, row in patch.get("partitions", {}).items()}
        return found

    open_page(browser, f"http://127.0.0.1:{server.port}/", width=1280)
    try:
        wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".run")) == 2)
        browser.find_element(By.ID, "play").click()  # pause
        scrub = (
            "const at = document.getElementById('scrub'); at.value = arguments[0]; at.dispatchEvent(new Event('input'))"
        )
        first = "return Object.fromEntries([...document.querySelector('.run').querySelectorAll('.block')].map("
        first += "block => [block.dataset.partition, block.closest('.replica').dataset.replica]))"
        for second in (90.0, 40.0, 100.0):
            browser.execute_script(scrub, str(second))
            wait(
                browser,
                lambda second=second: (
                    {int(key): owner for key, owner in browser.execute_script(first).items()} == expected(second)
                ),
            )
        browser.find_element(By.TAG_NAME, "body").send_keys(Keys.ARROW_LEFT)
        wait(browser, lambda: browser.find_element(By.ID, "clock").text == "1:39")
        titles = [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".run h3")]
        assert [title.partition(":")[0] for title in titles] == ["tail-aware", "keda-hpa"]
        assert Axe().run(browser)["violations"] == []
        assert console_errors(browser) == []
    finally:
        browser.get("about:blank")
        server.close()
