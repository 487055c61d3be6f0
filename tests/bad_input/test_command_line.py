"""The command line under bad input: a code or a usage error, exit 1 or 2, never a stack trace, never a forged line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.bad_input.conftest import Ran, Run
from tracegraph import Item, Receipt, sync
from tracegraph.model import Limits, new_id
from tracegraph.scenarios import forget

WORDS = "Zanzibar-4711"
DEEP = "[" * 100_000


@pytest.fixture(scope="module")
def shop(neo4j: dict[str, str]) -> Iterator[sync.Workspace]:
    """A workspace that commands may name; the test's handle is the API."""
    with sync.connect(neo4j["NEO4J_URI"], username=neo4j["NEO4J_USERNAME"], password=neo4j["NEO4J_PASSWORD"]) as graph:
        ws = graph.workspace(new_id("cli"), owner="lead")
        ws.grant(role="role", principal="P", read=["s"], write=["s"])
        ws.record(Item(id="i", scope="s", content=WORDS, receipts=[Receipt(id="r", uri="m", text="m")]))
        yield ws
        ws._portal.call(forget, ws._inner.graph, ws.id)


NO_UTF8 = "a\udcffb"
"""So Python hands over an argument that is not UTF-8."""

BAD: list[list[str]] = [
    # wrong kinds
    ["record", "c", "--scope", "s", "--kind", "none"],
    ["record", "c", "--scope", "s", "--valid-from", "yesterday"],
    ["record", "c", "--scope", "s", "--valid-from", "2026-05-01"],
    ["record", "c", "--scope", "s", "--valid-from", "2026-05-01T09:00:00"],
    ["record", "c", "--scope", "s", "--valid-from", "2016-12-31T23:59:60Z"],
    ["record", "c", "--scope", "s", "--valid-from", "0000-01-01T00:00:00Z"],
    ["record", "c", "--scope", "s", "--valid-from", "9999-12-31T23:59:59-01:00"],
    ["record", "c", "--scope", "s", "--valid-from", "9" * 5000],
    ["record", "c", "--scope", "s", "--valid-from", "2026-05-01T09:00:00Z", "--valid-to", "2026-05-01T09:00:00Z"],
    ["record", "c", "--scope", "s", "--receipt-text", "words of nobody"],
    ["record", "--file", "items.jsonl", "--id", "a"],
    ["record", "--file", "items.jsonl", "--receipt-uri", "mail:1"],
    ["sweep", "--batch", "--budget", "5"],
    ["record", "c"],
    ["record", "--scope", "s"],
    ["record", "", "--scope", "s"],
    ["record", "c", "--scope", ""],
    ["record", "c", "--scope", "s", "--id", ""],
    ["record", "c", "--scope", "s", "--id", "x" * (Limits.id + 1)],
    ["record", "x" * (Limits.content + 1), "--scope", "s"],
    ["record", "c", "--scope", "s", "--batch-id", ""],
    ["record", "c", "--scope", "s", "--batch-id", "x" * 257],
    ["record", "c", "--scope", "s", "--by", "stranger"],
    ["record", "c", "--scope", "s", "--by", ""],
    ["record", "c", "--scope", "s", "--depends-on", "none"],
    ["record", "c", "--scope", "s", "--receipt", "none"],
    ["record", "c", "--scope", "s", "--supports", ""],
    ["record", "c", "--scope", "s", "--receipt-uri", "m", "--receipt-text", "@none"],
    ["record", "c", "--file", "none"],
    ["record", "--file", "none"],
    ["record", "--file", "."],
    ["record", "--file", "\x00"[:0] + "x" * 5000],
    ["record", "c", "d", "--scope", "s"],
    ["record", "--no-such-option"],
    ["open-obligation", "c", "--scope", "s", "--requires", ""],
    ["advance", "none", "c"],
    ["resolve", "i"],
    ["revoke", "none"],
    ["revoke", "i", "--effective-from", "soon"],
    ["retract", "none"],
    ["withdraw", "none"],
    ["verdict", "i", "i", "invalidates"],
    ["verdict", "none", "i", "invalidates"],
    ["verdict", "i", "none", "maybe"],
    ["verdict", "i", "none", "invalidates", "--confidence", "nan"],
    ["verdict", "i", "none", "invalidates", "--confidence", "inf"],
    ["verdict", "i", "none", "invalidates", "--confidence", "2"],
    ["verdict", "i", "none", "invalidates", "--confidence", "much"],
    ["grant", "--role", ""],
    ["grant", "--role", "r"],
    ["grant", "--role", "r", "--read", "s", "--valid-to", "2020-01-01T00:00:00Z"],
    ["grant", "--role", "r", "--read", "s", "--by", "P"],
    ["deny", "--role", "r", "--principal", "P"],
    ["erase", "none", "--reason", "x"],
    ["erase", "i", "--reason", "x" * (Limits.note + 1)],
    *(
        ["policy", "--set", text]
        for text in (
            "max_items", "max_items=", "=1", "none=1", "max_items=-1", "max_items=1.5", "max_items=x", "max_items=null",
            "max_items=" + "9" * 30, "max_items=" + "9" * 5000, "max_items=" + DEEP, "coverage=NaN",
            "coverage=Infinity",
            "coverage=1e400", "coverage=\"1\"", "kinds=none", "kinds=5", "fill={}", "author=P", "batch_id=x", "self=1",
            "_portal=1", "fill=\ud800",
        )
    ),
    ["admit", "", "-p", "P"],
    ["admit", "a.b.c", "-p", "P"],
    ["admit", "@none", "-p", "P"],
    ["admit", "@.", "-p", "P"],
    ["admit", "@" + "x" * 5000, "-p", "P"],
    ["admit", "a.b.c", "-p", ""],
    ["view", "a.b.c", "-p", "P"],
    ["view", "@none", "-p", "P"],
    ["recall", "a.b.c", "-p", "P"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--known-at", "-1"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--known-at", "9" * 5000],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--known-at", "10000000000000000000000"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--known-at", "１２"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--known-at", "²"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--as-of", "now"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--as-of", "2026-05-01T09:00:00Z", "--valid-at", "2026-05-01T09:00Z"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--set", "max_items=65"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--set", "nonsense"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--query", "x" * (Limits.note + 1)],
    ["join", "-p", "stranger", "-r", "role", "-t", "t"],
    ["read", "-p", "stranger", "-r", "role", "-t", "t"],
    ["read", "-p", "P", "-r", "none", "-t", "t"],
    ["depart", "-p", "P", "-r", "none", "-t", "t"],
    ["remember", "c", "-p", "P", "--grounded-in", "none"],
    ["remember", "", "-p", "P", "--grounded-in", "i"],
    ["why", "none", "--cycle", "none"],
    ["why", "", "--cycle", ""],
    ["why", "x" * 257, "--cycle", "none"],
    ["cycle", "none"],
    ["exposure", "none"],
    ["replay", "none"],
    ["sweep", "--budget", "-1"],
    ["sweep", "--budget", "[/bold]"],
    ["history"],
    ["no-such-command"],
    ["keys", "none"],
    ["up", "--neo4j-version", "1.0"],
    ["status", "--neo4j-version", "../x"],
    ["check", "none.trace.yaml"],
    ["check", "x" * 5000],
    ["check"],
    ["eval", "statebench", "none.jsonl"],
    ["eval", "statebench", "none.jsonl", "--policy", "none"],
    ["import", "none.jsonl"],
    ["import", "."],
    ["import", "x" * 300],
    ["import", NO_UTF8],
    ["export", "none", "--output", "out.jsonl"],
    ["export", "none", "--json"],
    ["export", ""],
    ["export", NO_UTF8],
    ["create", "", "--owner", "lead"],
    ["create", "w", "--owner", ""],
    ["create", "w", "--owner", "lead", "--set", "max_items"],
    ["create", "w", "--owner", "lead", "--set", "max_items=x"],
]  # fmt: skip
HERE = {"up", "import", "export", "status", "check", "eval", "create", "keys", "no-such-command"}


def named(arguments: list[str], workspace: str) -> list[str]:
    return arguments if arguments[0] in HERE else [*arguments, "-w", workspace]


def test_every_bad_call_is_refused_in_one_or_two_lines(tracegraph_: Run, shop: sync.Workspace) -> None:
    before = shop.verify().digest
    for arguments in BAD:
        ran = tracegraph_(*named(arguments, shop.id))
        assert ran.code in (1, 2), arguments
        assert ran.err or ran.out, arguments
        assert WORDS not in ran.out + ran.err
        if ran.code == 1 and arguments[0] != "join":
            code = ran.err.partition(":")[0]
            assert code.isidentifier(), (arguments, ran.err)
            assert len(ran.err) < 1500, arguments
    assert shop.verify().digest == before


WITHOUT_UTF8: list[list[str]] = [
    ["record", NO_UTF8, "--scope", "s"],
    ["record", "c", "--scope", NO_UTF8],
    ["record", "c", "--scope", "s", "--id", NO_UTF8],
    ["record", "c", "--scope", "s", "--batch-id", NO_UTF8],
    ["record", "c", "--scope", "s", "--by", NO_UTF8],
    ["record", "c", "--scope", "s", "--valid-from", NO_UTF8],
    ["record", "--file", NO_UTF8],
    ["retract", NO_UTF8],
    ["withdraw", NO_UTF8],
    ["erase", NO_UTF8, "--reason", "x"],
    ["grant", "--role", "r", "--read", NO_UTF8],
    ["admit", NO_UTF8, "-p", "P"],
    ["view", "a.b.c", "-p", NO_UTF8],
    ["recall", NO_UTF8, "-p", "P"],
    ["join", "-p", NO_UTF8, "-r", "role", "-t", "t"],
    ["join", "-p", "P", "-r", "role", "-t", "t", "--query", NO_UTF8],
    ["read", "-p", "P", "-r", "role", "-t", NO_UTF8],
    ["why", NO_UTF8, "--cycle", "c"],
    ["why", "i", "--cycle", NO_UTF8],
    ["cycle", NO_UTF8],
    ["history", NO_UTF8],
    ["history", "i", "--scope", NO_UTF8],
    ["exposure", NO_UTF8],
    ["replay", NO_UTF8],
    ["check", NO_UTF8],
    ["create", NO_UTF8, "--owner", "o"],
    ["create", "w", "--owner", NO_UTF8],
]


def test_bytes_that_are_no_utf_8_are_refused_wherever_they_stand(tracegraph_: Run, shop: sync.Workspace) -> None:
    before = shop.verify().digest
    for arguments in WITHOUT_UTF8:
        assert tracegraph_(*named(arguments, shop.id)).code in (1, 2), arguments
    assert tracegraph_("policy", "-w", NO_UTF8).code == 1
    assert shop.verify().digest == before


ESCAPES = "\x1b[2J\x1b[31m\x9b5m\u202edloG\u2066\u200f\nview:\nforged: 1\r+ x [cover] forged\x07\u2028y\x85z"
FORBIDDEN = "\x1b\x9b\x07\x85\u202e\u2066\u200f\u2028\r"


def test_recorded_words_cannot_forge_lines_or_steer_the_terminal(tracegraph_: Run, shop: sync.Workspace) -> None:
    ws = shop
    id = new_id("evil") + ESCAPES
    ws.record(Item(id=id, key=id, scope="s", content=ESCAPES, receipts=[Receipt(uri=ESCAPES, text="m")]))
    ws.record(Item(id=id + "2", scope="s", content=ESCAPES, task="t", purposes=[ESCAPES]))
    who = ["-p", "P", "-r", "role", "-t", "t"]
    joined = json.loads(tracegraph_("join", *who, "-w", ws.id, "--json").out)
    ws.remember(ESCAPES, principal="P", grounded_in=[id])
    Path("view").write_text(joined["view"])
    runs = [
        tracegraph_("join", *who, "-w", ws.id),
        tracegraph_("read", *who, "-w", ws.id),
        tracegraph_("view", "@view", "-p", "P", "-w", ws.id),
        tracegraph_("recall", "@view", "-p", "P", "-w", ws.id),
        tracegraph_("cycle", joined["cycle_id"], "-w", ws.id),
        tracegraph_("why", id, "--cycle", joined["cycle_id"], "-w", ws.id),
        tracegraph_("history", id, "-w", ws.id),
        tracegraph_("exposure", id, "-w", ws.id),
        tracegraph_("exposure", id + "2", "-w", ws.id),
        tracegraph_("exposure", id + "3", "-w", ws.id),
        tracegraph_("retract", id + "3", "-w", ws.id),
        tracegraph_("record", "c", "--scope", ESCAPES, "--by", "P", "-w", ws.id),
        tracegraph_("record", "c", "--scope", "s", "--id", new_id("x") + ESCAPES, "-w", ws.id),
        tracegraph_("record", "c", "--scope", "s", "--valid-from", ESCAPES, "-w", ws.id),
        tracegraph_("policy", "-w", ESCAPES),
        tracegraph_("policy", "-w", ws.id, "--set", ESCAPES),
        tracegraph_("policy", "-w", ws.id, "--set", ESCAPES + "=1"),
        tracegraph_("check", ESCAPES),
    ]
    for ran in runs:
        for stream in (ran.out, ran.err):
            assert not set(FORBIDDEN) & set(stream)
            assert not any(line.startswith(("forged", "+ x")) for line in stream.splitlines())
    assert sum(line == "view:" for line in runs[0].out.splitlines()) == 1
    for arguments in (["join", *who], ["read", *who], ["view", "@view", "-p", "P"], ["recall", "@view", "-p", "P"]):
        ran = tracegraph_(*arguments, "-w", ws.id, "--json")
        assert not set(FORBIDDEN) & set(ran.out)
        assert ESCAPES in _texts(json.loads(ran.out))  # escaped, not changed
    refused = tracegraph_("retract", id + "3", "-w", ws.id, "--json")
    assert json.loads(refused.err)["error"]["code"] == "unknown_item"


def _texts(value: Any) -> set[str]:
    if isinstance(value, dict):
        return set().union(*map(_texts, value.values()))
    if isinstance(value, list):
        return set().union(*map(_texts, value))
    return {str(value)}


def test_a_statement_that_begins_with_an_at_sign_is_a_statement(tracegraph_: Run, shop: sync.Workspace) -> None:
    """It reads no file: whoever records another's words would hand out what that file holds."""
    Path("secret").write_text(WORDS)
    assert tracegraph_("record", "@secret", "--id", "at", "--scope", "s", "-w", shop.id).code == 0
    (version,) = shop.history("at")
    assert version.content == "@secret"
    ran = tracegraph_("remember", "@secret", "-p", "P", "--grounded-in", "i", "--id", "at-m", "-w", shop.id)
    assert ran.code == 0
    assert tracegraph_("open-obligation", "@secret", "--scope", "s", "--id", "at-o", "-w", shop.id).code == 0
    assert tracegraph_("advance", "at-o", "@secret", "--id", "at-f", "-w", shop.id).code == 0
    assert {version.content for version in shop.history("at-o")} == {"@secret"}


LINES = [
    "not json", "[]", "5", "null", '"x"', "{", DEEP, '{"a":' * 3000, "{}", '{"scope": "s"}',
    '{"scope": "s", "content": 5}', '{"scope": "s", "content": ""}', '{"scope": "s", "content": "\\ud800"}',
    '{"scope": "s", "content": "c", "x": 1}', '{"scope": "s", "content": "c", "kind": "frontier"}',
    '{"scope": "s", "content": "c", "valid_from": 5}',
    '{"scope": "s", "content": "c", "valid_from": "2026-05-01T09:00:00"}',
    '{"scope": "s", "content": "c", "valid_from": "2016-12-31T23:59:60Z"}',
    '{"scope": "s", "content": "c", "valid_from": "2026-05-01T09:00:00Z", "valid_to": "2026-05-01T09:00:00Z"}',
    '{"scope": "s", "content": "c", "supports": "d"}', '{"scope": "s", "content": "c", "supports": [NaN]}',
    '{"scope": "s", "content": "c", "receipts": [{"uri": "m"}]}', '{"scope": "s", "content": "c", "receipts": [5]}',
    '{"scope": "s", "content": "c", "id": "' + "x" * 257 + '"}',
    '{"scope": "s", "content": "c", "depends_on": ["none"]}',
    '{"scope": "s", "content": "c", "id": "i"}', '{"scope": "s", "content": "c", "key": NaN}', "\0", "\ufeff{}",
]  # fmt: skip


def test_a_file_with_one_bad_line_is_refused_whole_and_names_the_line(tracegraph_: Run, shop: sync.Workspace) -> None:
    before = shop.verify().digest
    good = json.dumps({"scope": "s", "content": WORDS})
    for line in LINES:
        Path("items.jsonl").write_text(f"{good}\n{line}\n{good}\n", encoding="utf-8")
        ran = tracegraph_("record", "--file", "items.jsonl", "-w", shop.id)
        assert ran.code in (1, 2), line
        assert WORDS not in ran.out + ran.err
        assert "line 2" in ran.err or any(code in ran.err for code in ("unknown_item", "conflict")), (
            line[:80],
            ran.err,
        )
    for data in (b"", b"\n\n", b"\xff\xfe", good.encode("utf-16")):
        Path("items.jsonl").write_bytes(data)
        assert tracegraph_("record", "--file", "items.jsonl", "-w", shop.id).code in (1, 2), data
    assert shop.verify().digest == before


def test_an_import_of_what_was_not_exported_is_refused(tracegraph_: Run) -> None:
    begin = '{"tracegraph": 1, "workspace": "w"}'
    for line in (*LINES, '{"scope": "s", "content": "' + WORDS + '"}'):
        for text in (f"{line}\n", f"{begin}\n{line}\n"):
            Path("history.jsonl").write_text(text, encoding="utf-8")
            ran = tracegraph_("import", "history.jsonl")
            assert ran.code in (1, 2), line[:80]
            assert WORDS not in ran.out + ran.err
    for data in (b"", b"\n", b"\0" * 1000, b"\xff\xfe", b"\x1f\x8b"):
        Path("history.jsonl").write_bytes(data)
        assert tracegraph_("import", "history.jsonl").code in (1, 2), data


def test_a_line_ends_at_a_newline_and_at_nothing_else(tracegraph_: Run, shop: sync.Workspace) -> None:
    """JSON may hold these raw; some of what splits lines would cut a statement in two."""
    words = "a\u2028b\u2029c\x85d\x7fe"
    line = json.dumps({"id": "lines", "scope": "s", "content": words}, ensure_ascii=False)
    Path("items.jsonl").write_text(line + "\r\n", encoding="utf-8", newline="")
    ran = tracegraph_("record", "--file", "items.jsonl", "-w", shop.id)
    assert ran.code == 0, ran.err
    (version,) = shop.history("lines")
    assert version.content == words


def test_standard_input_that_is_no_utf_8_is_a_usage_error(
    tracegraph_: Run, shop: sync.Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    for arguments in (["record", "-", "--scope", "s"], ["record", "--file", "-"], ["admit", "-", "-p", "P"]):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe"), encoding="utf-8"))
        ran: Ran = tracegraph_(*arguments, "-w", shop.id)
        assert ran.code == 2, arguments
        assert len(ran.err.splitlines()) == 1


def test_the_real_process_shows_no_stack_trace(neo4j: dict[str, str], shop: sync.Workspace, tmp_path: Path) -> None:
    """What only a process of its own can show: bytes as arguments, closed streams, an ASCII terminal."""
    command: list[str | bytes] = [sys.executable, "-c", "from tracegraph.cli import main; main()"]
    environment = {**os.environ, **neo4j, "TRACEGRAPH_KEYS": str(tmp_path), "TRACEGRAPH_WORKSPACE": shop.id}
    shop.record(Item(id="wide", key="wide", scope="s", content="Zoë 🏨 ホテル"))
    for arguments, more in (
        ([b"retract", b"\xff\xfe"], {}),
        ([b"history", b"wide", b"--json"], {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"}),
    ):
        done = subprocess.run(  # noqa: S603
            [*command, *arguments], env={**environment, **more}, capture_output=True, timeout=60, check=False
        )
        assert b"Traceback" not in done.stderr
        assert b"fault of tracegraph" not in done.stderr
        assert done.returncode == (1 if arguments[0] == b"retract" else 0)
    json.loads(done.stdout)
