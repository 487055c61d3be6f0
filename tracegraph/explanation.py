"""An item's outcome in plain words; the reasons and their evidence come with the answer of `why`.

Recorded words are data: they are shown as one printable line, shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracegraph.audit import BoundReceipt, BrokenPremise, Judged, Revoked, Superseding, Unbound, Why


def render_why(found: Why) -> list[str]:
    """The answer in plain words: a line that sums it up, then the evidence of each gate that failed."""
    cycle = found.cycle
    lines = [f"{found.item.id} {_headline(found)}"]
    if found.outcome == "outside_pool":
        lines += [f"  {line}" for reason in found.outside for line in _evidence(found, reason)]
    for gate in found.gates:
        for reason in gate.reasons:
            first, *rest = _evidence(found, reason)
            lines += [f"  {gate.gate}: {first}", *(f"    {line}" for line in rest)]
    if found.gates:
        lines.append(f"  passed: {', '.join(gate.gate for gate in found.gates if gate.passed) or 'no gate'}")
    lines += [f"  selection: {_SELECTION[reason]}" for reason in found.selection]
    for one in found.verdicts:
        if one.says == "INVALIDATES":
            lines += [
                f"  invalidated by {one.later} before, which {answer.later} answered{_quoted(answer.quote)}"
                for answer in one.answers
            ]
    if found.outcome == "eligible":
        lines.append(
            f"  the return was {cycle.decision}, so nothing was released: coverage {cycle.coverage:.3g},"
            f" critical {cycle.critical:.3g}, uncovered {', '.join(cycle.uncovered) or 'nothing'}"
        )
    return lines


_SELECTION = {
    "not_selected": "it covers nothing that was missing, and the view is full or is not filled",
    "missing_frontier": "the obligation has no eligible frontier",
    "mandatory_over_budget": "the obligations and frontiers together exceed a budget",
    "obligation_not_admissible": "an open obligation that fails a gate keeps the return incomplete",
}
_FOR = {
    "obligation": " as an open obligation of the role",
    "frontier": " as what remains unresolved of an obligation",
    "cover": " because it covers what an obligation needs",
    "fill": " to fill the budget that was left",
}
_HOW = {"version": "", "correction": ", a correction of the past", "named": ", which names it"}
_PROBLEM = {
    "no_receipt": "without a receipt of its own, and no direct source supports it",
    "not_bound": "by the receipt {}, which it is not bound to",
    "receipt_dead": "by the receipt {}, which is revoked or retracted",
}


def _headline(found: Why) -> str:
    cycle = found.cycle
    match found.outcome:
        case "not_judged":
            return f"was not judged: the return was refused ({cycle.reason})"
        case "admitted":
            shown = f"in view {found.view}" if found.view else "in a preview, without a view"
            return f"admitted{_FOR.get(found.admitted_for or '', '')}: rank {(found.rank or 0) + 1} {shown}"
        case "left_out":
            return "passes every gate, but was left out of the admitted view"
        case "eligible":
            return f"passes every gate; the return was {cycle.decision}"
        case "outside_pool":
            because = "; ".join(_brief(found, reason) for reason in found.outside)
            return f"was outside the pool: {because or 'no candidate of this return'}"
        case "rejected":
            return "rejected: " + "; ".join(_brief(found, reason) for reason in found.reasons)


def _brief(found: Why, reason: str) -> str:
    """A reason in a few words."""
    match reason:
        case "superseded" if found.superseded_by:
            return f"superseded by {', '.join(by.id for by in found.superseded_by)}"
        case "invalidated" if counting := [one for one in found.verdicts if _counts(one)]:
            return "; ".join(
                f"invalidated by {one.later}{_quoted(one.quote)}"
                + (f"; {one.later} supersedes {', '.join(one.supersedes)}" if one.supersedes else "")
                for one in counting
            )
        case "premise_invalid" if found.premises:
            return f"its premise {found.premises[0].premise} fails"
        case _:
            return _spoken(reason)


def _counts(one: Judged) -> bool:
    return one.says == "INVALIDATES" and not one.answers


def _evidence(found: Why, reason: str) -> list[str]:
    """Lines on one reason; a reason without evidence is said plainly."""
    return list(_found(found, reason)) or [_spoken(reason)]


def _found(found: Why, reason: str) -> Iterator[str]:
    item, cycle, may = found.item, found.cycle, found.permission
    match reason:
        case "scope_not_granted":
            yield f"the role {may.role} has no grant to read {may.scope}"
            yield from (f"the grant {id} was not in force then" for id in may.lapsed)
        case "denied":
            yield f"the role {may.role} is denied {may.scope}"
            yield from (f"by the denial {id}" for id in may.denials)
        case "source_not_readable":
            for source in found.sources:
                yield f"derived from {source.path[-1]} in {source.scope}, which {may.role} may not read"
                yield _path(source.path, "DERIVED_FROM")
        case "not_yet_valid":
            yield f"valid only from {moment(item.valid_from)}; the return was at {moment(cycle.valid_at)}"
        case "expired":
            yield f"expired at {moment(item.valid_to)}; the return was at {moment(cycle.valid_at)}"
        case "superseded":
            for by in found.superseded_by:
                yield from _superseded(item.id, by)
        case "revoked" | "resolved":
            yield from (_ended(one) for one in found.revocations if one.code == reason)
        case "retracted" if found.retraction is not None:
            retraction = found.retraction
            yield f"retracted by {retraction.by} at {moment(retraction.at)} (epoch {retraction.epoch})"
        case "erased" if found.erasure is not None:
            erasure = found.erasure
            along = "" if erasure.target == item.id else f" with {erasure.target}"
            yield f"erased{along} by {erasure.by} at {moment(erasure.at)}{_because(erasure.reason)}"
        case "invalidated":
            for one in found.verdicts:
                if _counts(one):
                    yield from _invalidated(item.id, one)
        case "unverified":
            for one in found.verdicts:
                if one.says != "INVALIDATES" and not one.answers:
                    state = "was not answered yet" if one.says == "PROPOSED" else "has no sure answer"
                    yield f"whether {one.later} {_said(one.content)} ends it {state}{_because(one.cause)}"
        case "premise_invalid":
            for premise in found.premises:
                yield from _premise(premise)
            if found.circle:
                yield f"its premises rest on each other: {' -> '.join(found.circle)}"
            elif not found.premises:
                yield "its chain of premises goes round in a circle or is longer than 32"
        case "wrong_task":
            yield f"it is of the task {item.task}; the return's is {cycle.task}"
        case "recorded_later":
            yield f"it was recorded at epoch {item.epoch}; the return saw up to {cycle.epoch}"
        case "wrong_purpose" | "kind_not_allowed" | "wrong_role" | "over_item_budget":
            yield from (_compared(reason, one.wanted, one.got) for one in found.compared if one.reason == reason)
        case "missing_receipt":
            if not found.unproven:
                yield "it has no receipt"
            for path in found.unproven:
                yield f"it has no receipt, and its source {path[-1]} fails this gate"
                yield _path(path, "DERIVED_FROM")
        case "receipt_mismatch":
            for receipt in found.receipts:
                if receipt.mismatch:
                    yield f"it is bound to {receipt.id} with sha256 {receipt.claimed[:16]}…"
                    yield f"the receipt's own is {receipt.sha256[:16]}…"
        case "receipt_revoked":
            yield "all its receipts are revoked or retracted"
            yield from (line for receipt in found.receipts for line in _dead(receipt))
        case "unbound_support":
            yield from (_unbound(claim) for claim in found.unbound)
        case _:
            return


def _superseded(id: str, by: Superseding) -> Iterator[str]:
    yield f"superseded by {by.id}{_HOW[by.how]}: {_said(by.content)}"
    yield f"in force from {moment(by.valid_from)}, recorded by {by.author} at epoch {by.epoch}"
    yield f"path: {id} <-SUPERSEDES- {by.id}"


def _ended(one: Revoked) -> str:
    when = f"from {moment(one.effective_from)} (epoch {one.epoch})"
    return f"{one.code} by {one.author} {when}{_because(one.reason)}"


def _invalidated(id: str, one: Judged) -> Iterator[str]:
    yield f"invalidated by {one.later}{_quoted(one.quote)}: {_said(one.content)}"
    known = [
        f"confidence {one.confidence:.3g}" if one.confidence is not None else "",
        f"for the task {one.task}" if one.task else "for every task",
        f"judged by {one.model}" if one.model else "",
        f"{one.tokens} tokens" if one.tokens is not None else "",
        f"recorded by {one.author} at epoch {one.epoch}",
    ]
    yield ", ".join(part for part in known if part) + _because(one.rationale)
    chain = "".join(f" -SUPERSEDES-> {old}" for old in one.supersedes[:1])
    yield f"path: {id} <-INVALIDATES- {one.later}{chain}"


def _premise(premise: BrokenPremise) -> Iterator[str]:
    if premise.refreshed is not None:
        yield f"rests on {premise.premise}: {_said(premise.content)}"
        yield f"which {premise.refreshed.id} replaced by: {_said(premise.refreshed.content)}"
    else:
        shown = {one.reason for one in premise.by}
        plain = [_spoken(reason) for reason in premise.reasons if reason not in shown]
        yield f"rests on {premise.path[-1]}, which is {', '.join(map(_spoken, premise.reasons)) or 'not there'}"
        for one in premise.by:
            by = one.id or one.author
            words = _quoted(one.quote) or (f": {_said(one.content)}" if one.content else "")
            yield f"{_spoken(one.reason)} by {by}{words}"
        if plain and premise.by:
            yield f"and {', '.join(plain)}"
    yield _path(premise.path, "DEPENDS_ON|DERIVED_FROM")


def _compared(reason: str, wanted: str | None, got: str | None) -> str:
    match reason:
        case "wrong_purpose":
            return f"it is for {got}; the return " + (f"is for {wanted}" if wanted else "gave no purpose")
        case "kind_not_allowed":
            return f"it is a {got}; the policy allows {wanted or 'no evidence at all'}"
        case "wrong_role":
            return f"it is for the role {got}; the returning one is {wanted}"
        case _:
            return f"it has {got} characters; the policy allows {wanted} an item"


def _unbound(claim: Unbound) -> str:
    return f"it claims {claim.dependency} {_PROBLEM[claim.problem].format(claim.receipt)}"


def _dead(receipt: BoundReceipt) -> Iterator[str]:
    if receipt.retracted:
        yield f"{receipt.id} was retracted"
    yield from (f"{receipt.id} was {_ended(one)}" for one in receipt.revocations)


def _path(path: Iterable[str], link: str) -> str:
    return "path: " + f" -{link}-> ".join(path)


def _spoken(reason: str) -> str:
    return reason.replace("_", " ")


def _because(text: str | None) -> str:
    return f": {one_line(text)}" if text else ""


def one_line(text: str, most: int = 96) -> str:
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _said(content: str | None) -> str:
    return "(erased)" if content is None else f'"{one_line(content)}"'


def _quoted(quote: str | None) -> str:
    return f" «{one_line(quote)}»" if quote else ""


def moment(moment: datetime | None) -> str:
    return "no end" if moment is None else moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0") + "Z"
