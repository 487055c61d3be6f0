"""The lines of a history file (see `tracegraph.exporting`), and reading them with every digest recomputed. No database.

One model a line, strict: what is not here is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, TypeVar

from pydantic import AfterValidator, Field
from pydantic_core import PydanticCustomError

from tracegraph.acts import epoch_digest, workspace_digest
from tracegraph.errors import TracegraphError
from tracegraph.model import (
    Content,
    Count,
    Id,
    Kind,
    Limits,
    Model,
    Note,
    Policy,
    Says,
    Sha256,
    Share,
    Text,
    digest,
    iso,
    micros,
    parse_instant,
    sha256,
)

FORMAT = 1
LINE = 64_000_000
"""Bytes of the longest line that is read."""
WORDS = {"item": ("content",), "receipt": ("text",), "remember": ("content",), "verdict": ("quote", "rationale")}
"""What stands beside a record and goes when it is erased."""

M = TypeVar("M", bound=Model)


def _instant(text: str) -> str:
    if iso(micros(parse_instant(text))) != text:
        raise PydanticCustomError("invalid_record", "is not an instant in UTC with microseconds")
    return text


Time = Annotated[str, Field(max_length=40), AfterValidator(_instant)]
Words = Annotated[Text, Field(max_length=Limits.text)]
Pair = Annotated[list[str], Field(min_length=2, max_length=2)]
Need = Annotated[list[str | bool], Field(min_length=2, max_length=2)]
Scalar = str | int | float | bool | None
Properties = dict[str, Scalar | list[str]]
Number = Annotated[int, Field(ge=1)]


class Header(Model):
    """Which workspace, what its chain begins with, and where it ends."""

    tracegraph: Literal["history"]
    format: int
    workspace: Id
    owner: Id
    recorded_at: Time
    policy: dict[str, Any]
    digest: Sha256
    epoch: Count
    head: Sha256


class BatchLine(Model):
    """One epoch; its records follow."""

    batch: Number
    batch_id: Id
    author: Id
    recorded_at: Time
    request: Sha256
    ids: list[Id]
    records: Annotated[int, Field(ge=1)]
    digest: Sha256


class ItemRecord(Model):
    act: Literal["item"]
    id: Id
    key: Id
    kind: Kind
    scope: Id
    length: Count
    content_digest: Sha256
    task: Id | None = None
    purposes: list[Id]
    role: Id | None = None
    author: Id
    place: Count
    valid_from: Time
    valid_to: Time | None = None
    receipts: list[Pair] | None = None
    depends_on: list[Id] | None = None
    derived_from: list[Id] | None = None
    supersedes: list[Id] | None = None
    supports: list[Pair] | None = None
    requires: list[Need] | None = None
    obligation: Id | None = None
    content: Content | None = None


class ReceiptRecord(Model):
    act: Literal["receipt"]
    id: Id
    uri: Note
    sha256: Sha256
    issuer: Note | None = None
    origin: Note | None = None
    observed_at: Time | None = None
    text_digest: Sha256 | None = None
    text: Words | None = None


class RevokeRecord(Model):
    act: Literal["revoke"]
    id: Id
    target: Id
    code: Literal["revoked", "resolved"]
    reason: Note
    author: Id
    effective_from: Time


class EndRecord(Model):
    """A retraction or a withdrawal."""

    act: Literal["retract", "withdraw"]
    target: Id
    author: Id


class GrantRecord(Model):
    act: Literal["grant", "deny"]
    id: Id
    role: Id
    principal: Id | None = None
    read: list[Id]
    write: list[Id]
    valid_from: Time
    valid_to: Time | None = None


class VerdictRecord(Model):
    act: Literal["verdict"]
    id: Id
    later: Id
    earlier: Id
    says: Says
    task: Id | None = None
    confidence: Share | None = None
    effective_from: Time | None = None
    model: Note | None = None
    prompt: Note | None = None
    tokens: Count | None = None
    cause: Note | None = None
    calls: Count | None = None
    retries: Count | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    milliseconds: Count | None = None
    quote_digest: Sha256 | None = None
    rationale_digest: Sha256 | None = None
    quote: Words | None = None
    rationale: Words | None = None


class RememberRecord(Model):
    act: Literal["remember"]
    id: Id
    owner: Id
    content_digest: Sha256
    grounded_in: list[Id]
    content: Content | None = None


class PolicyRecord(Policy):
    act: Literal["policy"]
    revision: Number


class DepartRecord(Model):
    act: Literal["depart"]
    id: Id
    principal: Id
    role: Id
    task: Id
    valid_at: Time
    expires_at: Time
    item_ids: list[Id]
    items_digest: Sha256


class EraseRecord(Model):
    act: Literal["erase"]
    target: Id
    reason: Note
    erased: list[Id]


RECORDS: dict[str, type[Model]] = {
    "item": ItemRecord,
    "receipt": ReceiptRecord,
    "revoke": RevokeRecord,
    "retract": EndRecord,
    "withdraw": EndRecord,
    "grant": GrantRecord,
    "deny": GrantRecord,
    "verdict": VerdictRecord,
    "remember": RememberRecord,
    "policy": PolicyRecord,
    "depart": DepartRecord,
    "erase": EraseRecord,
}


class CycleLine(Model):
    """A return with what hangs on it. `cycle` and `view` are its properties, as `cypher/admission/record` sets them."""

    cycle: Properties
    departed: Id | None
    rejected: list[Annotated[list[str | list[str] | None], Field(min_length=4, max_length=4)]]
    """Item, gates, reasons, detail."""
    view: dict[str, Scalar] | None
    admits: list[Annotated[list[str | int], Field(min_length=3, max_length=3)]]
    """Item, why, rank."""
    opened: list[Pair]
    """Who, when."""


class Topic(Model):
    type: Literal["RELIES_ON", "CHANGES"]
    aspect: str
    says: str
    words: list[str]


class Reading(Model):
    reading: Properties
    topics: list[Topic]


class KeptItem(Model):
    """What verification read in one item, and what it scanned it against."""

    kept: Literal["item"]
    item: Id
    readings: list[Reading]
    scans: list[Properties]


class KeptWorkspace(Model):
    """What verification keeps of the whole workspace."""

    kept: Literal["workspace"]
    sweeps: list[Properties]
    endpoints: list[Properties]
    jobs: list[Properties]


class Counts(Model):
    epoch: Count
    records: Count
    cycles: Count
    kept: Count


class EndLine(Model):
    end: Counts
    sha256: Sha256


# --- reading ----------------------------------------------------------------------------------------------


Beside = CycleLine | KeptItem | KeptWorkspace
"""What stands beside the log."""


@dataclass
class Batch:
    """One epoch of the file, checked against its digest."""

    number: int
    previous: str
    epoch: dict[str, Any]
    """As `write/epochs` takes it."""
    records: list[dict[str, Any]]


@dataclass
class History:
    """The checked parts of a file, in order: the header, the batches, what stands beside. Reads a batch at a time."""

    file: Path
    at: int = 0
    """Bytes read."""
    line: int = 0
    _hashed: Any = field(default_factory=hashlib.sha256)

    def __iter__(self) -> Iterator[Header | Batch | Beside]:
        try:
            with self.file.open("rb") as stream:
                yield from self._parts(iter(lambda: stream.readline(LINE), b""))
        except OSError as error:
            raise TracegraphError(
                f"{self.file} cannot be read: {error.strerror}.", code="unavailable", hint="Check the name."
            ) from None

    def _parts(self, lines: Iterator[bytes]) -> Iterator[Header | Batch | Beside]:
        header = self._header(self._next(lines))
        yield header
        previous, number, records, cycles, kept = header.digest, 0, 0, 0, 0
        blanks = _Blanks()
        while "batch" in (raw := self._next(lines)):
            batch = self._batch(header.workspace, raw, number + 1, previous, lines)
            blanks.see(batch)
            number, previous, records = batch.number, batch.epoch["digest"], records + len(batch.records)
            yield batch
        if (number, previous) != (header.epoch, header.head):
            self.fail(f"The file ends at epoch {number}, not as its first line says at {header.epoch}.")
        blanks.check(self)
        while "cycle" in raw:
            cycles += 1
            yield self._model(CycleLine, raw)
            raw = self._next(lines)
        while "kept" in raw:
            kept += 1
            yield self._model(KeptItem, raw) if raw["kept"] == "item" else self._model(KeptWorkspace, raw)
            raw = self._next(lines)
        end = self._model(EndLine, raw)
        counts = {"epoch": number, "records": records, "cycles": cycles, "kept": kept}
        if end.end.model_dump() != counts or end.sha256 != self._before:
            self.fail("The file is not what its last line says: it was changed.")
        if next(lines, None) is not None:
            self.fail("Something follows the last line.")

    def _next(self, lines: Iterator[bytes]) -> dict[str, Any]:
        self._before = self._hashed.hexdigest()
        text = next(lines, b"")
        self.line, self.at = self.line + 1, self.at + len(text)
        self._hashed.update(text)
        if not text.endswith(b"\n"):
            self.fail("The file is cut short." if len(text) < LINE else "The line is too long.")
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            self.fail("The line is not JSON.")
        if not isinstance(found, dict):
            self.fail("The line is no JSON object.")
        return found

    def _header(self, raw: dict[str, Any]) -> Header:
        if raw.get("tracegraph") != "history":
            self.fail("The file is no history of tracegraph.")
        if raw.get("format") != FORMAT:
            raise TracegraphError(
                f"The file has format {raw.get('format')!r}; this tracegraph reads {FORMAT}.",
                code="invalid_record",
                hint="Use the tracegraph that wrote it, or a newer one.",
            )
        header = self._model(Header, raw)
        Policy(**header.policy)
        recorded_at = stored(header.recorded_at)
        if header.digest != workspace_digest(header.workspace, header.owner, header.policy, recorded_at):
            self.fail("The workspace, its owner or its first policy is not what its digest says.", epoch=0)
        return header

    def _batch(self, workspace: str, raw: dict[str, Any], number: int, previous: str, lines: Iterator[bytes]) -> Batch:
        line = self._model(BatchLine, raw)
        if line.batch != number:
            self.fail(f"The epoch {number} is missing.", epoch=number)
        records: list[dict[str, Any]] = []
        logged: list[tuple[str, str]] = []
        for _ in range(line.records):
            record = self._next(lines)
            act = record.get("act")
            if act not in RECORDS:
                self.fail("One of its records is missing, or of an unknown act.", epoch=number)
            self._model(RECORDS[act], record, epoch=number)
            self._words(act, record, number)
            found = digest({name: value for name, value in record.items() if name not in WORDS.get(act, ())})
            logged.append((found, subject(record)))
            records.append({**record, "digest": found})
        logged.sort()
        epoch: dict[str, Any] = {
            "number": number,
            "batch_id": line.batch_id,
            "author": line.author,
            "recorded_at": stored(line.recorded_at),
            "previous": previous,
            "records": [found for found, _ in logged],
        }
        if epoch_digest(workspace, epoch) != line.digest:
            self.fail("Its records, author or time are not what its digest says.", epoch=number)
        if not set(line.ids) <= {record.get("id") for record in records}:
            self.fail("It names ids that none of its records has.", epoch=number)
        epoch |= {
            "digest": line.digest,
            "subjects": [one for _, one in logged],
            "request": line.request,
            "ids": line.ids,
        }
        return Batch(number, previous, epoch, records)

    def _words(self, act: str, record: Mapping[str, Any], number: int) -> None:
        for name in WORDS.get(act, ()):
            words = record.get(name)
            if words is not None and sha256(words) != record.get(f"{name}_digest"):
                self.fail(f"The words of the {act} {record['id']!r} are not what its digest says.", epoch=number)

    def _model(self, model: type[M], raw: Mapping[str, Any], *, epoch: int | None = None) -> M:
        try:
            return model(**{str(name): value for name, value in raw.items()})
        except TracegraphError as error:
            self.fail(error.message, epoch=epoch)

    def fail(self, what: str, *, epoch: int | None = None) -> NoReturn:
        where = f"line {self.line}" + ("" if epoch is None else f", epoch {epoch}")
        raise TracegraphError(
            f"{self.file.name}, {where}: {what}", code="invalid_record", hint="Nothing was written; export it again."
        )


class _Blanks:
    """Records without words, which only an erasure explains. Holds no more than what was erased."""

    def __init__(self) -> None:
        self.open: list[tuple[int, str, set[str]]] = []
        """Epoch, subject, and the items of which one must be erased."""
        self.receipts: list[tuple[int, str]] = []
        self.bound: set[str] = set()
        """Receipts of items without words."""
        self.erased: set[str] = set()

    def see(self, batch: Batch) -> None:
        for record in batch.records:
            act = record["act"]
            if act == "erase":
                self.erased.update(record["erased"])
            blank = any(f"{name}_digest" in record and name not in record for name in WORDS.get(act, ()))
            if not blank:
                continue
            if act == "receipt":
                self.receipts.append((batch.number, record["id"]))
                continue
            if act == "item":
                self.bound.update(id for id, _ in record.get("receipts", ()))
            if act == "remember":
                needs = set(record["grounded_in"])
            else:
                needs = {record[name] for name in ("later", "earlier")} if act == "verdict" else {record["id"]}
            self.open.append((batch.number, subject(record), needs))

    def check(self, history: History) -> None:
        for number, what, needs in self.open:
            if not needs & self.erased:
                history.fail(f"The words of the {what} are missing, and no epoch erased them.", epoch=number)
        for number, id in self.receipts:
            if id not in self.bound:
                history.fail(f"The text of the receipt {id} is missing, and no epoch erased it.", epoch=number)


def subject(record: Mapping[str, Any]) -> str:
    """The act and whom it concerns, as the epoch names it."""
    return f"{record['act']} {next(record[name] for name in ('id', 'target', 'revision') if name in record)}"


def stored(text: str) -> int:
    """An instant of a file as the graph stores it."""
    return micros(parse_instant(text))
