"""Reads one scenario file (DESIGN §13): YAML 1.2 to a checked `Scenario`, or `MalformedScenario`.

Names and texts are their scalars' own text, so `no`, `off`, `12:30` and `id: 12` are strings. What a file may
say is the tables below. Whether the product takes a value is the product's answer when the step is played,
never decided here.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from tracegraph.admission.gates import GATE_OF
from tracegraph.errors import HINTS, TracegraphError
from tracegraph.model import Grant, Limits, Policy, new_id

T = TypeVar("T")

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 32
MAX_NODES = 1_000_000
"""Values in one file, each alias counted as all that it stands for."""

DECISIONS = ("admitted", "blocked", "reset", "refused")
SELECTION = ("not_selected", "mandatory_over_budget", "missing_frontier", "obligation_not_admissible")
"""What the cover decides about an item (DESIGN §9)."""

FIRST_INSTANT = datetime.min.replace(tzinfo=UTC)


class MalformedScenario(TracegraphError):
    """A file that is no scenario. `str()` is `FILE:LINE: message`."""

    def __init__(self, message: str, *, path: str, line: int) -> None:
        super().__init__(message, code="invalid_record", hint="")
        self.path = path
        self.line = line

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Step:
    """One step: its act with the given fields, by the names of DESIGN §13, and what is expected of it."""

    number: int
    line: int
    act: str
    given: Any
    """A mapping; for `record`, a list of them. Instants are datetimes, naive where the file has them so."""
    at: datetime | None
    name: str | None
    expect: Mapping[str, Any]
    lines: Mapping[str, int]
    """The line of each field of `expect`."""


@dataclass(frozen=True)
class Scenario:
    """A scenario file's content. `grants` are its roles and principals, as the owner grants them."""

    path: str
    name: str
    clock: datetime
    policy: Mapping[str, Any]
    grants: tuple[Grant, ...]
    steps: tuple[Step, ...]


def load(path: str | Path) -> Scenario:
    """The scenario in a file. Raises `MalformedScenario`."""
    try:
        try:
            return _scenario(str(path), _compose(_text(Path(path))))
        except RecursionError:
            raise _FaultError(1, "the file is nested too deeply") from None
    except _FaultError as fault:
        raise MalformedScenario(fault.message, path=str(path), line=fault.line) from None


class _FaultError(Exception):
    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.line = line
        self.message = message


# --- YAML to nodes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Scalar:
    line: int
    text: str
    plain: bool
    size: int = 1


@dataclass(frozen=True)
class _Sequence:
    line: int
    entries: list[_Node]
    size: int


@dataclass(frozen=True)
class _Mapping:
    line: int
    fields: dict[str, tuple[_Scalar, _Node]]
    """Key text to the key and its value."""
    size: int


_Node = _Scalar | _Sequence | _Mapping


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _FaultError(1, f"cannot be read: {error.strerror}") from None
    if len(data) > MAX_BYTES:
        raise _FaultError(1, f"has {len(data)} bytes; a scenario has at most {MAX_BYTES}")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _FaultError(data.count(b"\n", 0, error.start) + 1, "is not UTF-8") from None


def _compose(text: str) -> _Node:
    """The one document, from the parser's events: bounded in depth and size, with no recursion of its own."""
    from ruamel.yaml import YAML, events
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.reader import ReaderError

    composer = _Composer()
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            line = event.start_mark.line + 1
            match event:
                case events.DocumentStartEvent():
                    composer.document(line, event.version)
                case events.AliasEvent():
                    composer.alias(line, event.anchor)
                case events.ScalarEvent():
                    _refuse_tag(line, event.tag, "str")
                    composer.scalar(line, event.value, bool(event.implicit[0]) and not event.tag, event.anchor)
                case events.SequenceStartEvent():
                    _refuse_tag(line, event.tag, "seq")
                    composer.open(line, event.anchor, mapping=False)
                case events.MappingStartEvent():
                    _refuse_tag(line, event.tag, "map")
                    composer.open(line, event.anchor, mapping=True)
                case events.SequenceEndEvent() | events.MappingEndEvent():
                    composer.close()
                case _:
                    pass
    except MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        what = " ".join(part for part in (error.context, error.problem) if part)
        raise _FaultError(mark.line + 1 if mark else 1, f"is not YAML: {what}") from None
    except ReaderError as error:
        line = text.count("\n", 0, int(error.position)) + 1
        raise _FaultError(line, "is not YAML: a character that YAML forbids") from None
    except (YAMLError, ValueError, ArithmeticError, LookupError, AssertionError, TypeError, AttributeError):
        raise _FaultError(1, "is not YAML that the parser understands") from None
    if composer.root is None:
        raise _FaultError(1, "is empty")
    return composer.root


def _refuse_tag(line: int, tag: Any, plain: str) -> None:
    if tag is not None and str(tag) not in ("!", f"tag:yaml.org,2002:{plain}"):
        raise _FaultError(line, f"the tag {str(tag)[:64]} has no meaning here")


class _Composer:
    def __init__(self) -> None:
        self.root: _Node | None = None
        self._documents = 0
        self._anchors: dict[str, _Node] = {}
        self._open: list[tuple[int, str | None, bool, list[_Node]]] = []

    def document(self, line: int, version: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise _FaultError(line, "holds a second document; a file is one scenario")
        if version is not None and tuple(version) != (1, 2):
            raise _FaultError(line, "asks for another YAML than 1.2")

    def alias(self, line: int, anchor: str) -> None:
        if anchor not in self._anchors:
            raise _FaultError(line, f"the alias *{anchor} names nothing that is complete before it")
        self._add(line, self._anchors[anchor])

    def scalar(self, line: int, text: str, plain: bool, anchor: str | None) -> None:
        if not text.isascii():  # JSON, which is YAML, writes one wide character as two escapes
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
        self._complete(line, _Scalar(line, text, plain), anchor)

    def open(self, line: int, anchor: str | None, *, mapping: bool) -> None:
        if len(self._open) == MAX_DEPTH:
            raise _FaultError(line, f"is nested deeper than {MAX_DEPTH}")
        self._open.append((line, anchor, mapping, []))

    def close(self) -> None:
        line, anchor, mapping, parts = self._open.pop()
        size = 1 + sum(part.size for part in parts)
        if size > MAX_NODES:
            raise _FaultError(line, f"holds more than {MAX_NODES} values once its aliases are followed")
        self._complete(line, _mapping(line, parts, size) if mapping else _Sequence(line, parts, size), anchor)

    def _complete(self, line: int, node: _Node, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        self._add(line, node)

    def _add(self, line: int, node: _Node) -> None:
        if self._open:
            self._open[-1][3].append(node)
        else:
            self.root = node


def _mapping(line: int, parts: Sequence[_Node], size: int) -> _Mapping:
    fields: dict[str, tuple[_Scalar, _Node]] = {}
    for key, value in zip(parts[::2], parts[1::2], strict=True):
        if not isinstance(key, _Scalar) or _is_null(key):
            raise _FaultError(key.line, "a key must be a string")
        if key.text in fields:
            raise _FaultError(key.line, f"the key {_shown(key.text)} is given twice")
        fields[key.text] = (key, value)
    return _Mapping(line, fields, size)


# --- nodes to values --------------------------------------------------------------------------------------

Convert = Callable[[_Node, str], Any]
"""From a node and the name of what it is, to a value; raises `_FaultError`."""


@dataclass(frozen=True)
class _Field:
    convert: Convert
    required: bool = False
    null: bool = True
    """Whether null is as good as left out."""


def _shown(text: str) -> str:
    return repr(text if len(text) <= 64 else text[:63] + "…")


def _is_null(node: _Node) -> bool:
    return isinstance(node, _Scalar) and node.plain and node.text in ("", "~", "null", "Null", "NULL")


def _wrong(node: _Node, what: str, wanted: str) -> NoReturn:
    found = {_Sequence: "a list", _Mapping: "a mapping"}.get(type(node), "null" if _is_null(node) else "a scalar")
    raise _FaultError(node.line, f"{what} must be {wanted}, not {found}")


def _string(node: _Node, what: str) -> str:
    if not isinstance(node, _Scalar) or _is_null(node):
        _wrong(node, what, "a string")
    return node.text


def _strings(node: _Node, what: str) -> tuple[str, ...]:
    if not isinstance(node, _Sequence):
        _wrong(node, what, "a list of strings")
    return tuple(_string(entry, f"an entry of {what}") for entry in node.entries)


_NUMBER = re.compile(r"[-+]?(?:[0-9]+|(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?)", re.ASCII)


def _number(node: _Node, what: str) -> int | float:
    if not isinstance(node, _Scalar) or not node.plain or not _NUMBER.fullmatch(node.text) or len(node.text) > 64:
        _wrong(node, what, "a number")
    if node.text.lstrip("+-").isdigit():
        return int(node.text)
    value = float(node.text)
    if not math.isfinite(value):
        _wrong(node, what, "a finite number")
    return value


def _instant(node: _Node, what: str) -> datetime:
    """An instant, naive if the file has it so: the act then answers `naive_datetime`."""
    text = _string(node, what)
    try:
        moment = datetime.fromisoformat(text)
        if moment.utcoffset() is not None:
            moment.astimezone(UTC)
    except ValueError:
        raise _FaultError(node.line, f"{what}: {_shown(text)} is no instant such as 2026-05-01T09:00:00Z") from None
    except OverflowError:
        message = f"{what}: {_shown(text)} is outside the years 1 to 9999 in UTC"
        raise _FaultError(node.line, message) from None
    return moment


def _aware(node: _Node, what: str) -> datetime:
    moment = _instant(node, what)
    if moment.utcoffset() is None:
        raise _FaultError(node.line, f"{what} has no offset; write for example {moment.isoformat()}Z")
    return moment


def _one_of(values: Sequence[str]) -> Convert:
    def convert(node: _Node, what: str) -> str:
        text = _string(node, what)
        if text not in values:
            raise _FaultError(node.line, f"{what}: {_shown(text)} is unknown{_nearest(text, values)}")
        return text

    return convert


def _reasons_by_item(reasons: Sequence[str]) -> Convert:
    def convert(node: _Node, what: str) -> dict[str, tuple[str, ...]]:
        if not isinstance(node, _Mapping):
            _wrong(node, what, "a mapping from item to reasons")
        out = {}
        for id, (_, value) in node.fields.items():
            if not isinstance(value, _Sequence):
                _wrong(value, f"{what} {id}", "a list of reasons")
            out[id] = tuple(_one_of(reasons)(entry, f"{what} {id}") for entry in value.entries)
        return out

    return convert


def _nearest(name: str, names: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, names, 1)
    return f"; did you mean {near[0]}?" if near else f"; known: {', '.join(names)}" if names else ""


def _fields(node: _Node, what: str, known: Mapping[str, _Field]) -> dict[str, Any]:
    """A mapping's fields by the table."""
    if not isinstance(node, _Mapping):
        _wrong(node, what, "a mapping")
    out: dict[str, Any] = {}
    for name, (key, value) in node.fields.items():
        if name not in known:
            raise _FaultError(key.line, f"{what} has no field {_shown(name)}{_nearest(name, list(known))}")
        if not (known[name].null and _is_null(value)):
            out[name] = known[name].convert(value, f"{what}.{name}")
    for name, field in known.items():
        if field.required and name not in out:
            raise _FaultError(node.line, f"{what} lacks its {name}")
    return out


def _mapping_of(known: Mapping[str, _Field]) -> Convert:
    return lambda node, what: _fields(node, what, known)


def _receipt(node: _Node, what: str) -> dict[str, Any]:
    if isinstance(node, _Mapping) and "sha256" in node.fields:
        return _fields(node, what, RECEIPT_REF)
    return _fields(node, what, RECEIPT)


def _receipts(node: _Node, what: str) -> tuple[dict[str, Any], ...]:
    if not isinstance(node, _Sequence):
        _wrong(node, what, "a list of receipts")
    return tuple(_receipt(entry, what) for entry in node.entries)


def _supports(node: _Node, what: str) -> tuple[str | dict[str, Any], ...]:
    if not isinstance(node, _Sequence):
        _wrong(node, what, "a list of names")
    return tuple(
        _fields(entry, what, SUPPORT) if isinstance(entry, _Mapping) else _string(entry, f"an entry of {what}")
        for entry in node.entries
    )


def _record(node: _Node, what: str) -> list[dict[str, Any]]:
    """One record, or a batch of them."""
    return [_one_record(one, what) for one in (node.entries if isinstance(node, _Sequence) else [node])]


def _one_record(node: _Node, what: str) -> dict[str, Any]:
    record = _fields(node, what, RECORD)
    if isinstance(node, _Mapping) and "receipt" in node.fields and "receipts" in node.fields:
        raise _FaultError(node.fields["receipts"][0].line, f"{what} has both receipt and receipts")
    return record


# --- what a file may say ----------------------------------------------------------------------------------


def _may(convert: Convert) -> _Field:
    return _Field(convert)


def _must(convert: Convert) -> _Field:
    return _Field(convert, required=True, null=False)


def _if(convert: Convert) -> _Field:
    return _Field(convert, null=False)


RECEIPT = {
    "uri": _must(_string),
    "id": _may(_string),
    "text": _may(_string),
    "issuer": _may(_string),
    "origin": _may(_string),
    "observed_at": _may(_instant),
}
RECEIPT_REF = {"id": _must(_string), "sha256": _must(_string)}
SUPPORT = {"dependency": _must(_string), "receipt": _may(_string)}
FRONTIER = {"id": _must(_string), "content": _must(_string)}
RECORD = {
    "id": _must(_string),
    "by": _may(_string),
    "key": _may(_string),
    "kind": _may(_string),
    "scope": _must(_string),
    "content": _must(_string),
    "task": _may(_string),
    "purposes": _may(_strings),
    "role": _may(_string),
    "valid_from": _may(_instant),
    "valid_to": _may(_instant),
    "supports": _may(_supports),
    "depends_on": _may(_strings),
    "derived_from": _may(_strings),
    "supersedes": _may(_strings),
    "receipt": _may(_receipt),
    "receipts": _may(_receipts),
}
POLICY = {
    "coverage": _may(_number),
    "critical": _may(_number),
    "on_incomplete": _may(_string),
    "max_items": _may(_number),
    "max_chars": _may(_number),
    "max_item_chars": _may(_number),
    "kinds": _may(_strings),
    "fill": _may(_string),
    "verification": _may(_string),
    "confidence": _may(_number),
    "view_minutes": _may(_number),
    "ticket_days": _may(_number),
}
_CLOCKS = {"valid_at": _may(_instant), "known_at": _may(_string)}
_RETURN = {
    "purpose": _may(_string),
    "query": _may(_string),
    "workload": _may(_string),
    **_CLOCKS,
    "policy": _may(_mapping_of(POLICY)),
}
_SCOPES = {"read": _may(_strings), "write": _may(_strings)}
_INTERVAL = {"valid_from": _may(_instant), "valid_to": _may(_instant)}
_WHO = {"principal": _must(_string), "role": _must(_string), "task": _must(_string)}
_ACT_ON = {"target": _must(_string), "by": _may(_string)}

ACTS: Mapping[str, Convert] = {
    "record": _record,
    "open_obligation": _mapping_of(
        {
            "id": _must(_string),
            "by": _may(_string),
            "key": _may(_string),
            "role": _may(_string),
            "task": _may(_string),
            "purposes": _may(_strings),
            "scope": _must(_string),
            "content": _must(_string),
            "requires": _may(_strings),
            "frontier": _may(_mapping_of(FRONTIER)),
        }
    ),
    "advance": _mapping_of(
        {
            "id": _must(_string),
            "obligation": _must(_string),
            "by": _may(_string),
            "content": _must(_string),
        }
    ),
    "resolve": _mapping_of(_ACT_ON),
    "revoke": _mapping_of({**_ACT_ON, "effective_from": _may(_instant), "reason": _may(_string)}),
    "retract": _mapping_of(_ACT_ON),
    "withdraw": _mapping_of({"target": _must(_string)}),
    "erase": _mapping_of({"target": _must(_string), "reason": _may(_string)}),
    "grant": _mapping_of({"role": _must(_string), "principal": _may(_string), **_SCOPES, **_INTERVAL}),
    "deny": _mapping_of({"role": _must(_string), **_SCOPES, **_INTERVAL}),
    "policy": _mapping_of(POLICY),
    "verdict": _mapping_of(
        {
            "later": _must(_string),
            "earlier": _must(_string),
            "says": _must(_string),
            "task": _may(_string),
            "confidence": _may(_number),
            "quote": _may(_string),
            "effective_from": _may(_instant),
        }
    ),
    "depart": _mapping_of(_WHO),
    "admit": _mapping_of({"principal": _must(_string), **_RETURN}),
    "join": _mapping_of({**_WHO, **_RETURN}),
    "remember": _mapping_of(
        {
            "id": _must(_string),
            "principal": _must(_string),
            "content": _must(_string),
            "grounded_in": _must(_strings),
        }
    ),
    "recall": _mapping_of({"principal": _must(_string)}),
    "read": _mapping_of({**_WHO, **_CLOCKS}),
}

_OF_A_RETURN = {
    "decision": _if(_one_of(DECISIONS)),
    "coverage": _if(_number),
    "critical": _if(_number),
    "admitted": _if(_strings),
    "rejected": _if(_reasons_by_item(list(GATE_OF))),
    "selection": _if(_reasons_by_item(SELECTION)),
    "pool": _if(_strings),
    "uncovered": _if(_strings),
}
EXPECT: Mapping[str, Mapping[str, _Field]] = {
    "admit": _OF_A_RETURN,
    "join": _OF_A_RETURN,
    "read": {"items": _if(_strings)},
    "recall": {"recalled": _if(_strings)},
}
"""What may be expected of an act, beside that it is refused with an `error`."""


# --- the scenario -----------------------------------------------------------------------------------------


def _scenario(path: str, root: _Node) -> Scenario:
    header = _fields(
        root,
        "the scenario",
        {
            "scenario": _must(_string),
            "clock": _must(_aware),
            "roles": _may(_named(lambda node, what: (node.line, _fields(node, what, _SCOPES)))),
            "principals": _may(_named(lambda node, what: (node.line, _strings(node, what)))),
            "policy": _may(_first_policy),
            "steps": _must(lambda node, what: node),
        },
    )
    return Scenario(
        path=path,
        name=header["scenario"],
        clock=header["clock"],
        policy=header.get("policy", {}),
        grants=_grants(header.get("roles", {}), header.get("principals", {})),
        steps=_steps(header["steps"], header["clock"]),
    )


def _named(convert: Callable[[_Node, str], T]) -> Convert:
    def named(node: _Node, what: str) -> dict[str, T]:
        if not isinstance(node, _Mapping):
            _wrong(node, what, "a mapping")
        return {name: convert(value, f"{what}.{name}") for name, (_, value) in node.fields.items()}

    return named


def _first_policy(node: _Node, what: str) -> dict[str, Any]:
    policy = _fields(node, what, POLICY)
    try:
        Policy().changed(policy)
    except TracegraphError as error:
        raise _FaultError(node.line, f"{what}: {error.message}") from None
    return policy


def _grants(
    roles: Mapping[str, tuple[int, dict[str, Any]]], principals: Mapping[str, tuple[int, tuple[str, ...]]]
) -> tuple[Grant, ...]:
    """Holding at every valid time. Who is listed without a role is known by one that ended long ago."""
    out: list[Grant] = []

    def grant(line: int, **fields: Any) -> None:
        if len(out) == Limits.batch:
            raise _FaultError(line, f"holds more than {Limits.batch} grants")
        try:
            out.append(Grant(valid_from=FIRST_INSTANT, **fields))
        except TracegraphError as error:
            raise _FaultError(line, error.message) from None

    for role, (line, scopes) in roles.items():
        if any(scopes.values()):
            grant(line, role=role, **scopes)
    for principal, (line, held) in principals.items():
        for role in held:
            grant(line, principal=principal, role=role)
        if not held:
            end = FIRST_INSTANT + timedelta(microseconds=1)
            grant(line, principal=principal, role=new_id("none"), valid_to=end)
    return tuple(out)


def _steps(node: _Node, clock: datetime) -> tuple[Step, ...]:
    if not isinstance(node, _Sequence):
        _wrong(node, "steps", "a list")
    out: list[Step] = []
    named: dict[str, int] = {}
    now = clock
    for number, entry in enumerate(node.entries, 1):
        step = _step(entry, number)
        if step.at is not None:
            if step.at < now:
                raise _FaultError(_line_of(entry, "at"), f"step {number} goes back in time, from {now.isoformat()}")
            now = step.at
        if step.name is not None:
            if step.name in named:
                taken = f"the name {_shown(step.name)} is taken by the step on line {named[step.name]}"
                raise _FaultError(_line_of(entry, "name"), taken)
            named[step.name] = step.line
        out.append(step)
    return tuple(out)


def _step(node: _Node, number: int) -> Step:
    what = f"step {number}"
    if not isinstance(node, _Mapping):
        _wrong(node, what, "a mapping")
    acts = [name for name in node.fields if name not in ("at", "name", "expect")]
    for name in acts:
        if name not in ACTS:
            line = node.fields[name][0].line
            raise _FaultError(line, f"{what} has no field {_shown(name)}{_nearest(name, list(ACTS))}")
    if len(acts) != 1:
        raise _FaultError(node.line, f"{what} must have exactly one act, not {', '.join(acts) or 'none'}")
    act = acts[0]
    expected = {**EXPECT.get(act, {}), "error": _if(_one_of(list(HINTS)))}
    step = _fields(
        node,
        what,
        {
            "at": _may(_aware),
            "name": _may(_string),
            act: _must(lambda value, _: ACTS[act](value, act)),
            "expect": _may(lambda value, _: _fields(value, f"expect of {act}", expected)),
        },
    )
    expect = step.get("expect", {})
    lines = {}
    if expect:
        expectation = node.fields["expect"][1]
        assert isinstance(expectation, _Mapping)
        lines = {name: key.line for name, (key, _) in expectation.fields.items()}
        if "error" in expect and len(expect) > 1:
            raise _FaultError(
                lines["error"], f"{what} expects an error and something else; a refused step has no result"
            )
    return Step(
        number=number,
        line=node.line,
        act=act,
        given=step[act],
        at=step.get("at"),
        name=step.get("name"),
        expect=expect,
        lines=lines,
    )


def _line_of(node: _Node, name: str) -> int:
    return node.fields[name][0].line if isinstance(node, _Mapping) else node.line
