"""An auditor in Neo4j Browser: logs in, drops the style and the favourites, asks, and sees the answer drawn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement
from selenium.webdriver.support.ui import WebDriverWait

from tests.browser.conftest import Travel, cli
from tracegraph import browser, embedded

SECONDS = 90
"""A query's first plan takes seconds, and the machine may be busy."""


class Desk:
    """Neo4j Browser in front of a person."""

    def __init__(self, chromium: webdriver.Chrome) -> None:
        self.chromium = chromium

    def until(self, seen: Callable[[webdriver.Chrome], object]) -> None:
        WebDriverWait(self.chromium, SECONDS).until(seen)

    def one(self, selector: str) -> WebElement:
        self.until(lambda at: at.find_elements(By.CSS_SELECTOR, selector))
        return self.chromium.find_element(By.CSS_SELECTOR, selector)

    def log_in(self, server: embedded.Server) -> None:
        self.chromium.get(f"{server.http_uri}/browser/")
        self.one("[data-testid=username]").send_keys(server.username)
        self.one("[data-testid=password]").send_keys(server.password)
        self.one("[data-testid=connect]").click()
        self.until(lambda at: not at.find_elements(By.CSS_SELECTOR, "[data-testid=password]"))

    def drop(self, file: Path) -> None:
        """A file from the desktop onto the window."""
        self.chromium.execute_script(
            """
            const files = new DataTransfer();
            const bytes = Uint8Array.from(arguments[1]);
            files.items.add(new File([bytes], arguments[0]));
            for (const step of ['dragenter', 'dragover', 'drop'])
              document.querySelector('.filedrop').dispatchEvent(
                new DragEvent(step, {bubbles: true, cancelable: true, dataTransfer: files}));
            """,
            file.name,
            list(file.read_bytes()),
        )

    def paste(self, text: str) -> None:
        """Into the empty editor, from the clipboard."""
        self.chromium.execute_async_script(
            "navigator.clipboard.writeText(arguments[0]).then(arguments[1], arguments[1])", text
        )
        editor = self.one("textarea.inputarea")
        self.chromium.execute_script("arguments[0].focus()", editor)
        editor.send_keys(Keys.CONTROL, "a")
        editor.send_keys(Keys.DELETE)
        editor.send_keys(Keys.CONTROL, "v")

    def run(self) -> None:
        """Run what the editor holds, and wait for its frame to be the first one."""
        before = self.frames()
        self.one("[data-testid=editor-Run]").click()
        self.until(lambda _: self.frames() and self.frames()[:1] != before[:1])

    def frames(self) -> list[str]:
        found = self.chromium.find_elements(By.CSS_SELECTOR, "article[data-testid=frame]")
        return [one.id for one in found]

    def ask(self, name: str) -> Drawing:
        self.paste((browser.folder() / f"{name}.cypher").read_text(encoding="utf-8"))
        self.run()
        return self.drawing()

    def drawing(self) -> Drawing:
        frame = self.one("article[data-testid=frame]")
        self.until(lambda _: frame.find_elements(By.CSS_SELECTOR, "g.node"))
        self.until(lambda _: "Displaying" in frame.text)
        return Drawing(frame)


class Drawing:
    """What a frame shows."""

    def __init__(self, frame: WebElement) -> None:
        self.nodes = [" ".join(one.text.split()) for one in frame.find_elements(By.CSS_SELECTOR, "g.node")]
        arrows = frame.find_elements(By.CSS_SELECTOR, "g.relationship")
        self.arrows = [one.text for one in arrows]
        """Captions, cut off where an arrow is short."""
        self.colours = {one.text[:5]: one.find_element(By.CSS_SELECTOR, "path").get_attribute("fill") for one in arrows}
        self.counts = {name: int(count) for name, count in re.findall(r"([A-Za-z_]+) \((\d+)\)", frame.text)}
        """Of each label and type, from the overview beside the drawing."""
        self._frame = frame

    def click(self, arrow: str) -> str:
        """Click the arrow whose caption begins so; what the panel beside the drawing then says."""
        arrows = self._frame.find_elements(By.CSS_SELECTOR, "g.relationship")
        found = next(one for one in arrows if one.text.startswith(arrow))
        ActionChains(self._frame.parent).move_to_element(found.find_element(By.CSS_SELECTOR, "text")).click().perform()
        WebDriverWait(self._frame.parent, SECONDS).until(lambda _: "Overview" not in self._frame.text)
        return self._frame.text


@pytest.fixture(scope="module")
def desk(
    chromium: webdriver.Chrome,
    travel: Travel,
    pytestconfig: pytest.Config,
    tmp_path_factory: pytest.TempPathFactory,
) -> Desk:
    """Logged in, with everything that `tracegraph browser --write` wrote dropped on the window."""
    server = embedded.status(version=pytestconfig.getoption("--neo4j-version"))
    if pytestconfig.getoption("--neo4j") != "embedded" or server is None:
        pytest.skip("Browser is looked at where the embedded server serves it")
    folder = tmp_path_factory.mktemp("audits")
    words = ("browser", "-w", travel.workspace, "--item", "p0", "--cycle", travel.admitted, "--principal", "A1")
    version = [f"--neo4j-version={server.version}"]
    told = cli(*words, "--at", "2026-05-02T00:00:00Z", "--write", str(folder), "--json", *version, environment={})
    assert told.returncode == 0, told.stderr
    desk = Desk(chromium)
    desk.log_in(server)
    desk.paste(json.loads(told.stdout)["command"])
    desk.run()
    desk.drop(folder / browser.STYLE)
    desk.until(lambda at: at.execute_script("return localStorage.getItem('neo4j.grass')") not in (None, "null"))
    desk.drop(folder / browser.FAVOURITES)
    desk.until(lambda at: browser.questions()[0].title in at.execute_script("return localStorage['neo4j.documents']"))
    return desk


def test_a_favourite_draws_why_the_old_pickup_was_rejected(desk: Desk, shots: Path | None) -> None:
    desk.one("button[name=Favorites]").click()
    desk.one("[data-testid='expandFolder-tracegraph']").click()
    title = next(one.title for one in browser.questions() if one.name == "why")
    desk.one(f"[data-testid='scriptTitle-{title}']").click()
    desk.one("button[name=Favorites]").click()
    desk.run()
    drawn = desk.drawing()
    if shots is not None:
        desk.one("article[data-testid=frame]").screenshot(str(shots / "browser.png"))
    assert any(one.startswith("p0 Pickup at 8:00") for one in drawn.nodes)
    assert any(one.startswith("A1 admitted") for one in drawn.nodes)
    assert drawn.counts["INVALIDATES"] == 1
    assert drawn.counts["REJECTED"] == 2
    assert drawn.counts["WorkItem"] == 3
    assert drawn.counts["ReturnView"] == 1


def test_the_chain_is_drawn_with_its_quote_in_red_and_what_was_replaced_in_grey(desk: Desk) -> None:
    drawn = desk.ask("chain")
    assert {one.split()[0] for one in drawn.nodes} >= {"p0", "h1", "h0"}
    assert "quote booked Riverside" in drawn.click("INVAL")
    assert (drawn.colours["INVAL"], drawn.colours["SUPER"]) == ("#C00000", "#8C8C8C")


def test_exposure_draws_the_departure_that_took_the_item_along_and_the_view_that_kept_it_out(desk: Desk) -> None:
    drawn = desk.ask("exposure")
    assert drawn.counts == {"WorkItem": 1, "Checkpoint": 1, "ReturnCycle": 2, "ReturnView": 1} | {
        "REJECTED": 2,
        "RETURNED_FROM": 2,
        "ISSUED": 1,
    }


def test_what_a_principal_could_see_then_is_drawn_with_what_opened_it(desk: Desk) -> None:
    drawn = desk.ask("visible")
    assert {one.split()[0] for one in drawn.nodes} == {"c", "h0", "t0", "p0", "A1", "itinerary", "trip"}
    assert drawn.counts["MAY_READ"] == 1
