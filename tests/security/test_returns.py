"""Tickets and views between people: another's, an old one, a used one; and rights that were taken away meanwhile."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest

from tests.security.conftest import START, Team
from tracegraph import Graph, Item, Receipt, TracegraphError
from tracegraph.errors import Code
from tracegraph.graph import Tx
from tracegraph.model import new_id
from tracegraph.scenarios import forget
from tracegraph.signing import Keys
from tracegraph.workspace import open_workspace

pytestmark = pytest.mark.anyio

A1 = {"principal": "A1", "role": "itinerary", "task": "plan"}
MAIL = [Receipt(uri="mail:1", text="Booking confirmed: Sunrise")]


def hotel(id: str = "h0", **more: Any) -> Item:
    receipt = Receipt(uri="mail:1", text="Booking confirmed")
    return Item(**{"id": id, "key": "hotel", "scope": "trip", "content": "Sunrise.", "receipts": [receipt], **more})


@contextmanager
def refused(code: Code) -> Iterator[Any]:
    with pytest.raises(TracegraphError) as error:
        yield error
    assert error.value.code == code


@pytest.fixture
def queries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the queries that run from here on."""
    run: list[str] = []
    rows = Tx.rows

    async def noted(self: Tx, name: str, **parameters: Any) -> list[dict[str, Any]]:
        run.append(name)
        return await rows(self, name, **parameters)

    monkeypatch.setattr(Tx, "rows", noted)
    return run


async def view_of(team: Team) -> str:
    result = await team.ws.join(**A1)
    assert result.view is not None
    return result.view


# --- another's ------------------------------------------------------------------------------------------------


async def test_a_ticket_is_its_principals_alone(team: Team, queries: list[str]) -> None:
    ticket = await team.ws.depart(**A1)
    queries.clear()
    for stranger in ("B1", "lead", "a1", "A1 ", "", None, 5, ["A1"]):
        with pytest.raises(TracegraphError) as error:
            await team.ws.admit(ticket, principal=stranger)  # type: ignore[arg-type]
        assert error.value.code in ("invalid_ticket", "invalid_record", "limit_exceeded")
    assert queries == []  # the refusal asks the database nothing
    assert (await team.ws.admit(ticket, principal="A1")).decision == "admitted"


async def test_a_view_is_its_principals_alone(team: Team, queries: list[str]) -> None:
    view = await view_of(team)
    await team.ws.remember("Quiet matters.", principal="A1", grounded_in=[(await team.ws.record(hotel())).ids[-1]])
    queries.clear()
    for stranger in ("B1", "lead", "a1", "A1 ", "", None, 5, ["A1"]):
        for open_ in (team.ws.open_view, team.ws.recall):
            with pytest.raises(TracegraphError) as error:
                await open_(view, principal=stranger)  # type: ignore[operator]
            assert error.value.code in ("view_invalid", "invalid_record", "limit_exceeded")
    assert queries == []
    assert (await team.ws.open_view(view, principal="A1")).principal == "A1"


@pytest.mark.parametrize("other", [{"role": "payer"}, {"role": "Itinerary"}, {"task": "book"}, {"task": "plan "}])
async def test_a_view_of_another_role_or_task_than_the_caller_states_is_refused(team: Team, other: Any) -> None:
    view = await view_of(team)
    assert (await team.ws.open_view(view, **A1)).task == "plan"
    with refused("view_invalid"):
        await team.ws.open_view(view, **{**A1, **other})


async def test_another_workspaces_ticket_and_view_are_refused(graph: Graph, team: Team) -> None:
    ticket, view = await team.ws.depart(**A1), await view_of(team)
    other = await open_workspace(graph, new_id("other"), owner="lead", clock=team.clock, keys=team.keys)
    try:
        await other.grant(role="itinerary", principal="A1", read=["trip"])
        with refused("invalid_ticket"):
            await other.admit(ticket, principal="A1")
        with refused("view_invalid"):
            await other.open_view(view, principal="A1")
        with refused("view_invalid"):
            await other.recall(view, principal="A1")
    finally:
        await forget(graph, other.id)


async def test_another_installations_ticket_and_view_are_refused(graph: Graph, team: Team, tmp_path: Any) -> None:
    strange = await open_workspace(graph, team.ws.id, owner=None, clock=team.clock, keys=Keys(tmp_path / "strange"))
    ticket, view = await strange.depart(**A1), (await strange.join(role="payer", principal="B1", task="plan")).view
    assert view is not None
    with refused("invalid_ticket"):
        await team.ws.admit(ticket, principal="A1")
    with refused("view_invalid"):
        await team.ws.open_view(view, principal="B1")


async def test_a_ticket_admits_in_its_own_role_and_task_only(team: Team) -> None:
    """There is no argument by which the holder could ask for others."""
    await team.ws.grant(role="payer", principal="A1")
    await team.ws.record(hotel("wage", scope="payroll"), author="B1")
    result = await team.ws.admit(await team.ws.depart(**A1), principal="A1")
    assert (result.items, result.rejected) == ((), {})


async def test_a_view_and_a_ticket_are_not_each_other(team: Team) -> None:
    ticket, view = await team.ws.depart(**A1), await view_of(team)
    with refused("invalid_ticket"):
        await team.ws.admit(view, principal="A1")
    with refused("view_invalid"):
        await team.ws.open_view(ticket, principal="A1")
    with refused("view_invalid"):
        await team.ws.recall(ticket, principal="A1")


# --- old and used ----------------------------------------------------------------------------------------------


async def test_at_its_expiry_a_ticket_is_expired_and_not_before(team: Team) -> None:
    ticket = await team.ws.depart(**A1)
    team.clock.now = START + timedelta(days=30)
    with refused("ticket_expired"):
        await team.ws.admit(ticket, principal="A1")
    team.clock.now -= timedelta(microseconds=1)
    assert (await team.ws.admit(ticket, principal="A1")).decision == "admitted"


async def test_at_its_expiry_a_view_is_expired_and_not_before(team: Team) -> None:
    view = await view_of(team)
    team.clock.now = START + timedelta(minutes=15) - timedelta(microseconds=1)
    await team.ws.open_view(view, principal="A1")
    team.clock.now += timedelta(microseconds=1)
    for open_ in (team.ws.open_view, team.ws.recall):
        with refused("view_expired"):
            await open_(view, principal="A1")  # type: ignore[operator]


async def test_a_used_ticket_is_used_for_good(team: Team) -> None:
    ticket = await team.ws.depart(**A1)
    assert (await team.ws.admit(ticket, principal="A1")).decision == "admitted"
    for _ in range(2):
        with refused("ticket_consumed"):
            await team.ws.admit(ticket, principal="A1")
    with refused("ticket_consumed"):
        await team.ws.admit(ticket, principal="A1", valid_at=START)  # nor as a preview


async def test_a_replaced_ticket_stays_void_after_the_later_one_is_used(team: Team) -> None:
    first, second = await team.ws.depart(**A1), await team.ws.depart(**A1)
    with refused("ticket_consumed"):
        await team.ws.admit(first, principal="A1")
    await team.ws.admit(second, principal="A1")
    with refused("ticket_consumed"):
        await team.ws.admit(first, principal="A1")


async def test_a_join_voids_the_ticket_of_the_absence_it_ends(team: Team) -> None:
    ticket = await team.ws.depart(**A1)
    await team.ws.join(**A1)
    with refused("ticket_consumed"):
        await team.ws.admit(ticket, principal="A1")


async def test_a_recreated_workspace_takes_nothing_of_the_one_before(graph: Graph, team: Team) -> None:
    ticket, view = await team.ws.depart(**A1), await view_of(team)
    await forget(graph, team.ws.id)
    ws = await open_workspace(graph, team.ws.id, owner="lead", clock=team.clock, keys=team.keys)
    await ws.grant(role="itinerary", principal="A1", read=["trip"])
    with refused("invalid_ticket"):
        await ws.admit(ticket, principal="A1")
    with refused("view_invalid"):
        await ws.open_view(view, principal="A1")


async def test_a_clock_that_jumps_back_revives_no_ticket_and_no_view_once_a_later_epoch_is_recorded(team: Team) -> None:
    ticket, view = await team.ws.depart(principal="B1", role="payer", task="pay"), await view_of(team)
    team.clock.forward(days=31)
    await team.ws.record(hotel())
    team.clock.now = START
    with refused("ticket_expired"):
        await team.ws.admit(ticket, principal="B1")
    with refused("view_expired"):
        await team.ws.open_view(view, principal="A1")


# --- rights taken away ------------------------------------------------------------------------------------------


async def test_a_role_withdrawn_after_the_view_was_signed_makes_it_stale(team: Team) -> None:
    await team.ws.record(hotel())
    view = await view_of(team)
    await team.ws.withdraw(team.held)
    for open_ in (team.ws.open_view, team.ws.recall):
        with refused("view_stale") as error:
            await open_(view, principal="A1")  # type: ignore[operator]
        assert error.value.reasons == {"itinerary": ["role_not_held"]}


async def test_a_role_that_lapsed_after_the_view_was_signed_makes_it_stale(team: Team) -> None:
    await team.ws.grant(role="guest", read=["trip"])
    await team.ws.grant(role="guest", principal="C1", valid_to=START + timedelta(minutes=5))
    view = (await team.ws.join(principal="C1", role="guest", task="plan")).view
    assert view is not None
    team.clock.forward(minutes=5)
    with refused("view_stale"):
        await team.ws.open_view(view, principal="C1")


async def test_a_scope_denied_after_the_view_was_signed_makes_it_stale_and_tells_nothing_else(team: Team) -> None:
    await team.ws.record(hotel())
    view = await view_of(team)
    await team.ws.deny(role="itinerary", read=["trip"])
    await team.ws.record(hotel("h1"))
    await team.ws.revoke("h0")
    with refused("view_stale") as error:
        await team.ws.open_view(view, principal="A1")
    assert error.value.reasons == {
        "h0": ["denied"]
    }  # not that it was superseded and revoked, which it may not read now
    assert "superseded" not in str(error.value)


async def test_a_role_withdrawn_during_the_absence_refuses_the_return_and_lists_nothing(team: Team) -> None:
    await team.ws.record(hotel())
    ticket = await team.ws.depart(**A1)
    await team.ws.withdraw(team.held)
    result = await team.ws.admit(ticket, principal="A1")
    assert (result.decision, result.reason, result.view) == ("refused", "role_not_held", None)
    assert (result.items, result.rejected, result.selection, result.coverage.uncovered) == ((), {}, {}, ())
    assert (result.coverage.coverage, result.coverage.critical) == (0, 0)


Reading = Callable[..., Awaitable[Any]]


async def _seen(team: Team, ticket: str, **clocks: Any) -> list[list[str]]:
    """What every way of reading gives to A1 at these clocks."""
    read = await team.ws.read(**A1, **clocks)
    joined = await team.ws.join(**A1, **clocks)
    admitted = await team.ws.admit(ticket, principal="A1", **clocks)
    return [
        [item.id for item in read],
        [*(item.id for item in joined.items), *joined.rejected, *joined.selection],
        [*(item.id for item in admitted.items), *admitted.rejected, *admitted.selection],
    ]


async def test_no_clock_reads_with_the_rights_of_yesterday(team: Team) -> None:
    granted = await team.ws.grant(role="itinerary", read=["notes"])
    await team.ws.record(hotel("n0", scope="notes"))
    ticket = await team.ws.depart(**A1)
    before: dict[str, Any] = {
        "valid_at": team.clock.now,
        "known_at": (await team.ws.record(hotel("x", scope="x"))).epoch,
    }
    assert await _seen(team, ticket, **before) == [["n0"]] * 3  # while it may
    was = team.clock.now
    team.clock.forward(hours=1)
    await team.ws.withdraw(granted.ids[0])
    for clocks in (before, {"valid_at": was}, {"known_at": before["known_at"]}, {"known_at": was}, {"as_of": was}):
        assert await _seen(team, ticket, **clocks) == [[]] * 3, clocks


async def test_no_clock_reads_with_the_rights_of_tomorrow(team: Team) -> None:
    tomorrow = START + timedelta(days=1)
    await team.ws.record(hotel("n0", scope="notes"))
    await team.ws.grant(role="itinerary", read=["notes"], valid_from=tomorrow)
    ticket = await team.ws.depart(**A1)
    assert await _seen(team, ticket, valid_at=tomorrow) == [[]] * 3
    team.clock.now = tomorrow
    assert await _seen(team, ticket, valid_at=tomorrow) == [["n0"]] * 3


async def test_no_clock_lends_a_role_that_is_gone(team: Team) -> None:
    await team.ws.record(hotel())
    was = team.clock.now
    ticket = await team.ws.depart(**A1)
    team.clock.forward(hours=1)
    await team.ws.withdraw(team.held)
    with refused("role_not_held"):
        await team.ws.read(**A1, as_of=was)
    assert (await team.ws.join(**A1, as_of=was)).decision == "refused"
    assert (await team.ws.admit(ticket, principal="A1", valid_at=was)).decision == "refused"
    with refused("role_not_held"):
        await team.ws.depart(**A1)


async def test_a_preview_signs_nothing_and_consumes_nothing(team: Team) -> None:
    await team.ws.record(hotel())
    ticket = await team.ws.depart(**A1)
    assert (await team.ws.admit(ticket, principal="A1", valid_at=START)).view is None
    assert (await team.ws.admit(ticket, principal="A1", known_at=START)).view is None
    assert (await team.ws.admit(ticket, principal="A1")).view is not None
