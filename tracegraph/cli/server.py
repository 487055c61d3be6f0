"""The server: up, down, status, the demo, and the signing keys."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from tracegraph.cli import (
    SERVER,
    Json,
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
