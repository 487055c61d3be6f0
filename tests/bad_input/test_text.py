"""Hostile text wherever text is taken: stored and read back exactly, up to the limits, or refused with its code."""

from __future__ import annotations

import unicodedata
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.bad_input.conftest import Filled
from tracegraph import Frontier, Graph, Item, Obligation, Receipt, ReceiptRef, Support, TracegraphError
from tracegraph.explanation import render_why
from tracegraph.model import Limits, new_id
from tracegraph.scenarios import forget

pytestmark = pytest.mark.anyio

HOSTILE = {
    "Cypher": "'}) DETACH DELETE n //",
    "Cypher in backticks": "x`}) MATCH (n) SET n.owner = 'me' RETURN `",
    "Cypher in double quotes": '"}) CALL dbms.shutdown() //',
    "parameter": "$workspace {workspace: $workspace} ${jndi:ldap://127.0.0.1/x}",
    "unicode escape of a quote": "\\u0027 OR 1=1",
    "null byte": "a\0b",
    "only null": "\0",
    "control characters": "".join(map(chr, range(1, 32))) + "\x7f\x80\x9b\x9f",
    "terminal": "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "line separators": "a\r\nb\rc\x0bd\x0ce\x85f\u2028g\u2029h",
    "bidi marks": "\u202eevil\u202c \u2066x\u2069 \u200f\u061c",
    "invisible": "\u200b\u200c\u200d\u2060\ufeff\u00ad\u180e",
    "byte order marks": "\ufeffa\ufffeb",
    "non-characters": "\uffff\U0001fffe\U0010ffff",
    "private use": "\ue000\U000f0000",
    "combining marks": "e" + "\u0301" * 30,
    "only combining": "\u0301\u0308",
    "emoji": "👩‍👩‍👧‍👦🏴󠁧󠁢󠁥󠁮󠁧󠁿" * 5,
    "spaces": " \u00a0\u3000\t ",
    "normal forms": "é e\u0301 ﬁ Å Å \u1e9b\u0323",
    "turkish": "İıIi ß ẞ ſ",
    "json": '{"a": [1, 2], "__proto__": null}',
    "markup": "[bold]x[/bold] [/] <b>&amp;",
    "format": "%s %n {0} {x.__class__}",
    "path": "../../etc/passwd",
    "number": "0123",
    "nothing": "null",
    "python": "None",
}


async def test_each_hostile_text_alone_is_read_back_exactly(graph: Graph) -> None:
    """As id, key, scope, content, task, dependency and receipt of an item; all of them in one workspace."""
    ws = await graph.workspace(new_id("w"), owner="lead")
    try:
        await ws.grant(role="role", principal="P", read=list(HOSTILE.values()))
        await ws.record(*(
            Item(id=text, key=text, scope=text, content=text, task=text, purposes=[text], role=text,
                 supports=[Support(dependency=text, receipt=text + "r")],
                 receipts=[Receipt(id=text + "r", uri=text, text=text, issuer=text)])
            for text in HOSTILE.values()
        ))  # fmt: skip
        found = {item.id: item for item in await ws.read(principal="P", role="role", task="t")}
        assert set(found) == set(HOSTILE.values())
        for text, item in found.items():
            assert (item.key, item.scope, item.content) == (text, text, text)
        assert (await ws.verify()).intact
    finally:
        await forget(graph, ws.id)


TOGETHER = ["".join(list(HOSTILE.values())[start::3]) for start in range(3)]


@pytest.mark.parametrize("text", TOGETHER, ids=["first", "second", "third"])
async def test_hostile_text_is_read_back_exactly_from_every_place(graph: Graph, text: str) -> None:
    """One workspace whose every name and every word is the text."""
    text = text[:210]
    id = new_id("w") + text
    ws = await graph.workspace(id, owner=text)
    try:
        await ws.grant(role=text, principal=text, read=[text], write=[text])
        receipt = Receipt(id=text + "r", uri=text, text=text, issuer=text, origin=text)
        fact = Item(
            id=text, key=text, scope=text, content=text, task=text, purposes=[text], role=text,
            supports=[Support(dependency=text, receipt=text + "r")], receipts=[receipt],
        )  # fmt: skip
        done = await ws.record(fact, author=text, batch_id=text)
        assert (done.workspace, done.batch_id, done.author, done.ids) == (id, text, text, (text + "r", text))
        owed = Obligation(id=text + "o", key=text, scope=text, content=text, role=text, task=text, purposes=[text],
                          requires=[text], frontier=Frontier(id=text + "f", content=text))  # fmt: skip
        await ws.open_obligation(owed, author=text)
        await ws.remember(text, principal=text, grounded_in=[text], id=text)
        who = {"principal": text, "role": text, "task": text}
        result = await ws.admit(
            await ws.depart(**who),
            principal=text,
            purpose=text,
            workload=text,
            query=text,
            policy={"fill": "relevance"},
        )
        assert result.decision == "admitted"
        assert {item.id for item in result.items} == {text, text + "o", text + "f"}
        view = await ws.open_view(result.view or "", **who)
        assert (view.workspace, view.principal, view.role, view.task, view.purpose, view.workload) == (id, *[text] * 5)
        for items in (result.items, view.items, await ws.read(**who)):
            assert {(item.key, item.scope, item.content) for item in items} == {(text, text, text)}
        assert [one.content for one in await ws.recall(result.view, principal=text, query=text)] == [text]
        (version,) = await ws.history(text, scope=text, kind="fact")
        assert (version.id, version.content, version.author, version.task) == (text, text, text, text)
        why = await ws.why(text, result.cycle_id)
        assert (why.item.content, why.receipts[0].uri, why.receipts[0].issuer) == (text, text, text)
        assert all(not one.isspace() for one in render_why(why))
        shown = await ws.exposure(text)
        assert [(one.principal, one.purpose, one.workload) for one in shown.views] == [(text, text, text)]
        assert (await ws.cycle(result.cycle_id)).principal == text
        assert (await ws.replay(result.cycle_id)).equal
        await ws.verdict(later=text + "o", earlier=text, says="uncertain", quote=text, rationale=text, task=text)
        await ws.revoke(text, reason=text, author=text)
        (ended,) = (await ws.why(text, (await ws.join(**who, purpose=text)).cycle_id)).revocations
        assert ended.reason == text
        await ws.erase(text, reason=text)
        assert (await ws.verify()).intact
    finally:
        await forget(graph, id)


WIDEST = "\U0001f9ff"
"""Four bytes in UTF-8, two units in UTF-16: the widest character there is."""


async def test_the_longest_of_everything_is_stored_and_read_back(graph: Graph) -> None:
    """At each limit, in the widest characters: indexes and messages must hold it."""
    name, words, note = WIDEST * Limits.id, WIDEST * Limits.content, WIDEST * Limits.note
    id = new_id("w")
    id += WIDEST * (Limits.id - len(id))
    ws = await graph.workspace(id, owner=name, policy={"max_item_chars": 10**6, "max_chars": 10**7})
    try:
        await ws.grant(role=name, principal=name, read=[name], write=[name])
        receipt = Receipt(id=name[:-1] + "r", uri=note, text=WIDEST * Limits.text, issuer=note, origin=note)
        links = [name, *(str(n) for n in range(Limits.links - 1))]
        fact = Item(id=name, key=name, scope=name, content=words, task=name, role=name, purposes=links,
                    receipts=[receipt], supports=links)  # fmt: skip
        assert (await ws.record(fact, batch_id=name)).batch_id == name
        many = [Receipt(uri="m", text="m") for _ in range(Limits.links)]
        await ws.record(Item(id="many", scope=name, content="c", receipts=many))
        await ws.remember(words, principal=name, grounded_in=[name])
        who = {"principal": name, "role": name, "task": name}
        joined = await ws.join(**who, purpose=name, workload=name, query=note)
        assert joined.view is not None
        assert {item.content for item in (await ws.open_view(joined.view, **who)).items} == {words, "c"}
        assert [one.content for one in await ws.recall(joined.view, principal=name, query=note)] == [words]
        await ws.depart(**who)
        assert (await ws.revoke(name, reason=note)).epoch
        assert (await ws.why(name, joined.cycle_id)).receipts[0].uri == note
        assert (await ws.verify()).intact
    finally:
        await forget(graph, id)


LIMITS: list[tuple[str, int, Any]] = [
    ("content", Limits.content, lambda n: Item(scope="s", content="x" * n)),
    ("id", Limits.id, lambda n: Item(scope="s", content="c", id="x" * n)),
    ("key", Limits.id, lambda n: Item(scope="s", content="c", key="x" * n)),
    ("scope", Limits.id, lambda n: Item(scope="x" * n, content="c")),
    ("dependency", Limits.id, lambda n: Item(scope="s", content="c", supports=["x" * n])),
    ("purposes", Limits.links, lambda n: Item(scope="s", content="c", purposes=[str(one) for one in range(n)])),
    ("supports", Limits.links, lambda n: Item(scope="s", content="c", supports=[str(one) for one in range(n)])),
    ("receipts", Limits.links, lambda n: Item(scope="s", content="c", receipts=[ReceiptRef(id="r")] * n)),
    ("text", Limits.text, lambda n: Receipt(uri="m", text="x" * n)),
    ("uri", Limits.note, lambda n: Receipt(uri="x" * n, text="")),
    ("obligation", Limits.content, lambda n: Obligation(scope="s", content="x" * n)),
    ("requires", Limits.links, lambda n: Obligation(scope="s", content="c", requires=[str(one) for one in range(n)])),
    ("frontier", Limits.content, lambda n: Frontier(content="x" * n)),
]


@pytest.mark.parametrize(("what", "limit", "make"), LIMITS, ids=[what for what, _, _ in LIMITS])
def test_each_size_is_taken_up_to_its_limit_and_not_above(what: str, limit: int, make: Any) -> None:
    for size in (limit - 1, limit):
        make(size)
    with pytest.raises(TracegraphError) as error:
        make(limit + 1)
    assert error.value.code == "limit_exceeded"


async def test_a_batch_is_taken_up_to_its_limit_and_not_above(filled: Filled) -> None:
    ws = filled.ws
    before = await ws.verify()
    item = Item(id="many", scope="s", content="c")
    with pytest.raises(TracegraphError) as error:
        await ws.record(*[item] * (Limits.batch + 1))
    assert error.value.code == "limit_exceeded"
    with pytest.raises(TracegraphError) as error:
        await ws.record(*[item] * Limits.batch)  # taken as a batch, whose ids are then found to be twice the same
    assert error.value.code == "conflict"
    assert (await ws.verify()).digest == before.digest


async def test_a_character_is_counted_once_however_wide_it_is(filled: Filled) -> None:
    ws = filled.ws
    flags, marks = "🇺🇳" * (Limits.content // 2), "e" + "\u0301" * (Limits.content - 1)
    await ws.record(Item(id="flags", scope="s", content=flags), Item(id="marks", scope="s", content=marks))
    for id, words in (("flags", flags), ("marks", marks)):
        (version,) = await ws.history(id)
        assert version.content == words
        with pytest.raises(TracegraphError) as error:
            Item(scope="s", content=words + "x")
        assert error.value.code == "limit_exceeded"


NFC, NFD = unicodedata.normalize("NFC", "Zoë\u0301"), unicodedata.normalize("NFD", "Zoë\u0301")
ALIKE = [
    NFC,
    NFD,
    NFC.casefold(),
    NFC + " ",
    " " + NFC,
    NFC + "\u200b",
    NFC + "\0",
    unicodedata.normalize("NFKD", NFC) + "\u034f",
]


async def test_names_that_only_look_alike_are_different_names(graph: Graph) -> None:
    """No name is normalized, so a right to one is no right to the other."""
    id = new_id("w")
    ws = await graph.workspace(id, owner="lead")
    assert len(set(ALIKE)) == len(ALIKE)
    try:
        await ws.record(*(Item(id=name, scope="s", content=name) for name in ALIKE))
        await ws.record(*(Item(scope=name, content=name, receipts=[Receipt(uri="m", text="m")]) for name in ALIKE))
        for name in ALIKE:
            (version,) = await ws.history(name)
            assert version.content == name
        await ws.grant(role=NFC, principal=NFC, read=[NFC], write=[NFC])
        who = {"principal": NFC, "role": NFC, "task": "t"}
        assert [item.content for item in await ws.read(**who)] == [NFC]
        for other in ALIKE[1:]:
            assert (await ws.join(**{**who, "principal": other})).reason == "unknown_principal"
            assert (await ws.join(**{**who, "role": other})).reason == "role_not_held"
            for scope, author in ((other, NFC), (NFC, other)):
                with pytest.raises(TracegraphError) as error:
                    await ws.record(Item(scope=scope, content="c"), author=author)
                assert error.value.code in ("write_not_granted", "unknown_principal")
        await ws.deny(role=NFC, read=[NFD])
        assert [item.content for item in await ws.read(**who)] == [NFC]
        with pytest.raises(TracegraphError) as error:
            await graph.workspace(id, owner="lead\u200b")
        assert error.value.code == "conflict"
    finally:
        await forget(graph, id)


ANY = st.characters(exclude_categories=())
"""Lone surrogates included."""


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.text(st.characters(exclude_categories=()), max_size=300),
    key=st.text(st.characters(exclude_categories=()), max_size=40),
)
async def test_any_text_is_stored_exactly_or_refused(filled: Filled, content: str, key: str) -> None:
    id = new_id("any")
    try:
        item = Item(id=id, scope="s", key=key, content=content)
    except TracegraphError as error:
        storable = not any("\ud800" <= char <= "\udfff" for char in content + key)
        if (storable and content and key) or error.code not in ("invalid_record", "limit_exceeded"):
            raise
        return
    await filled.ws.record(item)
    (version,) = [one for one in await filled.ws.history(key) if one.id == id]
    assert (version.content, version.key) == (content, key)
