"""Instants at the ends of what can be stored, leap seconds, and a clock that jumps."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tracegraph import Graph, Item, Receipt, TracegraphError, Workspace
from tracegraph.model import OPEN, instant, iso, micros, new_id, parse_instant
from tracegraph.scenario_file import MalformedScenario, load
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

pytestmark = pytest.mark.anyio

FIRST, LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
WHO = {"principal": "P", "role": "r", "task": "t"}


class Clock:
    def __init__(self) -> None:
        self.now = NOON

    def __call__(self) -> datetime:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def ws(graph: Graph, clock: Clock, tmp_path: Path) -> AsyncIterator[Workspace]:
    made = await open_workspace(graph, new_id("clock"), owner="lead", clock=clock, keys=Keys(tmp_path))
    await made.grant(role="r", principal="P", read=["s"], write=["s"], valid_from=FIRST)
    yield made
    await forget(graph, made.id)


def item(id: str, **more: Any) -> Item:
    return Item(id=id, scope="s", content="c", receipts=[Receipt(uri="m", text="m")], **more)


# --- the ends ------------------------------------------------------------------------------------------------------


async def test_the_first_and_the_last_instant_are_stored_and_read_back(ws: Workspace) -> None:
    await ws.record(
        item("whole", valid_from=FIRST, valid_to=LAST), item("open", valid_from=LAST), item("start", valid_from=FIRST)
    )
    found = {
        one.id: (one.valid_from, one.valid_to) for id in ("whole", "open", "start") for one in await ws.history(id)
    }
    assert found == {"whole": (FIRST, LAST), "open": (LAST, None), "start": (FIRST, None)}
    assert [one.id for one in await ws.read(**WHO, valid_at=FIRST)] == ["start", "whole"]
    assert [one.id for one in await ws.read(**WHO, valid_at=LAST - timedelta(microseconds=1))] == ["start", "whole"]
    assert [one.id for one in await ws.read(**WHO, valid_at=LAST)] == ["open", "start"]
    joined = await ws.join(**WHO, valid_at=LAST)
    assert (await ws.why("whole", joined.cycle_id)).outside == ("expired",)
    assert (await ws.why("open", joined.cycle_id)).item.valid_from == LAST
    await ws.revoke("start", effective_from=LAST)
    await ws.record(item("receipt").model_copy(update={"receipts": (Receipt(uri="m", text="m", observed_at=FIRST),)}))
    assert [one.id for one in await ws.read(**WHO, valid_at=LAST)] == ["open", "receipt"]
    assert (await ws.exposure("start")).views == ()
    assert (await ws.verify()).intact


@pytest.mark.parametrize("zone", [timezone(timedelta(hours=14)), timezone(-timedelta(hours=12))])
def test_an_instant_beyond_the_ends_is_refused_by_every_entry(zone: tzinfo) -> None:
    beyond = FIRST.replace(tzinfo=zone) if zone.utcoffset(None) > timedelta(0) else LAST.replace(tzinfo=zone)  # type: ignore[operator]
    for entry in (
        micros,
        lambda when: parse_instant(when.isoformat()),
        lambda when: item("x", valid_from=when),
        lambda when: item("x", valid_to=when),
        lambda when: Receipt(uri="m", text="m", observed_at=when),
    ):
        with pytest.raises(TracegraphError) as error:
            entry(beyond)
        assert error.value.code == "invalid_record"


async def test_calls_with_an_instant_beyond_the_ends_write_nothing(ws: Workspace) -> None:
    beyond = LAST.replace(tzinfo=timezone(-timedelta(hours=1)))
    before = (await ws.verify()).digest
    for call in (
        lambda: ws.read(**WHO, valid_at=beyond),
        lambda: ws.join(**WHO, as_of=beyond),
        lambda: ws.join(**WHO, known_at=beyond),
        lambda: ws.revoke("x", effective_from=beyond),
        lambda: ws.grant(role="r", read=["s"], valid_to=beyond),
        lambda: ws.verdict(later="x", earlier="y", says="compatible", effective_from=beyond),
    ):
        with pytest.raises(TracegraphError) as error:
            await call()
        assert error.value.code == "invalid_record"
    assert (await ws.verify()).digest == before


async def test_a_workspace_works_at_the_last_instants_of_its_clock(ws: Workspace, clock: Clock) -> None:
    """What would expire after the last instant expires at it."""
    clock.now = LAST - timedelta(seconds=5)
    await ws.record(item("a"))
    ticket = await ws.depart(**WHO)
    view = (await ws.admit(ticket, principal="P")).view
    assert view is not None
    opened = await ws.open_view(view, principal="P")
    assert opened.expires_at == LAST.replace(microsecond=0)
    clock.now = LAST
    with pytest.raises(TracegraphError) as error:
        await ws.open_view(view, principal="P")
    assert error.value.code == "view_expired"


@settings(max_examples=100, deadline=None)
@given(when=st.datetimes(timezones=st.timezones() | st.just(UTC), allow_imaginary=False))
@example(when=datetime(1970, 10, 25, 1, tzinfo=ZoneInfo("America/Juneau"), fold=1))  # an hour that came twice
def test_an_instant_comes_back_from_the_store_as_it_went_in_or_is_refused(when: datetime) -> None:
    try:
        stored = micros(when)
    except TracegraphError as error:
        if error.code != "invalid_record":
            raise
        return
    assert instant(stored) == when.astimezone(UTC)
    assert stored < OPEN
    text = iso(stored)
    assert text is not None
    assert parse_instant(text) == when.astimezone(UTC)


# --- leap seconds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["2016-12-31T23:59:60Z", "2016-12-31T23:59:60.5+00:00", "2017-01-01T00:59:60+01:00"])
def test_a_leap_second_written_as_60_is_refused_and_never_moved(text: str) -> None:
    for entry in (
        parse_instant,
        lambda text: item("x", valid_from=text),
        lambda text: item("x", valid_to=text),
        lambda text: Receipt(uri="m", text="m", observed_at=text),
        lambda text: Item.model_validate_json(f'{{"scope": "s", "content": "c", "valid_from": "{text}"}}'),
    ):
        with pytest.raises((TracegraphError, ValueError)) as error:
            entry(text)
        assert getattr(error.value, "code", "invalid_record") == "invalid_record"


def test_a_leap_second_in_a_scenario_is_a_malformed_file(tmp_path: Path) -> None:
    file = tmp_path / "leap.trace.yaml"
    for clock, valid in (
        ("2016-12-31T23:59:60Z", "2016-12-31T23:59:59Z"),
        ("2016-12-31T23:59:59Z", "2016-12-31T23:59:60Z"),
    ):
        record = f"{{id: a, scope: s, content: c, valid_from: {valid}}}"
        file.write_text(f"scenario: leap\nclock: {clock}\nsteps:\n  - record: {record}\n")
        with pytest.raises(MalformedScenario, match="is no instant") as error:
            load(file)
        assert error.value.line == (2 if clock.endswith("60Z") else 4)


# --- a clock that jumps -------------------------------------------------------------------------------------------


async def test_a_clock_that_jumps_back_moves_no_record_back(ws: Workspace, clock: Clock) -> None:
    await ws.record(item("a"))
    clock.now -= timedelta(hours=1)
    second = await ws.record(item("b"))
    (version,) = await ws.history("b")
    assert second.recorded_at == version.valid_from == NOON  # the latest moment recorded, not an hour before
    assert [one.id for one in await ws.read(**WHO)] == ["a", "b"]
    ticket = await ws.depart(**WHO)
    result = await ws.admit(ticket, principal="P")
    assert (result.decision, {one.id for one in result.items}) == ("admitted", {"a", "b"})
    assert result.valid_at == NOON
    await ws.open_view(result.view or "", principal="P")
    assert (await ws.replay(result.cycle_id)).equal
    assert (await ws.verify()).intact


async def test_a_clock_that_jumps_back_takes_no_one_back_before_a_grant_or_a_denial(
    ws: Workspace, clock: Clock
) -> None:
    await ws.record(item("a"))
    clock.now += timedelta(hours=1)
    await ws.deny(role="r", read=["s"])
    clock.now -= timedelta(days=1)
    assert await ws.read(**WHO) == ()
    assert await ws.read(**WHO, as_of=NOON) == ()


async def test_a_clock_that_jumps_back_at_every_look_decides_as_a_steady_one(ws: Workspace, clock: Clock) -> None:
    """Within a return, too: between pinning its moment and recording what it decided."""

    class Falling(Clock):
        def __call__(self) -> datetime:
            self.now -= timedelta(hours=1)
            return self.now

    ws._clock = Falling()
    await ws.record(item("a", key="hotel"))
    ticket = await ws.depart(**WHO)
    await ws.record(item("b", key="hotel"))
    await ws.record(item("c"))
    result = await ws.admit(ticket, principal="P")
    assert (result.decision, {one.id for one in result.items}) == ("admitted", {"b", "c"})
    assert result.rejected == {"a": ("superseded",)}
    assert (await ws.open_view(result.view or "", principal="P")).cycle_id == result.cycle_id
    assert (await ws.replay(result.cycle_id)).equal
    assert (await ws.verify()).intact


async def test_two_machines_whose_clocks_are_an_hour_apart_write_one_history(
    graph: Graph, ws: Workspace, clock: Clock
) -> None:
    slow = Workspace(graph, ws.id, clock=lambda: clock.now - timedelta(hours=1), keys=ws._keys)
    moments = []
    for number, at in enumerate((ws, slow, ws, slow)):
        clock.now += timedelta(minutes=1)
        moments.append((await at.record(item(f"i{number}", key="hotel"))).recorded_at)
    assert moments == sorted(moments)
    assert [one.id for one in await slow.read(**WHO)] == [one.id for one in await ws.read(**WHO)] == ["i3"]
    ticket = await ws.depart(**WHO)
    assert (await slow.admit(ticket, principal="P")).decision == "admitted"
    joined = await ws.join(**WHO)
    assert (await slow.open_view(joined.view or "", principal="P")).cycle_id == joined.cycle_id
    assert [one.id for one in await slow.read(**WHO, known_at=moments[1])] == ["i1"]
    assert (await ws.verify()).intact


async def test_a_time_zone_that_changes_while_the_process_runs_changes_no_moment(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = await open_workspace(graph, new_id("zone"), owner="lead", keys=Keys(tmp_path))
    try:
        await made.grant(role="r", principal="P", read=["s"])
        before, moments = datetime.now(UTC), []
        for zone in ("Pacific/Kiritimati", "America/St_Johns", "Asia/Kathmandu", "Etc/GMT+12"):
            monkeypatch.setenv("TZ", zone)
            time.tzset()
            done = await made.record(item(zone.replace("/", "-")))
            moments.append(done.recorded_at)
            assert done.recorded_at.utcoffset() == timedelta(0)
            joined = await made.join(**WHO)
            assert (await made.open_view(joined.view or "", principal="P")).expires_at > done.recorded_at
        moments = [before, *moments, datetime.now(UTC)]
        assert moments == sorted(moments)
        assert len(await made.read(**WHO)) == 4
        assert (await made.verify()).intact
    finally:
        monkeypatch.undo()
        time.tzset()
        await forget(graph, made.id)


async def test_a_clock_in_another_time_zone_is_the_same_clock(ws: Workspace, clock: Clock) -> None:
    await ws.record(item("a"))
    clock.now = NOON.astimezone(timezone(timedelta(hours=-11)))
    done = await ws.record(item("b"))
    assert (done.recorded_at, done.recorded_at.utcoffset()) == (NOON, timedelta(0))
    assert [one.id for one in await ws.read(**WHO)] == ["a", "b"]


async def test_a_clock_that_gives_no_instant_writes_nothing(ws: Workspace, clock: Clock) -> None:
    before = (await ws.verify()).digest
    for wrong, code in ((None, "invalid_record"), (5, "invalid_record"), (datetime(2026, 5, 1), "naive_datetime"),
                        (LAST.replace(tzinfo=timezone(-timedelta(hours=1))), "invalid_record")):  # fmt: skip
        clock.now = wrong  # type: ignore[assignment]
        for call in (ws.record(item("a")), ws.depart(**WHO), ws.join(**WHO), ws.read(**WHO)):
            with pytest.raises(TracegraphError) as error:
                await call
            assert error.value.code == code
    assert (await ws.verify()).digest == before


async def test_an_interval_of_one_microsecond_holds_its_one_instant(ws: Workspace) -> None:
    end = NOON + timedelta(microseconds=1)
    await ws.record(item("a", valid_from=NOON, valid_to=end))
    assert [one.id for one in await ws.read(**WHO, valid_at=NOON)] == ["a"]
    for outside in (NOON - timedelta(microseconds=1), end):
        assert await ws.read(**WHO, valid_at=outside) == ()
    for start, stop in ((NOON, NOON), (end, NOON), (LAST, LAST), (LAST, FIRST)):
        with pytest.raises(TracegraphError) as error:
            item("b", valid_from=start, valid_to=stop)
        assert error.value.code == "empty_interval"
