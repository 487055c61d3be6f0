"""What an auditor takes to Neo4j Browser: the drawn queries, as favourites, and the style they are drawn in.

Reads and writes files only. The queries are those of `cypher/browser/`; Browser keeps what is dropped on it, so nothing
is installed in the server.
"""

from __future__ import annotations

import json
import os
import sys
import zipfile
from pathlib import Path
from urllib.parse import quote

from tracegraph.graph import cypher_folder
from tracegraph.model import Model

PLACES = ("WORKSPACE", "ITEM", "CYCLE", "PRINCIPAL")
"""What stands in the command for what was not said."""
STYLE, FAVOURITES, GUIDE = "tracegraph.grass", "favourites.zip", "guide.txt"


class Question(Model):
    """One drawn query. `title` is its first line, with its number and name, and what Browser calls the favourite."""

    name: str
    title: str
    parameters: tuple[str, ...]
    file: Path

    @property
    def text(self) -> str:
        return self.file.read_text(encoding="utf-8")


def folder() -> Path:
    """Where the queries and the style are."""
    return cypher_folder() / "browser"


def questions() -> tuple[Question, ...]:
    """Every drawn query, the one to start with first."""
    return tuple(sorted(map(_question, folder().glob("*.cypher")), key=lambda one: one.title))


def _question(file: Path) -> Question:
    lines = file.read_text(encoding="utf-8").splitlines()
    names = [line.split()[2] for line in lines if line.startswith("// :param ")]
    return Question(name=file.stem, title=lines[0].removeprefix("// "), parameters=tuple(names), file=file)


def parameters(**given: str | int | None) -> str:
    """The command that tells Browser what the queries are to be about."""
    return f":params {json.dumps(given, ensure_ascii=False)}"


def link(address: str, command: str) -> str:
    """The address that opens Browser with a command in its editor, not run; without one that a link cannot carry."""
    carried = not any(sign in command for sign in "&#")
    return f"{address}/?cmd=edit&arg={quote(command, safe='')}" if carried else f"{address}/"


def steps(command: str, written: Path | None = None) -> list[str]:
    """How to ask, for a person who has Browser open."""
    where = written or folder()
    load = f"3. Paste a query of {where}, or make favourites of them all: tracegraph browser --write FOLDER"
    if written is not None:
        load = f"3. Drag {where / FAVOURITES} onto Browser. Nothing shows; the queries are under the star, tracegraph."
    return [
        f"1. Connect, and run this in the editor{_missing(command)}:",
        f"   {command}",
        f"2. Drag {where / STYLE} onto Browser: red invalidates and revokes, grey supersedes.",
        load,
        "4. Run one (the triangle beside a favourite's name) and close the list. Graph draws it, Table tells it;",
        "   click an arrow for its reasons or its quote, a receipt for the words that a quote is from.",
        "   To ask about another return: :param cycle => '...', with a cycle from the table of the first.",
        *(f"   {one.title} ({', '.join(one.parameters)})" for one in questions()),
    ]


def _missing(command: str) -> str:
    """What a person must still put into the command."""
    left = [name for name in PLACES if f'"{name}"' in command]
    return f", with yours for {', '.join(left)}" if left else ""


def write(target: Path, command: str) -> list[Path]:
    """Write the queries, one file that makes favourites of them, the style and the guide; the files written."""
    target.mkdir(parents=True, exist_ok=True)
    made = [target / FAVOURITES, target / STYLE, target / GUIDE]
    with zipfile.ZipFile(target / FAVOURITES, "w") as favourites:
        for one in questions():
            favourites.writestr(zipfile.ZipInfo(f"tracegraph/{one.file.name}"), one.text)
            made.append(target / one.file.name)
            made[-1].write_text(one.text, encoding="utf-8")
    (target / STYLE).write_text((folder() / STYLE).read_text(encoding="utf-8"), encoding="utf-8")
    (target / GUIDE).write_text("\n".join(steps(command, target)) + "\n", encoding="utf-8")
    return made


def has_desktop() -> bool:
    """Whether a person sits before this terminal, with a screen that a browser could open on."""
    shown = sys.platform in ("darwin", "win32") or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    return bool(shown) and sys.stdout.isatty()
