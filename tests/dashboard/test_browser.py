"""The story of a run as somebody tells it who never saw the code: in a real browser, on a society that is going."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from playwright.sync_api import Locator, Page, expect

import ethnos
from ethnos.control import Control
from ethnos.record.directory import RunDirectory, all_runs
from ethnos.record.verify import verify
from ethnos.society import parse
from tests.dashboard.browser import CHROMIUM, browser, dashboard, settled
from tests.thinking.endpoint import endpoint

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium: apt-get install chromium, or set ETHNOS_CHROMIUM"),
    pytest.mark.timeout(420),
]

HOSTILE = "<img src=http://127.0.0.1:9/x onerror=alert(1)> ![x](http://127.0.0.1:9/y) \u202e\x1b[31m :red[r] $x$"
THINKERS = """
scenario: terra
seed: 3
ticks: 4
models:
  m: {{kind: openai, base_url: "{url}", model: tiny, api_key_env: null}}
population:
  - {{cohort: thinkers, count: 3, mind: {{kind: llm, model: m, settings: {{max_tokens: 200}}}}}}
"""


def reply(_: int, body: object) -> str:
    """A model that obeys, says hostile things, and answers questions."""
    if "interviewer" in json.dumps(body):
        return f"I stay where I am. {HOSTILE}"
    return json.dumps({"reason": HOSTILE, "act": {"action": "stay"}, "message": HOSTILE})


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    """The dashboard, in a folder with one run that thought."""
    folder = tmp_path_factory.mktemp("shown")
    with ExitStack() as stack:
        patch = stack.enter_context(pytest.MonkeyPatch.context())
        patch.setenv("ETHNOS_RUNS_DIR", str(folder))
        server = stack.enter_context(endpoint(reply))
        ethnos.run_here(parse(THINKERS.format(url=server.url)), name="thinkers")
        address = stack.enter_context(dashboard(folder))
        page = stack.enter_context(browser())
        dialogs: list[str] = []
        page.on("dialog", lambda d: (dialogs.append(d.message), d.dismiss()))
        page.goto(address)
        yield page
        for run in all_runs():
            if run.contact.exists():
                with Control(run) as control:
                    control.call("Stop", reason="the test is over")
        assert not dialogs


def go(page: Page, name: str) -> None:
    page.get_by_test_id("stSidebar").get_by_role("link", name=name, exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text(name)
    settled(page)


def until(page: Page, true: Callable[[], bool]) -> None:
    while not true():
        page.wait_for_timeout(200)


def metric(page: Page, name: str) -> int:
    """The number below a label."""
    found = page.get_by_test_id("stMetric").filter(has_text=re.compile(f"^{name}"))
    text = found.get_by_test_id("stMetricValue").inner_text()
    return int(re.sub(r"\D.*", "", text.replace(" ", "")))


def beyond(page: Page, name: str, value: int) -> int:
    """Waits until a number on the page is larger than `value`; returns it."""
    while (now := metric(page, name)) <= value:
        page.wait_for_timeout(100)
    return now


def field(page: Page, label: str) -> Locator:
    """Where something is typed in."""
    named = {"name": label, "exact": True}
    return page.get_by_role("textbox", **named).or_(page.get_by_role("spinbutton", **named)).first


def button(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).first.click()
    settled(page)


def choose(page: Page, label: str, option: str) -> None:
    page.get_by_role("combobox", name=label).first.click()
    page.get_by_role("option", name=option).first.click()
    settled(page)


def test_an_agent_that_thinks_is_looked_into_and_asked(page: Page) -> None:
    go(page, "Agent")
    page.get_by_text("Sent to the model, layer by layer").wait_for()
    page.get_by_role("tab", name="Interview").click()
    field(page, "Question").fill("What do you do?")
    button(page, "Ask")
    expect(page.get_by_text("I stay where I am.")).to_be_visible()
    assert page.locator("img[src*='127.0.0.1:9']").count() == 0
    assert "\u202e" not in page.content()
    assert verify(RunDirectory.find("thinkers")).ok


def test_a_society_is_started_watched_steered_asked_and_branched(page: Page) -> None:
    go(page, "Runs")
    field(page, "Name").fill("live")
    field(page, "Ticks").fill("100000")
    field(page, "Founders: beings").fill("6")
    button(page, "Start")
    expect(page.get_by_text("is starting")).to_be_visible()
    until(page, lambda: any(run.name == "live" and run.contact.exists() for run in all_runs()))
    page.reload()
    choose(page, "Run", "live")
    watched(page)
    steered(page)
    played(page)
    looked_into(page)
    queried(page)
    branched(page)
    stopped(page)


def watched(page: Page) -> None:
    """It moves by itself, and goes back."""
    go(page, "Society")
    first = beyond(page, "Tick", 0)
    beyond(page, "Tick", first)
    expect(page.locator("img").first).to_be_visible()


def steered(page: Page) -> None:
    """Paused it stands, stepped it goes so far and no further."""
    go(page, "Control")
    button(page, "Pause")
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    before = metric(page, "Tick")
    field(page, "Ticks in a step").fill("3")
    page.keyboard.press("Enter")
    settled(page)
    button(page, "Step")
    beyond(page, "Tick", before + 2)
    page.wait_for_timeout(1500)
    assert metric(page, "Tick") == before + 3
    choose(page, "What to do", "Tell")
    field(page, "text").fill("hello from outside")
    page.keyboard.press("Enter")
    expect(page.get_by_text("In the next tick")).to_be_visible()
    button(page, "Intervene")
    expect(page.get_by_text("It happens in tick")).to_be_visible()


def played(page: Page) -> None:
    """A person decides in an agent's place for a turn, and gives it back."""
    button(page, "Take over")
    expect(page.get_by_text("seconds for each turn")).to_be_visible()
    button(page, "Continue")
    expect(page.get_by_text("you are ").first).to_be_visible()
    field(page, "What it does").fill("stay")
    button(page, "Do it")
    expect(page.get_by_text("> stay")).to_be_visible()
    button(page, "Leave")
    expect(page.get_by_role("button", name="Take over")).to_be_visible()
    button(page, "Pause")


def looked_into(page: Page) -> None:
    go(page, "Agent")
    expect(page.get_by_text("Decided, and what became of it")).to_be_visible()


def queried(page: Page) -> None:
    go(page, "SQL")
    field(page, "Query").fill("SELECT count(*) AS n FROM decisions")
    page.keyboard.press("Control+Enter")
    settled(page)
    button(page, "Run")
    expect(page.get_by_text(re.compile("1 rows"))).to_be_visible()


def branched(page: Page) -> None:
    go(page, "Compare")
    field(page, "Name").fill("other")
    field(page, "At tick").fill("2")
    field(page, "Changes, one a line").fill("world.food.spawn_rate=0")
    button(page, "Branch off and run")
    expect(page.get_by_text("is on its way")).to_be_visible()


def stopped(page: Page) -> None:
    """Each comes to its end when it is told to, and its record is whole."""
    for name in ("live", "other"):
        until(page, lambda name=name: RunDirectory.find(name).contact.exists())  # type: ignore[misc]
        go(page, "Runs")
        page.reload()
        choose(page, "Run", name)
        button(page, "Stop")
        until(page, lambda name=name: RunDirectory.find(name).state() == "stopped")  # type: ignore[misc]
        assert verify(RunDirectory.find(name)).ok
