"""A decision as one page: the picture, what covered the obligations, and the reasons in plain words.

A page stands by itself: no script, nothing fetched, readable on paper and without colours. It shows recorded words to
whoever opens it, as an auditor's answer does. Elements are built as a tree, so that no recorded word becomes markup.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import Element, SubElement, tostring

from tracegraph.audit import CycleReport, Judged, Need, Owed, Why, owed
from tracegraph.drawing import Arrow, Box, Shape, draw
from tracegraph.explanation import moment, one_line, render_why

if TYPE_CHECKING:
    from tracegraph.workspace import Workspace

SHAPES: dict[str, Shape] = {"admitted": "admitted", "rejected": "rejected", "left_out": "passed", "eligible": "passed"}
OUTCOMES = {
    "admitted": "✓ admitted",
    "rejected": "✗ rejected",
    "left_out": "○ passed, left out",
    "eligible": "○ passed, not released",
    "outside_pool": "– outside the pool",
    "not_judged": "– not judged",
}
DRAWN = 40
"""Items of a pool in a return's picture; more would not be read. The table has them all."""

ASKED = 300
"""Items of a pool that a page explains."""

STYLE = """
body { font: 14px/1.45 system-ui, "Liberation Sans", Arial, sans-serif; color: #222; margin: 2rem auto; padding: 0 1rem;
  max-width: 75rem; }
h1 { font-size: 1.4rem; margin: 0; overflow-wrap: anywhere; } h2 { font-size: 1.1rem; margin: 1.6rem 0 .4rem; }
p { margin: .3rem 0; overflow-wrap: anywhere; } ul { margin: 0; padding-left: 1.1rem; }
.picture { display: block; width: 100%; height: auto; font-family: system-ui, "Liberation Sans", Arial, sans-serif; }
.deep { padding-left: 1.5rem; } .small { color: #444; font-size: .85rem; } .outcome { font-weight: bold; }
table { border-collapse: collapse; width: 100%; table-layout: fixed; }
th, td { border: 1px solid #999; padding: .3rem .5rem; text-align: left; vertical-align: top; overflow-wrap: anywhere; }
th { background: #eee; width: 8.5rem; } th.says { width: 28%; } th:last-child { width: auto; }
@page { size: A4 landscape; margin: 12mm; }
@media print { body { margin: 0; max-width: none; } tr, .picture { break-inside: avoid; } h2 { break-after: avoid; }
  .picture { max-height: 165mm; } }
"""
POLICY = "default-src 'none'; style-src 'unsafe-inline'"


# --- the two pages ------------------------------------------------------------------------------------------


def why_page(found: Why) -> str:
    """Why one item came out of a return as it did."""
    cycle, item = found.cycle, found.item
    page, body = _page(f"{item.id}: {OUTCOMES[found.outcome]}, return {cycle.id}")
    first, *rest = render_why(found)
    _add(body, "h1", first)
    _decision(body, cycle)
    _add(body, "h2", "The decision")
    body.append(draw(*_evidence(found), title=first))
    _legend(body)
    _add(body, "h2", "In words")
    for line in rest:
        _add(body, "p", line.strip(), {"class": "deep"} if line.startswith("    ") else {})
    if found.gates:
        rows = [
            ("✓ passed" if gate.passed else "✗ failed", gate.gate, ", ".join(map(_spoken, gate.reasons)) or "–")
            for gate in found.gates
        ]
        _table(body, "The gates", ("outcome", "gate", "reasons"), rows)
    _table(body, "The item", ("what", "recorded"), list(_recorded(found)))
    return _text(page)


def cycle_page(report: CycleReport, due: Sequence[Owed], whys: Sequence[Why], left: int = 0) -> str:
    """One whole return: every item of its pool by outcome, with the reason beside it. `left`: items not asked about."""
    page, body = _page(f"Return {report.cycle_id}: {report.decision}")
    reason = f" ({_spoken(report.reason)})" if report.reason else ""
    _add(body, "h1", f"{report.principal} returns for {report.task}: {report.decision}{reason}")
    _decision(body, report)
    _add(body, "h2", "The decision")
    drawn = _first(whys, due)
    body.append(draw(*_return(report, due, drawn), title=f"Return {report.cycle_id}: {report.decision}"))
    if len(drawn) < len(whys):
        _add(body, "p", f"{len(whys) - len(drawn)} more items are in the table alone.", {"class": "small"})
    _legend(body)
    if due:
        rows = [(one.obligation, _list(map(_need, one.needs))) for one in due]
        _table(body, "What was owed", ("obligation", "what it requires, and who supports it"), rows)
    order = {name: rank for rank, name in enumerate(OUTCOMES)}
    sorted_ = sorted(whys, key=lambda one: (order[one.outcome], one.rank or 0, one.item.id))
    cells = [
        (OUTCOMES[one.outcome], one.item.id, one_line(one.item.content or "(erased)", 300), _list(_reasons(one)))
        for one in sorted_
    ]
    _table(body, "Items by outcome", ("outcome", "item", "what it says", "why"), cells)
    if left:
        _add(body, "p", f"{left} more items of the pool are not shown; ask why of each.")
    return _text(page)


async def whole_return(workspace: Workspace, cycle_id: str) -> str:
    """The page of one return, with the reasons of up to ASKED items of its pool. Raises `unknown_item`."""
    report = await workspace.cycle(cycle_id)
    due = await owed(workspace.graph, workspace.id, cycle_id)
    named = dict.fromkeys((*report.admitted, *(one.obligation for one in due), *report.rejected, *report.pool))
    asked = list(named)[:ASKED]
    whys = [await workspace.why(id, cycle_id) for id in asked]
    return cycle_page(report, due, whys, len(named) - len(asked))


# --- pictures -----------------------------------------------------------------------------------------------


def _item(found: Why) -> Box:
    item = found.item
    why = found.admitted_for if found.outcome == "admitted" else ", ".join(map(_spoken, found.reasons))
    head = OUTCOMES[found.outcome].partition(" ")[2] + (f": {why}" if why else "")
    return Box(f"item {item.id}", SHAPES.get(found.outcome, "item"), head, item.id, item.content or "(erased)")


def _evidence(found: Why) -> tuple[list[Box], list[Arrow]]:
    """The return, the item, and each piece of evidence beside it."""
    cycle, item = found.cycle, found.item
    who = f"{cycle.principal} as {cycle.role}, at {moment(cycle.valid_at)}"
    boxes = [Box("return", "return", f"return: {cycle.decision}", who), _item(found)]
    arrows = [Arrow("return", f"item {item.id}", _because(found), "against" if found.reasons else "plain")]
    for box, arrow in _pieces(found):
        boxes.append(box)
        arrows.append(arrow)
    return boxes, arrows


def _pieces(found: Why) -> Iterator[tuple[Box, Arrow]]:
    this = f"item {found.item.id}"
    yield from _ended(found)
    for path in (*(one.path for one in found.premises), found.circle):
        yield from _chain(path, "rests on")
    for premise in found.premises:
        last = f"item {premise.path[-1]}"
        if premise.refreshed is not None:
            now = premise.refreshed
            yield _other(now.id, now.content), Arrow(last, f"item {now.id}", "now says", "replaced")
        for cause in premise.by:
            by = Box(f"{last} {cause.reason}", "note", _spoken(cause.reason), cause.author, cause.content or "")
            if cause.reason in ("superseded", "invalidated"):
                by = _other(cause.id, cause.content)
            yield by, Arrow(last, by.key, f"{_spoken(cause.reason)} by{_quoted(cause.quote)}", "against")
    for source in found.sources:
        yield from _chain(source.path, "derived from")
        scope = Box(f"scope {source.scope}", "note", "scope", source.scope, f"{found.cycle.role} may not read it")
        yield scope, Arrow(f"item {source.path[-1]}", scope.key, "is in", "against")
    if {"scope_not_granted", "denied"} & set(found.reasons):
        may = found.permission
        word = "is denied it" if may.denied else "has no grant to read it"
        scope = Box(f"scope {may.scope}", "note", "scope", may.scope, f"{may.role} {word}")
        yield scope, Arrow(this, scope.key, "is in", "against")
    for number, one in enumerate(found.compared):
        box = Box(f"compared {number}", "note", _spoken(one.reason), f"wanted {one.wanted or 'none'}", f"has {one.got}")
        yield box, Arrow(this, box.key, "does not fit", "against")
    for receipt in found.receipts:
        wrong = ["its digest differs"] * receipt.mismatch + ["retracted"] * receipt.retracted
        wrong += [one.code for one in receipt.revocations]
        box = Box(f"receipt {receipt.id}", "note", "source", receipt.uri, ", ".join(wrong))
        yield box, Arrow(this, box.key, "bound to", "against" if wrong else "plain")
    for claim in found.unbound:
        box = Box(f"claim {claim.dependency}", "missing", "not proven", claim.dependency)
        yield box, Arrow(this, box.key, "claims", "against")
    for path in found.unproven:
        yield from _chain(path, "derived from")


def _ended(found: Why) -> Iterator[tuple[Box, Arrow]]:
    """What took the item's place, revoked it, or was judged against it."""
    this = f"item {found.item.id}"
    for by in found.superseded_by:
        yield _other(by.id, by.content), Arrow(this, f"item {by.id}", "superseded by", "replaced")
    for one in found.revocations:
        box = Box(f"revocation {one.id}", "note", one.code, f"by {one.author}", one.reason)
        yield box, Arrow(this, box.key, f"{one.code} from {moment(one.effective_from)}", "against")
    for word, gone in (("retracted", found.retraction), ("erased", found.erasure)):
        if gone is not None:
            box = Box(word, "note", word, f"by {gone.by}", f"at {moment(gone.at)}")
            yield box, Arrow(this, word, word, "against")
    for verdict in found.verdicts:
        yield _other(verdict.later, verdict.content), _verdict(this, verdict)
        for old in verdict.supersedes[:1]:
            yield _other(old, None), Arrow(f"item {verdict.later}", f"item {old}", "replaced", "replaced")
        for answer in verdict.answers:
            label = f"answered: {answer.says.lower()}{_quoted(answer.quote)}"
            yield _other(answer.later, answer.content), Arrow(this, f"item {answer.later}", label)


def _verdict(this: str, one: Judged) -> Arrow:
    said = {"INVALIDATES": "invalidated by", "PROPOSED": "not yet judged against", "UNVERIFIED": "unsure against"}
    counts = one.says == "INVALIDATES" and not one.answers
    return Arrow(this, f"item {one.later}", said[one.says] + _quoted(one.quote), "against" if counts else "plain")


def _chain(path: Sequence[str], label: str) -> Iterator[tuple[Box, Arrow]]:
    for here, there in pairwise(path):
        yield _other(there, None), Arrow(f"item {here}", f"item {there}", label)


def _other(id: str | None, content: str | None) -> Box:
    return Box(f"item {id}", "item", "item", id or "", content or "")


def _return(report: CycleReport, due: Sequence[Owed], whys: Sequence[Why]) -> tuple[list[Box], list[Arrow]]:
    """Obligations, what they require, the items by outcome, and what ended the rejected ones."""
    boxes = [_item(one) for one in whys]
    arrows: list[Arrow] = []
    for one in due:
        for need in one.needs:
            shape: Shape = "covered" if need.covered else "missing"
            head = ("covered" if need.covered else "not covered") + (", critical" if need.critical else "")
            boxes.append(Box(f"need {need.dependency}", shape, head, need.dependency))
            arrows.append(Arrow(f"item {one.obligation}", f"need {need.dependency}", "requires"))
            for id in need.supporters:
                arrows.append(Arrow(f"need {need.dependency}", f"item {id}", "supported by"))
        arrows += [Arrow(f"item {one.obligation}", f"item {id}", "unresolved") for id in one.frontiers]
    for found in whys:
        if found.outcome == "rejected":
            pieces = [*_ended(found), *(piece for one in found.premises for piece in _chain(one.path, "rests on"))]
            boxes += [box for box, _ in pieces]
            arrows += [arrow for _, arrow in pieces]
    ends = {(one.source, one.target) for one in arrows if one.label != "replaced"}
    arrows = [one for one in arrows if one.label != "replaced" or (one.target, one.source) not in ends]
    if not boxes:
        boxes = [Box("return", "return", f"return: {report.decision}", report.principal, "nothing was in its pool")]
    return boxes, arrows


def _first(whys: Sequence[Why], due: Sequence[Owed]) -> list[Why]:
    """Those worth drawing where not all can be: obligations and what supports them, the rejected, then the rest."""
    named = {one.obligation for one in due} | {id for one in due for need in one.needs for id in need.supporters}
    ranked = sorted(whys, key=lambda one: (one.item.id not in named, one.outcome != "rejected", one.item.id))
    return ranked[:DRAWN]


# --- words --------------------------------------------------------------------------------------------------


def _because(found: Why) -> str:
    return ", ".join(map(_spoken, found.reasons or found.outside or found.selection)) or _spoken(found.outcome)


def _reasons(found: Why) -> list[str]:
    """A row's reasons: the summing line without the item's own id, then each piece of evidence."""
    first, *rest = render_why(found)
    if found.outcome in ("rejected", "outside_pool"):
        return [line.strip() for line in rest if not line.startswith("  passed:")] or [first]
    selection = [line.strip() for line in rest if line.startswith("  selection:")]
    return [first.removeprefix(found.item.id).strip(), *selection]


def _need(need: Need) -> str:
    kind = " (critical)" if need.critical else ""
    state = "✓ covered" if need.covered else "✗ not covered"
    who = f"supported in the pool by {', '.join(need.supporters) or 'nothing'}"
    return f"{need.dependency}{kind}: {state}; {who}"


def _recorded(found: Why) -> Iterator[tuple[str, str]]:
    item = found.item
    yield "id", item.id
    yield "key, kind, scope", f"{item.key}, {item.kind}, {item.scope}"
    yield "says", one_line(item.content, 2000) if item.content is not None else "(erased)"
    yield "valid", f"from {moment(item.valid_from)}, to {moment(item.valid_to)}"
    yield "recorded", f"by {item.author} at {moment(item.recorded_at)}, epoch {item.epoch}"


def _quoted(quote: str | None) -> str:
    return f" «{one_line(quote, 60)}»" if quote else ""


def _spoken(reason: str) -> str:
    return reason.replace("_", " ")


# --- elements -----------------------------------------------------------------------------------------------


def _page(title: str) -> tuple[Element, Element]:
    page = Element("html", {"lang": "en"})
    head = SubElement(page, "head")
    SubElement(head, "meta", {"charset": "utf-8"})
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": POLICY})
    SubElement(head, "meta", {"name": "viewport", "content": "width=device-width"})
    _add(head, "title", title)
    SubElement(head, "style").text = STYLE
    return page, SubElement(page, "body")


def _text(page: Element) -> str:
    return "<!DOCTYPE html>\n" + tostring(page, encoding="unicode", method="html") + "\n"


def _add(parent: Element, tag: str, text: str, attributes: Mapping[str, str] | None = None) -> Element:
    made = SubElement(parent, tag, dict(attributes or {}))
    made.text = one_line(text, 4000)
    return made


def _decision(body: Element, cycle: Any) -> None:
    """The return's facts, of a CycleReport or of a `why`'s return."""
    purpose = f", to {cycle.purpose}" if cycle.purpose else ""
    preview = " This was a preview: no view was signed." if cycle.preview else ""
    id = getattr(cycle, "cycle_id", None) or cycle.id
    _add(body, "p", f"{cycle.principal} as {cycle.role}, for {cycle.task}{purpose}. Return {id}.{preview}")
    _add(body, "p", f"Decided for {moment(cycle.valid_at)}, knowing what was recorded up to epoch {cycle.epoch}.")
    lacking = f" Not covered: {', '.join(cycle.uncovered)}." if cycle.uncovered else ""
    shares = f"obligations covered {cycle.coverage:.0%}, critical dependencies {cycle.critical:.0%}"
    _add(body, "p", f"Decision: {cycle.decision}; {shares}.{lacking}")


def _legend(body: Element) -> None:
    _add(
        body,
        "p",
        "✓ rounded, thick line: admitted. ✗ cut corners, broken line: rejected. ○ square: passed every gate, and is not"
        " in a view. Pointed: what an obligation requires, ✓ covered or ✗ not. Thick arrow: speaks against; broken"
        " arrow: replaced.",
        {"class": "small"},
    )


def _table(body: Element, title: str, head: Sequence[str], rows: Iterable[Sequence[str | Element]]) -> None:
    _add(body, "h2", title)
    table = SubElement(body, "table")
    top = SubElement(SubElement(table, "thead"), "tr")
    for name in head:
        _add(top, "th", name, {"class": name.split()[-1]})
    rest = SubElement(table, "tbody")
    for row in rows:
        line = SubElement(rest, "tr")
        for name, cell in zip(head, row, strict=True):
            if isinstance(cell, str):
                _add(line, "td", cell, {"class": "outcome"} if name == "outcome" else {})
            else:
                SubElement(line, "td").append(cell)


def _list(lines: Iterable[str]) -> Element:
    made = Element("ul")
    for line in lines:
        _add(made, "li", line)
    return made
