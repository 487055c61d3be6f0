"""What is written, what is decided, and the values both are made of.

Holds the limits, the two clocks' units, canonical JSON and digests, the records a batch may contain and the
results of a return. Pure: no I/O, no rule of admission.
"""

from __future__ import annotations

import hashlib
import unicodedata
import uuid
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal, NoReturn, cast

import rfc8785
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)
from pydantic_core import PydanticCustomError

from tracegraph.errors import HINTS, Code, TracegraphError

OPEN = 2**63 - 1
"""The open end of an interval and of `retired_epoch`, as stored."""

PREMISE_DEPTH = 32
"""The longest chain of premises that can hold (DESIGN §3.1 rule 6)."""

_ZERO = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)
LAST = (_LAST - _ZERO) // timedelta(microseconds=1)
"""The last instant that can be stored; nothing expires later."""


class Limits:
    """Every size the store accepts, in Unicode code points unless said otherwise."""

    content = 65_536
    id = 256
    batch = 10_000
    """Records in one batch."""
    text = 1_048_576
    """A receipt's text."""
    note = 4_096
    """A URI, a reason, a rationale, a query."""
    links = 1_000
    """Entries in one list of one record."""


# --- time -------------------------------------------------------------------------------------------------


def micros(instant: datetime) -> int:
    """Microseconds since 1970 UTC. Refuses a naive datetime (`naive_datetime`)."""
    if not isinstance(instant, datetime):
        raise TracegraphError(f"An instant must be a datetime, not {type(instant).__name__}.", code="invalid_record")
    if instant.tzinfo is None or instant.utcoffset() is None:
        raise TracegraphError(f"The instant {instant.isoformat()} has no offset.", code="naive_datetime")
    since = instant - _ZERO
    if not _FIRST - _ZERO <= since <= _LAST - _ZERO:
        raise TracegraphError("An instant must be in the years 1 to 9999 in UTC.", code="invalid_record")
    return since // timedelta(microseconds=1)


def instant(value: int) -> datetime | None:
    """The UTC datetime of a stored instant; None for the open end."""
    return None if value == OPEN else _ZERO + timedelta(microseconds=value)


def iso(value: int | None) -> str | None:
    """A stored instant as RFC 3339 text with microseconds; None for the open end."""
    moment = None if value is None else instant(value)
    return None if moment is None else moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0")


def parse_instant(text: str) -> datetime:
    """RFC 3339 text to an instant; `invalid_record` or `naive_datetime` if it is not one."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise TracegraphError(
            f"{text[:64]!r} is not an instant.", code="invalid_record", hint=HINTS["naive_datetime"]
        ) from None
    micros(moment)
    return moment


# --- digests ----------------------------------------------------------------------------------------------


def sha256(text: str) -> str:
    """Hex sha256 of the text's UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def digest(value: Mapping[str, Any]) -> str:
    """Hex sha256 of the value's canonical JSON (RFC 8785)."""
    return hashlib.sha256(rfc8785.dumps(cast(dict[str, Any], value))).hexdigest()


def folded(text: str) -> str:
    """NFC with runs of whitespace folded to one space: the form in which quotes are compared."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def new_id(prefix: str) -> str:
    """A fresh random id that says what it names."""
    return f"{prefix}-{uuid.uuid4()}"


# --- models -----------------------------------------------------------------------------------------------


def refusal(error: ValidationError, what: str) -> NoReturn:
    """The first fault of a validation, as a TracegraphError that shows no content."""
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    code: Code = cast(Code, first["type"]) if first["type"] in HINTS else "invalid_record"
    if first["type"] == "timezone_aware":
        code = "naive_datetime"
    if first["type"] in ("string_too_long", "string_too_short", "too_long", "too_short"):
        code = "limit_exceeded"
    where = ".".join((what, *(str(part) for part in first["loc"])))
    if first["type"] in ("string_too_short", "too_short"):
        raise TracegraphError(f"{where} is empty.", code=code, hint="Give at least one; nothing was written.") from None
    raise TracegraphError(f"{where}: {first['msg']}.", code=code) from None


class Model(BaseModel):
    """Strict and immutable; a fault is a TracegraphError."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    def __init__(self, /, **data: Any) -> None:
        try:
            super().__init__(**data)
        except ValidationError as error:
            refusal(error, type(self).__name__)


def _storable(text: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise PydanticCustomError("invalid_record", "holds a lone surrogate, which is no Unicode text") from None
    return text


def _utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise PydanticCustomError("invalid_record", "is outside the years 1 to 9999 in UTC") from None


def _tuple(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _unique(values: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))


Text = Annotated[str, AfterValidator(_storable)]
Id = Annotated[Text, Field(min_length=1, max_length=Limits.id)]
Content = Annotated[Text, Field(min_length=1, max_length=Limits.content)]
Note = Annotated[Text, Field(max_length=Limits.note)]
Instant = Annotated[AwareDatetime, AfterValidator(_utc)]
Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
Ids = Annotated[Sequence[Id], Field(max_length=Limits.links), BeforeValidator(_tuple), AfterValidator(_unique)]
Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
Kind = Literal["fact", "constraint", "obligation", "frontier"]
Says = Literal["invalidates", "compatible", "uncertain", "restores", "proposed"]
Verification = Literal["none", "best_effort", "required"]


class Receipt(Model):
    """The source a statement came from. `sha256` is of the source's bytes; by default of `text`."""

    uri: Note
    id: Id = Field(default_factory=lambda: new_id("receipt"))
    text: Annotated[Text, Field(max_length=Limits.text)] | None = None
    sha256: Sha256 | None = None
    issuer: Note | None = None
    origin: Note | None = None
    observed_at: Instant | None = None

    @model_validator(mode="after")
    def _has_digest(self) -> Receipt:
        if self.text is None and self.sha256 is None:
            raise PydanticCustomError("invalid_record", "needs its text or the sha256 of its bytes")
        return self


class ReceiptRef(Model):
    """An earlier receipt, with the digest claimed for it; none claims the receipt's own."""

    id: Id
    sha256: Sha256 | None = None


class Support(Model):
    """A claim that an item satisfies a dependency, optionally by one receipt."""

    dependency: Id
    receipt: Id | None = None


def _support(value: Any) -> Any:
    if not isinstance(value, (list, tuple)):
        return value
    return tuple(Support(dependency=entry) if isinstance(entry, str) else entry for entry in value)


class Item(Model):
    """One version of a fact or a constraint, to be recorded (DESIGN §2, §5).

    `key` defaults to `id`; `valid_from` to the moment of recording; `valid_to` to an open end.
    """

    content: Content
    scope: Id
    id: Id = Field(default_factory=lambda: new_id("item"))
    key: Id | None = None
    kind: Literal["fact", "constraint"] = "fact"
    task: Id | None = None
    purposes: Ids = ()
    role: Id | None = None
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    supports: Annotated[Sequence[str | Support], BeforeValidator(_support), Field(max_length=Limits.links)] = ()
    depends_on: Ids = ()
    derived_from: Ids = ()
    supersedes: Ids = ()
    receipts: Annotated[Sequence[Receipt | ReceiptRef], BeforeValidator(_tuple), Field(max_length=Limits.links)] = ()

    @property
    def claims(self) -> tuple[Support, ...]:
        """`supports`, each as a claim."""
        return cast(tuple[Support, ...], self.supports)

    @model_validator(mode="after")
    def _begins_before_it_ends(self) -> Item:
        check_interval(self.valid_from, self.valid_to)
        return self


def check_interval(start: datetime | None, end: datetime | None) -> None:
    """Refuse an interval that holds no instant (`empty_interval`)."""
    if start is not None and end is not None and end <= start:
        raise TracegraphError(
            f"The interval from {start.isoformat()} to {end.isoformat()} holds no instant.", code="empty_interval"
        )


class Frontier(Model):
    """What remains unresolved of an obligation."""

    content: Content
    id: Id = Field(default_factory=lambda: new_id("frontier"))


class Obligation(Model):
    """What a role still owes, the evidence it needs (`name!` is critical) and what remains unresolved."""

    content: Content
    scope: Id
    id: Id = Field(default_factory=lambda: new_id("obligation"))
    key: Id | None = None
    role: Id | None = None
    task: Id | None = None
    purposes: Ids = ()
    requires: Ids = ()
    frontier: Frontier | None = None


class Advance(Model):
    """The next frontier of an obligation that stands."""

    obligation: Id
    content: Content
    id: Id = Field(default_factory=lambda: new_id("frontier"))


class Revoke(Model):
    """Ends an item or a receipt from `effective_from` on, by default from the moment of recording."""

    target: Id
    reason: Note = ""
    effective_from: Instant | None = None
    code: Literal["revoked", "resolved"] = "revoked"
    id: Id = Field(default_factory=lambda: new_id("revocation"))


class Retract(Model):
    """Says that an item or a receipt was recorded by mistake."""

    target: Id


class Withdraw(Model):
    """Takes back a grant, a denial, a revocation or a verdict."""

    target: Id


class Grant(Model):
    """Lets a role read or write scopes, or a principal hold a role; with `deny`, forbids the role."""

    role: Id
    principal: Id | None = None
    read: Ids = ()
    write: Ids = ()
    deny: bool = False
    valid_from: Instant | None = None
    valid_to: Instant | None = None
    id: Id = Field(default_factory=lambda: new_id("grant"))

    @model_validator(mode="after")
    def _says_something(self) -> Grant:
        check_interval(self.valid_from, self.valid_to)
        if self.deny and self.principal is not None:
            raise PydanticCustomError("invalid_record", "a denial concerns a role's scopes, not a principal")
        return self


Count = Annotated[int, Field(ge=0, le=2**53 - 1)]
"""What canonical JSON carries exactly."""


class Spent(Model):
    """What a judgment cost: calls, the client's retries, tokens in and out, wall time in milliseconds."""

    calls: Count
    retries: Count
    tokens_in: Count
    tokens_out: Count
    milliseconds: Count


class Verdict(Model):
    """A verifier's answer on whether `earlier` may still be acted on once `later` is known (paper §3.2).

    `cause` says why it is uncertain; `model`, `prompt` (a digest), `tokens` and `usage` are a model's.
    """

    later: Id
    earlier: Id
    says: Says
    task: Id | None = None
    confidence: Share | None = None
    quote: Annotated[Text, Field(max_length=Limits.content)] | None = None
    rationale: Note | None = None
    effective_from: Instant | None = None
    model: Note | None = None
    prompt: Note | None = None
    tokens: Count | None = None
    cause: Note | None = None
    usage: Spent | None = None
    id: Id = Field(default_factory=lambda: new_id("verdict"))


class Remember(Model):
    """A principal's private memory, grounded in work items (paper §3.5)."""

    principal: Id
    content: Content
    grounded_in: Ids
    id: Id = Field(default_factory=lambda: new_id("experience"))

    @model_validator(mode="after")
    def _grounded(self) -> Remember:
        if not self.grounded_in:
            raise PydanticCustomError("invalid_record", "an experience must be grounded in at least one item")
        return self


class Erase(Model):
    """Removes an item's words, and all that is derived from it, for good and at every `known_at`."""

    target: Id
    reason: Note = ""


class Policy(Model):
    """A workspace's rules of admission (DESIGN §5). Sizes in Unicode code points.

    `verification` None is `required` where a verifier is configured, else `none`; a decision resolves it.
    """

    coverage: Share = 1.0
    critical: Share = 1.0
    on_incomplete: Literal["block", "reset"] = "block"
    max_items: Annotated[int, Field(ge=0, le=1_000_000)] = 64
    max_chars: Annotated[int, Field(ge=0, le=1_000_000_000)] = 24_000
    max_item_chars: Annotated[int, Field(ge=0, le=1_000_000_000)] = 8_000
    kinds: Annotated[
        tuple[Literal["fact", "constraint"], ...],
        BeforeValidator(_tuple),
        AfterValidator(lambda kinds: tuple(sorted(set(kinds)))),
    ] = ("constraint", "fact")
    fill: Literal["recency", "relevance", "none"] = "recency"
    verification: Verification | None = None
    confidence: Share = 0.65
    view_minutes: Annotated[int, Field(ge=1, le=525_600)] = 15
    ticket_days: Annotated[int, Field(ge=1, le=36_500)] = 30

    def changed(self, changes: Mapping[str, Any]) -> Policy:
        """This policy with the named fields replaced."""
        if not isinstance(changes, Mapping) or not all(isinstance(name, str) for name in changes):
            raise TracegraphError("A policy is a mapping from its fields' names to values.", code="invalid_record")
        return Policy(**{**self.model_dump(), **changes})

    def resolved(self, *, verifier: bool) -> Policy:
        """This policy with its verification settled, for a workspace with a verifier or without."""
        if self.verification is not None:
            return self
        return self.changed({"verification": "required" if verifier else "none"})

    def tightened(self, changes: Mapping[str, Any]) -> Policy:
        """This policy, resolved, with one call's stricter fields; `policy_loosened` when one is not stricter."""
        call = self.changed(changes)
        if call.verification is None:
            call = call.changed({"verification": self.verification})
        order = (None, "none", "best_effort", "required")
        looser = (
            [name for name in ("coverage", "critical", "confidence") if getattr(call, name) < getattr(self, name)]
            + [
                name
                for name in ("max_items", "max_chars", "max_item_chars", "view_minutes", "ticket_days")
                if getattr(call, name) > getattr(self, name)
            ]
            + (["kinds"] if set(call.kinds) - set(self.kinds) else [])
            + (["verification"] if order.index(call.verification) < order.index(self.verification) else [])
        )
        if looser:
            raise TracegraphError(
                f"The call's policy is looser than revision allows in: {', '.join(looser)}.",
                code="policy_loosened",
            )
        return call


class SetPolicy(Model):
    """The next revision of the policy: only what changes."""

    changes: dict[str, Any]


class Depart(Model):
    """A principal leaves in a role and a task (paper §3.1)."""

    principal: Id
    role: Id
    task: Id
    id: Id = Field(default_factory=lambda: new_id("checkpoint"))


Act = (
    Item | Obligation | Advance | Revoke | Retract | Withdraw | Grant | Verdict | Remember | Erase | SetPolicy | Depart
)


# --- results ----------------------------------------------------------------------------------------------


class Committed(Model):
    """One committed batch: its epoch, its digest in the chain and the ids its records were given."""

    workspace: str
    epoch: int
    batch_id: str
    author: str
    recorded_at: datetime
    digest: str
    ids: tuple[str, ...]
    repeated: bool = False
    """True when this `batch_id` had been committed before and nothing was written now."""
    uncertain: dict[str, str] = {}
    """Verdicts written now that were taken as uncertain, whatever they said: id to `quote` or `confidence`."""


class AdmittedItem(Model):
    """An item as a Return View exposes it. Times are UTC; `valid_to` is None for an open end."""

    id: str
    key: str
    kind: Kind
    scope: str
    content: str
    digest: str
    why: Literal["obligation", "frontier", "cover", "fill"] | None
    """What it was admitted for; None in a plain read."""
    valid_from: datetime
    valid_to: datetime | None


class Coverage(Model):
    """How far the selected items satisfy the open obligations (paper §3.4). Both are shares in [0, 1]."""

    coverage: float
    critical: float
    uncovered: tuple[str, ...] = ()
    """Required dependencies that nothing selected supports, of obligations the role may read."""


class Pairs(Model):
    """What verification did for one return (DESIGN §8), in pairs (later, earlier), tokens and seconds.

    `proposed` needed an answer, `judged` got one now, `reused` had one before; `unjudged` is left open, because the
    token budget or the endpoint gave out. Of those judged: `invalidated`, `cleared`, `unverified`, `restored`.
    """

    proposed: int = 0
    judged: int = 0
    reused: int = 0
    unjudged: int = 0
    invalidated: int = 0
    cleared: int = 0
    unverified: int = 0
    restored: int = 0
    calls: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0

    def counts(self) -> dict[str, int]:
        """The counts of pairs, as a view claims them."""
        return {
            name: getattr(self, name)
            for name in ("proposed", "judged", "reused", "unjudged", "invalidated", "cleared", "unverified", "restored")
        }


class Result(Model):
    """One return decision.

    `rejected` maps each pool item that the role may see to its gate reasons, `selection` to the reasons of
    the cover; items that fail the authorization gate appear in neither.
    """

    decision: Literal["admitted", "blocked", "reset", "refused"]
    cycle_id: str
    reason: str | None
    preview: bool
    epoch: int
    valid_at: datetime
    coverage: Coverage
    items: tuple[AdmittedItem, ...]
    rejected: dict[str, tuple[str, ...]]
    selection: dict[str, tuple[str, ...]]
    verification: str
    """`verified`, `best_effort` or `not_checked`."""
    pairs: Pairs | None = None
    """What verification did; None when it was not run."""
    view: str | None
    """The signed Return View, a compact JWS; None unless admitted or reset."""
