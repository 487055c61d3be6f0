"""The server: up, down, status, the demo, and the signing keys."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from tracegraph.cli import (
    SERVER,
    Json,
    Name,
    app,
    keys_app,
    run,
    show,
)


@app.command(rich_help_panel=SERVER)
def up(
    version: Annotated[str | None, typer.Option("--neo4j-version", help="2026.09.0 (default) or 5.26.")] = None,
    as_json: Json = False,
) -> None:
    """Start the embedded Neo4j, or find it running. The first start fetches it once.

    Example: tracegraph up
    """
    from tracegraph import embedded, warm

    cold = embedded.status(version=version) is None
    server = embedded.start(version)
    if cold:
        warm.in_background(server)
    show(_server(server), as_json, _server_lines(server))


@app.command(rich_help_panel=SERVER)
def down(
    version: Annotated[str | None, typer.Option("--neo4j-version", help="Which one, if not the default.")] = None,
    as_json: Json = False,
) -> None:
    """Stop the embedded Neo4j; its data stays.

    Example: tracegraph down
    """
    from tracegraph import embedded

    stopped = embedded.stop(version=version)
    show({"stopped": stopped}, as_json, ["stopped" if stopped else "was not running"])


@app.command(rich_help_panel=SERVER)
def status(
    version: Annotated[str | None, typer.Option("--neo4j-version", help="Which one, if not the default.")] = None,
    as_json: Json = False,
) -> None:
    """Say whether the embedded Neo4j runs, and where. Exit code 1 when it does not.

    Example: tracegraph status --json
    """
    from tracegraph import embedded

    server = embedded.status(version=version)
    if server is None:
        show({"running": False}, as_json, ["not running; start it with: tracegraph up"])
        raise typer.Exit(1)
    show(_server(server), as_json, _server_lines(server))


def _server(server: Any) -> dict[str, Any]:
    return {
        "running": True,
        "version": server.version,
        "bolt": server.bolt_uri,
        "browser": f"{server.http_uri}/browser",
        "username": server.username,
        "password_file": str(server.password_file),
        "pid": server.pid,
        "data": str(server.data),
    }


def _server_lines(server: Any) -> list[str]:
    return [
        f"Neo4j {server.version} at {server.bolt_uri}, process {server.pid}",
        f"Browser: {server.http_uri}/browser  (user {server.username}, password in {server.password_file})",
        f"Data: {server.data}",
    ]


@app.command(rich_help_panel=SERVER)
def doctor(
    version: Annotated[str | None, typer.Option("--neo4j-version", help="Which embedded server.")] = None,
    as_json: Json = False,
) -> None:
    """Look whether this installation and its server are fit for work, and say what to do. Exit code 1 on a failure.

    Looks at Java, the jars and their hashes, key files, disk, model, server, schema, indexes and clock; starts
    nothing and changes nothing.

    Example: tracegraph doctor --json
    """
    from tracegraph.doctor import doctor as look

    found = run(lambda: look(version))
    failed = any(one.status == "failure" for one in found)
    marks = {"ok": "ok     ", "warning": "warning", "failure": "FAILURE"}
    show(
        {"fit": not failed, "findings": found},
        as_json,
        [
            line
            for one in found
            for line in (f"{marks[one.status]}  {one.what}: {one.detail}", f"         {one.hint}" if one.hint else None)
            if line is not None
        ],
    )
    if failed:
        raise typer.Exit(1)


@app.command(rich_help_panel=SERVER)
def browser(
    workspace: Name = "",
    item: Annotated[str, typer.Option(help="The item to ask about.")] = "ITEM",
    cycle: Annotated[str, typer.Option(help="The return to ask about; the query `returns` lists an item's.")] = "CYCLE",
    principal: Annotated[str, typer.Option("--principal", "-p", help="Whose sight to ask about.")] = "PRINCIPAL",
    at: Annotated[str | None, typer.Option(help="The past moment to ask about; by default this one.")] = None,
    write: Annotated[Path | None, typer.Option(help="Write the queries, favourites, style and guide there.")] = None,
    version: Annotated[str | None, typer.Option("--neo4j-version", help="Which one, if not the default.")] = None,
    as_json: Json = False,
) -> None:
    """Say how to audit in Neo4j Browser, and open it where there is a desktop. Exit code 1 when the server is down.

    Example: tracegraph browser -w trip --item p0 --write audits
    """
    from datetime import UTC, datetime

    from tracegraph import browser, embedded

    about = {"workspace": workspace or "WORKSPACE", "item": item, "cycle": cycle, "principal": principal, "role": None}
    others = dict.fromkeys(
        ("task", "key", "scope", "kind", "model", "author")
    )  # the tables of cypher/audit ask for them
    now = datetime.now(UTC)
    command = browser.parameters(
        **about, at=at or now.strftime("%Y-%m-%dT%H:%M:%SZ"), now=int(now.timestamp() * 1e6), **others
    )
    written = browser.write(write, command) if write else []
    server = embedded.status(version=version) if "NEO4J_URI" not in os.environ else None
    found: dict[str, Any] = {"running": server is not None, "browser": None, "username": None, "password_file": None}
    if server is not None:
        found |= {name: value for name, value in _server(server).items() if name in found}
        where = _server_lines(server)[1]
        if browser.has_desktop() and not as_json:
            import webbrowser

            webbrowser.open(browser.link(found["browser"], command))
    elif "NEO4J_URI" in os.environ:
        found |= {"running": None, "username": os.environ.get("NEO4J_USERNAME", "neo4j")}
        where = f"Browser: your server's own, often at port 7474, path /browser  (user {found['username']})"
    else:
        where = "Browser: not running; start it with: tracegraph up"
    questions = [{"name": one.name, "title": one.title, "file": one.file} for one in browser.questions()]
    found |= {"command": command, "queries": questions, "style": browser.folder() / browser.STYLE, "written": written}
    show(found, as_json, [where, *browser.steps(command, write)])
    if found["running"] is False:
        raise typer.Exit(1)


@app.command(rich_help_panel=SERVER)
def demo(
    llm: Annotated[bool, typer.Option("--llm", help="Let the configured model judge, not canned verdicts.")] = False,
    as_json: Json = False,
) -> None:
    """Play the paper's travel case and explain each decision.

    Example: tracegraph demo
    """
    from tracegraph.demo import play

    run(lambda: play(as_json, llm))


@keys_app.command("show")
def keys_show(as_json: Json = False) -> None:
    """Say which key signs, and where the keys are.

    Example: tracegraph keys show
    """
    from tracegraph.signing import default_keys

    keys = default_keys()
    kid = keys.current()
    show({"current": kid, "folder": str(keys.folder)}, as_json, [f"{kid} in {keys.folder}"])


@keys_app.command("rotate")
def keys_rotate(as_json: Json = False) -> None:
    """Sign with a new key from now on; what the old one signed still verifies.

    Example: tracegraph keys rotate
    """
    from tracegraph.signing import default_keys

    kid = default_keys().rotate()
    show({"current": kid}, as_json, [kid])
