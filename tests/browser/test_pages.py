"""A decision as a page, as a person sees it: whole without network, on paper, without colours, whatever it quotes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest
from selenium import webdriver
from selenium.webdriver.common.by import By

from tests.browser.conftest import Travel, cli
from tracegraph import Item, Receipt, Workspace
from tracegraph.audit import owed
from tracegraph.drawing import Arrow, Box, Shape, columns, draw, wrapped
from tracegraph.pages import DRAWN, cycle_page, whole_return, why_page

HOSTILE = (
    '<script>document.title="owned"</script> "><img src="http://127.0.0.1:9/x" onerror="document.title=1">'
    " ]]> &lt;b&gt;"
)


def look(chromium: webdriver.Chrome, page: Path, shot: Path | None = None) -> None:
    """Open a page; nothing but the page itself may be asked for."""
    chromium.get_log("performance")  # type: ignore[no-untyped-call]
    chromium.get(page.as_uri())
    events = [json.loads(line["message"])["message"] for line in chromium.get_log("performance")]  # type: ignore[no-untyped-call]
    asked = [one["params"]["request"]["url"] for one in events if one["method"] == "Network.requestWillBeSent"]
    assert asked == [page.as_uri()]
    if shot is not None:
        height = chromium.execute_script("return document.body.scrollHeight + 150")
        chromium.set_window_size(1280, min(3000, height))
        chromium.save_screenshot(str(shot))


def boxes(chromium: webdriver.Chrome, kind: str) -> list[str]:
    found = chromium.find_elements(By.CSS_SELECTOR, f"svg .box.{kind}")
    return [" ".join(text.text for text in one.find_elements(By.TAG_NAME, "text")) for one in found]


def spilled(chromium: webdriver.Chrome) -> list[str]:
    """Texts that do not fit the box that they are in."""
    return chromium.execute_script(
        """
        return [...document.querySelectorAll('svg .box')].flatMap(box => {
          const around = box.querySelector('rect, polygon').getBBox();
          return [...box.querySelectorAll('text')].filter(text => {
            const inner = text.getBBox();
            return inner.x < around.x || inner.x + inner.width > around.x + around.width
              || inner.y < around.y || inner.y + inner.height > around.y + around.height;
          }).map(text => text.textContent);
        });
        """
    )


def test_why_an_item_was_rejected_is_a_page(
    chromium: webdriver.Chrome, travel: Travel, neo4j: dict[str, str], tmp_path: Path, shots: Path | None
) -> None:
    page = tmp_path / "p0.html"
    words = ("why", "p0", "-w", travel.workspace, "--cycle", travel.blocked, "--html", str(page))
    done = cli(*words, environment=neo4j)
    assert done.returncode == 0, done.stderr
    assert page.stat().st_size < 50_000
    look(chromium, page, shots and shots / "why.png")
    assert boxes(chromium, "rejected") == ["✗ rejected: invalidated p0 Pickup at 8:00 from Sunrise leaves enough time."]
    assert [one.split()[1] for one in boxes(chromium, "item")] == ["h1", "h0"]
    assert spilled(chromium) == []
    text = chromium.find_element(By.TAG_NAME, "body").text
    assert "invalidated by h1 «booked Riverside»" in text
    assert "The advice names a hotel that is no longer booked." in text


def test_a_return_is_a_page_with_every_item_by_outcome_and_prints(
    chromium: webdriver.Chrome, travel: Travel, neo4j: dict[str, str], tmp_path: Path, shots: Path | None
) -> None:
    page = tmp_path / "return.html"
    done = cli("cycle", travel.admitted, "-w", travel.workspace, "--html", str(page), environment=neo4j)
    assert done.returncode == 0, done.stderr
    look(chromium, page, shots and shots / "return.png")
    assert {one.split()[3] for one in boxes(chromium, "admitted")} == {
        "o_h",
        "o_t",
        "f_h",
        "f_t",
        "c",
        "h1",
        "t1",
        "p1",
    }
    assert len(boxes(chromium, "rejected")) == 4
    assert len(boxes(chromium, "covered")) == 4
    assert spilled(chromium) == []
    rows = [row.text for row in chromium.find_elements(By.CSS_SELECTOR, "table:last-of-type tbody tr")]
    assert len(rows) == 12
    assert any(row.startswith("✗ rejected p_rumour") and "it has no receipt" in row for row in rows)
    printed = chromium.execute_cdp_cmd("Page.printToPDF", {"preferCSSPageSize": True})["data"]
    assert base64.b64decode(printed).count(b"/Type /Page\n") in range(1, 7)


@pytest.mark.anyio
async def test_hostile_words_are_shown_and_nothing_else(
    workspace: Workspace, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    ws = workspace
    await ws.grant(role="r", principal="p", read=["s"], write=["s"])
    word = "w" * 3000
    wide = "証拠" * 300
    for id, content in (("a", HOSTILE), ("b", "\u202egnirts\u202c\x1b[2J"), ("c", word), ("d", wide)):
        source = Receipt(uri=f"{HOSTILE}{id}", text="x")
        await ws.record(Item(id=id, key=HOSTILE + id, scope="s", content=content, receipts=[source]))
    await ws.revoke("a", reason=HOSTILE)
    result = await ws.join(principal="p", role="r", task="t", purpose=HOSTILE)
    files = [tmp_path / f"{id}.html" for id in "abcd"]
    for file in files:
        file.write_text(why_page(await ws.why(file.stem, result.cycle_id)), encoding="utf-8")
    files.append(tmp_path / "return.html")
    files[-1].write_text(await whole_return(ws, result.cycle_id), encoding="utf-8")
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert "<script" not in text
        assert "<img" not in text
        assert "\u202e" not in text
    chromium = request.getfixturevalue("chromium")
    for file in files:
        look(chromium, file)
        assert spilled(chromium) == []
        wide_ = chromium.execute_script("return document.documentElement.scrollWidth > innerWidth")
        assert not wide_, file.name
        assert "owned" not in chromium.title.split()
    look(chromium, files[0])
    assert HOSTILE in chromium.find_element(By.TAG_NAME, "body").text


@pytest.mark.anyio
async def test_a_refused_return_and_a_large_pool_are_pages_too(workspace: Workspace) -> None:
    refused = await workspace.join(principal="nobody", role="r", task="t")
    assert "nothing was in its pool" in await whole_return(workspace, refused.cycle_id)
    await workspace.grant(role="r", principal="p", read=["s"])
    await workspace.record(*(Item(id=f"i{n}", key=f"k{n}", scope="s", content="So.") for n in range(DRAWN + 5)))
    result = await workspace.join(principal="p", role="r", task="t")
    report = await workspace.cycle(result.cycle_id)
    whys = [await workspace.why(id, result.cycle_id) for id in report.pool]
    page = cycle_page(report, await owed(workspace.graph, workspace.id, result.cycle_id), whys, left=3)
    assert page.count('class="box rejected"') == DRAWN
    assert "5 more items are in the table alone." in page
    assert "3 more items of the pool are not shown" in page


def test_a_file_that_cannot_be_written_is_said(travel: Travel, neo4j: dict[str, str], tmp_path: Path) -> None:
    words = ("why", "p0", "-w", travel.workspace, "--cycle", travel.blocked)
    done = cli(*words, "--html", str(tmp_path / "nowhere" / "p0.html"), environment=neo4j)
    assert done.returncode == 2
    assert "cannot be written" in done.stderr


def test_every_state_is_told_apart_without_its_colour() -> None:
    states: list[Shape] = ["admitted", "rejected", "passed", "covered", "missing"]
    seen = set()
    for state in states:
        svg = draw([Box("a", state, "state")], [], "One")
        (group,) = svg.iter("g")
        _, outline, text = group
        corners = len(set(outline.get("points", "").split())) or outline.get("rx")
        seen.add((outline.tag, corners, outline.get("stroke-dasharray"), (text.text or "")[0]))
    assert len(seen) == len(states)


def test_an_arrow_to_a_box_that_is_not_drawn_is_left_out() -> None:
    svg = draw([Box("a", "item", "a"), Box("a", "note", "again")], [Arrow("a", "b", "to")], "One")
    assert len(svg.findall(".//g")) == 1
    assert svg.findall(".//polyline") == []


def test_words_are_wrapped_by_their_width_and_cut_with_a_sign() -> None:
    assert wrapped("one two three", 8, 3) == ["one two", "three"]
    assert wrapped("x" * 30, 10, 2) == ["x" * 9, "x" * 7 + "…"]
    assert wrapped("", 10, 2) == []
    assert all(columns(line) <= 10 for line in wrapped("証拠" * 9, 10, 3))
