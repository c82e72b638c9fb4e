"""The live page in a real browser: blocks follow the plans, at three widths, in both themes, after a restart too."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from axe_core_python.selenium import Axe
from chromium import console_errors, needs_chromium, open_page
from live_run import start_run
from live_story import SECOND, Story, changed
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.wait import WebDriverWait

from bench.scenario import load_scenario
from bench.simulation.folder import write_run
from bench.simulation.run import run_scenario
from bench.simulation.sent_events import build_events
from contracts.journal import ReplicaChange
from contracts.pages import WebServer
from report.run_info import EVENTS
from report.stored import CUSTOMER_COLUMN, load_events
from tailpack.provenance import describe_simulated
from tailpack.view import DEMO, Recording, Simulations, Viewer, frames_of, load_recordings

pytestmark = needs_chromium
HOSTILE = "<script>document.title = 'taken over'</script>"
OWNERS = """
return Object.fromEntries([...document.querySelector('.run').querySelectorAll('.block')].map(
    block => [block.dataset.partition, block.closest('.replica').dataset.replica]));
"""
COSTS = "return [...document.querySelectorAll('#costs tr')].map(row => [...row.children].map(one => one.textContent))"
COUNT_FRAMES = """
window.gaps = [];
let before = performance.now();
const next = at => { gaps.push(at - before); before = at; requestAnimationFrame(next); };
requestAnimationFrame(next);
"""
TEXTS = "return [...document.querySelectorAll('#decisions summary')].map(one => one.textContent).join()"
COUNT_SLIDES = """
window.slid = {};
const animate = Element.prototype.animate;
Element.prototype.animate = function (frames, ...rest) {
  const { left, bottom } = this.getBoundingClientRect(), { e, f } = new DOMMatrix(frames[0].transform);
  slid[this.dataset.partition] = [left + e, bottom + f];
  return animate.call(this, frames, ...rest);
};
"""
SCRUB = "const at = document.getElementById('scrub'); at.value = arguments[0]; at.dispatchEvent(new Event('input'))"


@contextmanager
def shown(browser: Any, server: WebServer, *, reload: bool = True, **screen: Any) -> Iterator[None]:
    try:
        if reload:
            open_page(browser, f"http://127.0.0.1:{server.port}/", **screen)
        yield
        assert console_errors(browser) == []
    finally:
        browser.get("about:blank")
        server.close()


def wait(browser: Any, condition: Callable[[], object]) -> None:
    WebDriverWait(browser, 60, poll_frequency=0.1).until(lambda _: condition())


def owners(browser: Any) -> dict[int, str]:
    return {int(number): owner for number, owner in browser.execute_script(OWNERS).items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 900, 500])
def test_each_block_lies_in_the_replica_of_the_newest_plan_and_the_page_is_accessible(
    browser: Any, *, width: int, scheme: str
) -> None:
    story = Story()
    with shown(browser, story.serve(), width=width, scheme=scheme):
        wait(browser, lambda: owners(browser) == story.owners)
        browser.execute_script("window.block = document.querySelector('.block[data-partition=\"3\"]')")

        story.state.record_entry(changed(1, HOSTILE, ReplicaChange.REQUESTED))
        story.tick(action="up", reason=HOSTILE, planned_replicas=2, problems=(HOSTILE,))
        story.plan_for(story.owners | {3: HOSTILE, 5: HOSTILE}, reason=HOSTILE)
        wait(browser, lambda: owners(browser) == story.owners)

        assert browser.execute_script("return window.block.closest('.replica').dataset.replica") == HOSTILE, "it moved"
        wait(browser, lambda: f"p3 → {HOSTILE}, p5 → {HOSTILE}" in browser.execute_script(TEXTS))
        assert HOSTILE in browser.find_element(By.ID, "problems").text
        assert browser.title == "story · tailpack"
        assert "scale out 1 → 2" in browser.find_element(By.ID, "said").get_attribute("textContent"), "announced"
        assert browser.find_element(By.ID, "share").text == "84 %", "of 100 latencies up to 594 ms"
        story.plan_for(dict.fromkeys(story.owners, "payment-0"), action="down", reason="idle")
        wait(browser, lambda: owners(browser) == story.owners)

        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        findings = Axe().run(browser)["violations"]
        assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in findings] == []
        fetched = browser.execute_script("return performance.getEntriesByType('resource').map(e => e.name)")
        assert {address.rpartition("/")[2] for address in fetched if not address.startswith("data:")} <= {"events"}


def test_a_moved_block_slides_from_its_old_place(browser: Any) -> None:
    story = Story()
    with shown(browser, story.serve()):
        motion = {"name": "prefers-reduced-motion", "value": "no-preference"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [motion]})
        wait(browser, lambda: owners(browser) == story.owners)
        old = browser.find_element(By.CSS_SELECTOR, ".block[data-partition='3']").rect
        browser.execute_script(COUNT_SLIDES)
        story.plan_for(story.owners | {3: "payment-1"})
        wait(browser, lambda: "3" in browser.execute_script("return window.slid"))
        assert browser.execute_script("return slid[3]") == pytest.approx([old["x"], old["y"] + old["height"]], abs=1.5)


def test_frames_are_drawn_while_many_partitions_move(browser: Any, request: Any) -> None:
    """Frames per second are recorded and not asserted."""
    story = Story(partitions=100)
    replicas = [f"payment-{number}" for number in range(30)]
    for name in replicas[1:]:
        story.state.record_entry(changed(1, name, ReplicaChange.READY))
    story.plan_for({number: replicas[number % 30] for number in range(100)})
    with shown(browser, story.serve()):
        motion = {"name": "prefers-reduced-motion", "value": "no-preference"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [motion]})
        wait(browser, lambda: owners(browser) == story.owners)
        browser.execute_script(COUNT_FRAMES)

        def move() -> bool:
            story.tick()
            story.plan_for({number: replicas[(number + story.epoch) % 30] for number in range(100)})
            return bool(browser.execute_script("return gaps.length >= 300"))

        wait(browser, move)
        gaps = sorted(browser.execute_script("return gaps"))
        figures = ("frames_per_s", 1000 * len(gaps) / sum(gaps)), ("frame_ms_p99", gaps[len(gaps) * 99 // 100])
        request.node.user_properties += figures
        wait(browser, lambda: owners(browser) == story.owners)


def test_the_page_reconnects_after_the_process_was_restarted(browser: Any) -> None:
    story, again = Story(), Story(partitions=3)
    first = story.serve()
    open_page(browser, f"http://127.0.0.1:{first.port}/")
    wait(browser, lambda: owners(browser) == story.owners)
    first.close()
    phase = browser.find_element(By.ID, "phase")
    wait(browser, lambda: "disconnected" in phase.text)
    with shown(browser, again.serve(first.port), reload=False):
        wait(browser, lambda: owners(browser) == again.owners)
        assert "disconnected" not in phase.text
        browser.get_log("browser")  # refused connections are errors of this console


def test_more_than_300_partitions_are_a_picture_with_a_description(browser: Any) -> None:
    with shown(browser, Story(partitions=301).serve()):
        wait(browser, lambda: browser.find_elements(By.CSS_SELECTOR, "canvas.strip"))
        strip = browser.find_element(By.CSS_SELECTOR, "canvas.strip")
        assert strip.get_attribute("aria-label").startswith("301 partitions")


def test_a_recording_is_replayed_to_any_time_beside_another_run(browser: Any) -> None:
    assert DEMO.stat().st_size <= 300_000
    recordings = load_recordings(DEMO)
    server = WebServer(Viewer(recordings).respond, 0)
    server.start()

    def expected(second: float) -> dict[int, str]:
        patches = [patch for at_us, patch in recordings[0].frames if at_us <= second * SECOND + 1000]
        rows = [item for patch in patches for item in patch.get("partitions", {}).items()]
        return {int(number): row[0] for number, row in rows}

    with shown(browser, server, width=1280):
        wait(browser, lambda: len(browser.find_elements(By.CSS_SELECTOR, ".run")) == 2)
        browser.find_element(By.ID, "play").click()  # pause
        for second in (90.0, 40.0, 100.0):
            browser.execute_script(SCRUB, str(second))
            wait(browser, lambda second=second: owners(browser) == expected(second))
        play = browser.find_element(By.ID, "play")
        play.send_keys(Keys.ARROW_LEFT)
        wait(browser, lambda: browser.find_element(By.ID, "clock").text == "1:39")
        play.click()
        wait(browser, lambda: play.get_attribute("aria-label") == "Pause")
        browser.execute_script(SCRUB, str(10**6))
        wait(browser, lambda: play.get_attribute("aria-label") == "Play")  # it is at the end
        titles = [one.text for one in browser.find_elements(By.CSS_SELECTOR, ".run h3")]
        assert [title.partition(":")[0] for title in titles] == ["tail-aware", "keda-hpa"]
        costs = [name for name, *_ in browser.execute_script(COSTS)]
        assert costs == ["recorded", "algorithm-2", "keda-hpa", "overprovisioned"]
        assert Axe().run(browser)["violations"] == []


def test_other_policies_and_changed_settings_are_simulated_for_a_run(browser: Any, tmp_path: Path) -> None:
    scenario = load_scenario("steady-150", {"duration_s": 20, "policy": "linear"})
    sent, folder = build_events(scenario), tmp_path / "steady"
    run, result = run_scenario(scenario, sent)
    write_run(folder, run, describe_simulated(scenario, sent, run.drained_us, folder))
    recording = Recording("steady", frames_of(folder))
    simulations = Simulations(folder, recording)
    server = WebServer(Viewer([recording], {0: simulations}).respond, 0)
    server.start()

    def rows() -> dict[str, list[str]]:
        return {name: figures[1:] for name, *figures in browser.execute_script(COSTS)}

    def figures(query: str) -> list[str]:
        found = msgspec.json.decode(simulations.answer(query).body)
        return [
            f"{int(1e5 * found['in_time'][-1]) / 1e3:g} %",
            f"{found['replica_minutes'][-1]:.1f}".removesuffix(".0"),
        ]

    with shown(browser, server, width=900):
        wait(browser, lambda: [*rows()] == ["recorded", "tail-aware", "algorithm-2", "keda-hpa"])
        browser.execute_script(SCRUB, "20")
        wait(browser, lambda: rows()["keda-hpa"] == figures("policy=2"))
        assert float(rows()["recorded"][1]) == pytest.approx(result.replica_minutes, abs=0.11)
        slider = browser.find_element(By.NAME, "replicas")
        assert slider.get_attribute("aria-valuetext") == "by the policy"
        slider.send_keys(Keys.ARROW_RIGHT)
        wait(browser, lambda: rows().get("what if") == figures("replicas=1"))
        assert Axe().run(browser)["violations"] == []
        browser.find_element(By.NAME, "startup_ms").send_keys(Keys.ARROW_RIGHT)
        wait(browser, lambda: rows()["what if"] == figures("replicas=1&startup_ms=100"))
        browser.find_element(By.CSS_SELECTOR, "#whatif button").click()
        wait(browser, lambda: "what if" not in rows())
        assert slider.get_attribute("aria-valuetext") == "by the policy"


@pytest.mark.long
@pytest.mark.kafka
@pytest.mark.timeout(300)
def test_an_operator_intervenes_in_a_run_by_the_keyboard_and_the_report_says_so(
    browser: Any, kafka: str, tmp_path: Path
) -> None:
    load = ("--duration", "45s", "--set", "workload=20 for 45")
    run = start_run(tmp_path, "smoke", "--bootstrap-servers", kafka, "--no-browser", "--controls", *load)
    assert run.process.stderr is not None
    address = next(found[1] for line in run.process.stderr if (found := re.search(r"live page (http\S+)", line)))
    run.wait_for_second(1)
    open_page(browser, address, width=900)
    wait(browser, lambda: "payment-0" in owners(browser).values())
    assert browser.execute_script("return location.hash") == "", "the address on the screen has no token"

    def act(action: str, control: str, key: str, answer: str) -> None:
        browser.find_element(By.CSS_SELECTOR, f"[data-action={action}] {control}").send_keys(key)
        wait(browser, lambda: answer in browser.find_element(By.ID, "answer").text)

    act("load", "input", Keys.ENTER, "requested load 2 × the schedule")
    act("hot-key", "input", Keys.ENTER, "requested 0.5 of all events by one customer")
    act("pause", "button", Keys.SPACE, "paused the autoscaler")
    wait(browser, lambda: "on the live page" in browser.find_element(By.ID, "problems").text)
    assert Axe().run(browser)["violations"] == []
    act("kill", "button", Keys.ENTER, "killed payment-0")
    act("pause", "button", Keys.SPACE, "resumed the autoscaler")
    beyond = "const form = document.querySelector('[data-action=load]'); form.noValidate = true; form.value.value = 20"
    browser.execute_script(beyond)
    act("load", "input", Keys.ENTER, "refused: load: must be from 0 to 3")
    assert browser.find_element(By.ID, "play").get_attribute("aria-label") == "Pause", "it still plays"
    refused = console_errors(browser)
    assert ["409" in one["message"] for one in refused] == [True], refused
    browser.get("about:blank")
    status, result = run.ended()
    assert status == 0, run.errors
    lines = result["provenance"]["interventions"]
    assert ["killed payment-0" in line for line in lines] == [False, False, False, True, False]
    since = [int(line.split()[-3]) for line in lines[:2]]
    assert result["events"] == 20 * since[0] + 40 * (45 - since[0])
    events = load_events(run.folder / EVENTS).table()
    later = events.where(events["intended_us"] >= result["provenance"]["started_us"] + since[1] * SECOND)
    assert np.unique(later[CUSTOMER_COLUMN], return_counts=True)[1].max() > 0.4 * len(later["intended_us"])
    assert "5 interventions by an operator" in result["verdict"]
    assert [one["replica"] for one in result["failures"]] == ["payment-0"]
