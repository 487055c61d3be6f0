"""An item's outcome in plain words: text in, text out; the reasons and their evidence come with the question's answer.

Recorded words are data: they are shown as one printable line, shortened.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracegraph.audit import BoundReceipt, BrokenPremise, Judged, Why


def render_why(found: Why) -> list[str]:
    """The answer in plain words, one line a fact; the first line is the summary."""
    id, cycle = found.item.id, found.cycle
    lines = [f"{id} {_headline(found)}"]
    if found.outcome == "not_judged":
        return lines
    if found.outcome == "outside_pool":
        lines += [f"  {line}" for reason in found.outside for line in _evidence(found, reason)]
        return lines
    for gate in found.gates:
        if not gate.passed:
            lines += [
                f"  {gate.gate}: {line}" for reason in gate.reasons for line in _evidence(found, reason)
            ]
    passed = [gate.gate for gate in found.gates if gate.passed]
    if passed:
        lines.append(f"  passed: {', '.join(passed)}")
    lines += [f"  selection: {_SELECTION[reason]}" for reason in found.selection]
    answered = [one for one in found.verdicts if one.answers and one.says == "INVALIDATES"]
    lines += [
        f"  {one.later} had invalidated it, which {answer.later} answered{_quoted(answer.quote)}"
        for one in answered
        for answer in one.answers
    ]
    if found.outcome == "eligible":
        lines.append(
            f"  the return was {cycle.decision} (coverage {cycle.coverage:.3g}, critical {cycle.critical:.3g}),"
            " so nothing was released"
            + (f"; uncovered: {', '.join(cycle.uncovered)}" if cycle.uncovered else "")
        )
    return lines


_SELECTION = {
    "not_selected": "nothing it supports was missing, and the view had no room left or is not filled",
    "missing_frontier": "the obligation has no eligible frontier",
    "mandatory_over_budget": "the obligations and frontiers together exceed a budget",
    "obligation_not_admissible": "an open obligation that fails a gate keeps the return incomplete",
}
_FOR = {
    "obligation": "as an open obligation of the role",
    "frontier": "as what remains unresolved of an obligation",
    "cover": "because it covers what an obligation needs",
    "fill": "to fill the budget that was left",
}


def _headline(found: Why) -> str:
    cycle = found.cycle
    match found.outcome:
        case "not_judged":
            return f"not judged: the return was refused ({cycle.reason})"
        case "admitted":
            rank = f"rank {(found.rank or 0) + 1}"
            shown = f", view {found.view}" if found.view else ", a preview without a view"
            return f"admitted {_FOR.get(found.admitted_for or '', '')} ({rank}{shown})"
        case "left_out":
            return "eligible, but left out of the admitted view"
        case "eligible":
            return f"passes every gate; the return was {cycle.decision}"
        case "outside_pool":
            return (
                f"outside the pool: {'; '.join(map(_spoken, found.outside)) or 'no candidate of this return'}"
            )
        case "rejected":
            return "rejected: " + "; ".join(next(iter(_evidence(found, reason))) for reason in found.reasons)


def _evidence(found: Why, reason: str) -> Iterator[str]:
    """Lines on one reason, the summary first; a reason without evidence is said plainly."""
    lines = list(_found(found, reason))
    yield from lines or [_spoken(reason)]


def _found(found: Why, reason: str) -> Iterator[str]:
    at = found.cycle.valid_at
    compared = {one.reason: one for one in found.compared}
    match reason:
        case "scope_not_granted":
            may = found.permission
            yield f"the role {may.role} has no grant to read {may.scope}"
            yield from (f"the grant {id} was not in force then" for id in may.lapsed)
        case "denied":
            yield f"the role {found.permission.role} is denied {found.permission.scope}"
            yield from (f"by the denial {id}" for id in found.permission.denials)
        case "source_not_readable":
            for source in found.sources:
                yield f"derived from {source.path[-1]} in {source.scope}, which the role {found.permission.role} may not read"
                yield _path(source.path, "DERIVED_FROM")
        case "not_yet_valid":
            yield f"valid only from {_at(found.item.valid_from)}; the return was at {_at(at)}"
        case "expired":
            yield f"expired at {_at(found.item.valid_to)}; the return was at {_at(at)}"
        case "superseded":
            for by in found.superseded_by:
                how = {
                    "version": "",
                    "correction": ", a correction of the past",
                    "named": ", which names it",
                }[by.how]
                yield f"superseded by {by.id}{how} {_said(by.content)} from {_at(by.valid_from)}, recorded by {by.author} at epoch {by.epoch}"
                yield f"path: {found.item.id} <-SUPERSEDES- {by.id}"
        case "revoked" | "resolved":
            for revocation in found.revocations:
                if revocation.code == reason:
                    because = f": {_words(revocation.reason)}" if revocation.reason else ""
                    yield f"{reason} by {revocation.author} from {_at(revocation.effective_from)} (epoch {revocation.epoch}){because}"
        case "retracted" if found.retraction is not None:
            yield f"retracted by {found.retraction.by} at {_at(found.retraction.at)} (epoch {found.retraction.epoch})"
        case "erased" if found.erasure is not None:
            with_ = "" if found.erasure.target == found.item.id else f" with {found.erasure.target}"
            because = f": {_words(found.erasure.reason)}" if found.erasure.reason else ""
            yield f"erased{with_} by {found.erasure.by} at {_at(found.erasure.at)}{because}"
        case "invalidated":
            for one in found.verdicts:
                if one.says == "INVALIDATES" and not one.answers:
                    yield from _invalidated(found.item.id, one)
        case "unverified":
            for one in found.verdicts:
                if one.says != "INVALIDATES" and not one.answers:
                    state = "still waits for an answer" if one.says == "PROPOSED" else "has no sure answer"
                    cause = f" ({one.cause})" if one.cause else ""
                    yield f"unverified: whether {one.later} {_said(one.content)} ends it {state}{cause}"
        case "premise_invalid":
            for premise in found.premises:
                yield _premise(premise)
                yield _path(premise.path, "RESTS_ON")
            if found.circle:
                yield f"its premises rest on each other: {' -> '.join(found.circle)}"
            elif not found.premises:
                yield "its chain of premises goes round in a circle or is longer than 32"
        case "wrong_task":
            yield f"it is of the task {found.item.task}; the return's is {found.cycle.task}"
        case "wrong_purpose" if reason in compared:
            asked = compared[reason].wanted
            yield f"it is for {compared[reason].got}; the return " + (
                f"is for {asked}" if asked else "gave no purpose"
            )
        case "kind_not_allowed" if reason in compared:
            yield f"it is a {compared[reason].got}; the policy allows {compared[reason].wanted or 'no evidence at all'}"
        case "wrong_role" if reason in compared:
            yield f"it is for the role {compared[reason].got}; the returning one is {compared[reason].wanted}"
        case "over_item_budget" if reason in compared:
            yield f"it has {compared[reason].got} characters; the policy allows {compared[reason].wanted} an item"
        case "missing_receipt":
            if not found.unproven:
                yield "it has no receipt"
            for path in found.unproven:
                yield f"it has no receipt, and its source {path[-1]} is not proven either"
                yield _path(path, "DERIVED_FROM")
        case "receipt_mismatch":
            for receipt in found.receipts:
                if receipt.mismatch:
                    yield f"its binding to {receipt.id} claims sha256 {receipt.claimed[:12]}…; the receipt's is {receipt.sha256[:12]}…"
        case "receipt_revoked":
            yield "all its receipts are revoked or retracted"
            yield from (line for receipt in found.receipts for line in _dead(receipt))
        case "unbound_support":
            for claim in found.unbound:
                yield (
                    f"it claims {claim.dependency} "
                    + {
                        "no_receipt": "without a receipt of its own or a source that supports it",
                        "not_bound": f"by the receipt {claim.receipt}, which it is not bound to",
                        "receipt_dead": f"by the receipt {claim.receipt}, which is revoked or retracted",
                    }[claim.problem]
                )
        case "recorded_later":
            yield f"it was recorded at epoch {found.item.epoch}; the return saw up to {found.cycle.epoch}"
        case _:
            return


def _invalidated(id: str, one: Judged) -> Iterator[str]:
    replaced = f"; {one.later} supersedes {', '.join(one.supersedes)}" if one.supersedes else ""
    yield f"invalidated by {one.later}{_quoted(one.quote)} {_said(one.content)}{replaced}"
    known = [
        f"confidence {one.confidence:.3g}" if one.confidence is not None else "",
        f"for the task {one.task}" if one.task else "for every task",
        f"by {one.model}" if one.model else "",
        f"{one.tokens} tokens" if one.tokens is not None else "",
        f"recorded by {one.author} at epoch {one.epoch}",
    ]
    yield f"the verdict {one.id}: {', '.join(part for part in known if part)}" + (
        f"; {_words(one.rationale)}" if one.rationale else ""
    )
    yield f"path: {id} <-INVALIDATES- {one.later}" + "".join(
        f" -SUPERSEDES-> {old}" for old in one.supersedes[:1]
    )


def _premise(premise: BrokenPremise) -> str:
    if premise.refreshed is not None:
        now = f"{premise.refreshed.id} {_said(premise.refreshed.content)}"
        return f"rests on {premise.premise} {_said(premise.content)}, which now reads otherwise: {now}"
    causes = "; ".join(
        " ".join(part for part in (one.reason, "by", one.id or one.author) if part)
        + (_quoted(one.quote) if one.quote else f" {_said(one.content)}" if one.content else "")
        for one in premise.by
    )
    named = {one.reason for one in premise.by}
    rest = ", ".join(_spoken(reason) for reason in premise.reasons if reason not in named)
    return f"rests on {premise.path[-1]} {_said(premise.content)}: {'; '.join(part for part in (causes, rest) if part) or 'it does not stand'}"


def _dead(receipt: BoundReceipt) -> Iterator[str]:
    if receipt.retracted:
        yield f"{receipt.id} was retracted"
    for revocation in receipt.revocations:
        because = f": {_words(revocation.reason)}" if revocation.reason else ""
        yield f"{receipt.id} was revoked by {revocation.author} from {_at(revocation.effective_from)}{because}"


def _path(path: Iterable[str], link: str) -> str:
    return "path: " + f" -{link}-> ".join(path)


def _spoken(reason: str) -> str:
    return reason.replace("_", " ")


def _words(text: str, most: int = 96) -> str:
    """Text as one printable line: recorded words are data and may hold anything."""
    line = " ".join("".join(one if one.isprintable() else " " for one in text).split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _said(content: str | None) -> str:
    return "(erased)" if content is None else f'"{_words(content)}"'


def _quoted(quote: str | None) -> str:
    return f" «{_words(quote)}»" if quote else ""


def _at(moment: datetime | None) -> str:
    if moment is None:
        return "no end"
    return moment.strftime("%Y-%m-%d %H:%M:%S").rjust(19, "0") + "Z"
