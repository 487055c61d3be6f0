"""Boxes and arrows as one SVG element that stands by itself: laid out by graphlay, drawn here.

Every state has a shape, a line and a mark of its own beside its colour, so that it is told apart on paper and without
colours. Texts become XML text nodes: what they say is never markup.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal
from xml.etree.ElementTree import Element, SubElement

from tracegraph.explanation import one_line

Shape = Literal["return", "admitted", "rejected", "passed", "item", "covered", "missing", "note"]
Line = Literal["against", "replaced", "plain"]

SIZE, ADVANCE, LEADING, PADDING = 12, 7.0, 16, 10
WIDTH = 200
LABEL = 24
"""Letters on one line of an arrow's label."""

MARK: dict[Shape, str] = {"admitted": "✓", "rejected": "✗", "passed": "○", "covered": "✓", "missing": "✗"}
COLOUR: dict[Shape, str] = {
    "return": "#332288",
    "admitted": "#117733",
    "rejected": "#b00020",
    "passed": "#444444",
    "item": "#0072b2",
    "covered": "#117733",
    "missing": "#b00020",
    "note": "#444444",
}
STROKE: dict[Line, tuple[str, str, str]] = {
    "against": ("#b00020", "2.5", ""),
    "replaced": ("#777777", "2", "7 4"),
    "plain": ("#444444", "1.2", ""),
}


@dataclass(frozen=True)
class Box:
    """`head` is what it is, in a few words; `name` and `words` are recorded text."""

    key: str
    shape: Shape
    head: str
    name: str = ""
    words: str = ""

    def lines(self) -> list[tuple[str, str]]:
        """Text and class of each line."""
        head = f"{MARK[self.shape]} {self.head}" if self.shape in MARK else self.head
        letters = int((WIDTH - PADDING) / ADVANCE)
        return [
            *((line, "head") for line in wrapped(head, letters - 3, 2)),  # bold is wider
            *((line, "name") for line in wrapped(self.name, letters, 2)),
            *((line, "words") for line in wrapped(self.words, letters, 4)),
        ]


@dataclass(frozen=True)
class Arrow:
    source: str
    target: str
    label: str
    line: Line = "plain"


def draw(boxes: Iterable[Box], arrows: Iterable[Arrow], title: str) -> Element:
    """The picture; boxes of one key are one, and arrows that lead nowhere are left out."""
    import graphlay

    placed = {box.key: box for box in reversed(list(boxes))}
    placed = dict(reversed(placed.items()))
    joined = list(dict.fromkeys(one for one in arrows if one.source in placed and one.target in placed))
    graph = graphlay.Graph()
    for box in placed.values():
        graph.node(box.key, width=WIDTH, height=len(box.lines()) * LEADING + 2 * PADDING)
    for arrow in joined:
        lines = wrapped(arrow.label, LABEL, 3)
        width = max(map(columns, lines), default=0) * ADVANCE
        # room for the arrow on both sides of its words
        graph.edge(arrow.source, arrow.target, label_size={"width": width + 44, "height": len(lines) * LEADING})
    layout = graphlay.layout(graph, options=OPTIONS)
    low, high = layout.bounds["min"], layout.bounds["max"]
    left, top = low["x"] - 12, low["y"] - 12
    wide, tall = high["x"] - left + 12, high["y"] - top + 12
    svg = Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "role": "img", "class": "picture"})
    svg.set("viewBox", f"{left:.0f} {top:.0f} {wide:.0f} {tall:.0f}")
    svg.set("style", f"max-width: {wide:.0f}px")
    SubElement(svg, "title").text = one_line(title)
    _heads(svg)
    for arrow, route in zip(joined, layout.edges, strict=True):
        _arrow(svg, arrow, [(point["x"], point["y"]) for point in route["points"]])
    for box, spot in zip(placed.values(), layout.nodes, strict=True):
        _box(svg, box, spot["center"]["x"], spot["center"]["y"], spot["size"]["height"])
    for arrow, route in zip(joined, layout.edges, strict=True):
        anchor = route["label_anchor"]
        if anchor is not None:
            _label(svg, arrow, anchor["x"], anchor["y"])
    return svg


OPTIONS = {
    "direction": "leftright",
    "spacing": {"isolated_max_columns": 4, "isolated_gap": 24.0, "node_gap": 26.0, "edge_label_margin": 8.0},
    "labels": {"reservation": "always"},
}


def wrapped(text: str, letters: int, most: int) -> list[str]:
    """One printable line of text as at most `most` lines of at most `letters` columns."""
    lines: list[str] = []
    line = ""
    for word in one_line(text, letters * most * 2).split():
        for piece in _pieces(word, letters):
            if line and columns(f"{line} {piece}") > letters:
                lines.append(line)
                line = piece
            else:
                line = f"{line} {piece}".strip()
    if line:
        lines.append(line)
    if len(lines) > most:
        last = lines[most - 1]
        while columns(last + "…") > letters:
            last = last[:-1]
        lines = [*lines[: most - 1], last + "…"]
    return lines


def _pieces(word: str, letters: int) -> Iterator[str]:
    piece = ""
    for sign in word:
        if columns(piece + sign) > letters:
            yield piece
            piece = ""
        piece += sign
    yield piece


def columns(text: str) -> float:
    """How wide text is at most, in usual letters of the common sans-serif fonts."""
    return sum(map(_columns, text))


def _columns(sign: str) -> float:
    if sign in "mwMW@%—…" or unicodedata.east_asian_width(sign) in "WF":
        return 1.8
    return 1.2 if sign.isupper() else 0.6 if sign in "iljft.,:;'|! " else 1.05


def _heads(svg: Element) -> None:
    defs = SubElement(svg, "defs")
    for line, (colour, _, _) in STROKE.items():
        head = {"id": f"head-{line}", "viewBox": "0 0 10 10", "refX": "9", "refY": "5", "orient": "auto"}
        size = {"markerWidth": "9", "markerHeight": "9", "markerUnits": "userSpaceOnUse"}
        SubElement(SubElement(defs, "marker", {**head, **size}), "path", {"d": "M0 0L10 5L0 10z", "fill": colour})


def _arrow(svg: Element, arrow: Arrow, points: list[tuple[float, float]]) -> None:
    colour, width, dashes = STROKE[arrow.line]
    shape = {"points": " ".join(f"{x:.1f},{y:.1f}" for x, y in points), "fill": "none", "stroke": colour}
    shape |= {"stroke-width": width, "marker-end": f"url(#head-{arrow.line})", "class": f"arrow {arrow.line}"}
    SubElement(svg, "polyline", shape | ({"stroke-dasharray": dashes} if dashes else {}))


def _label(svg: Element, arrow: Arrow, x: float, y: float) -> None:
    lines = wrapped(arrow.label, LABEL, 3)
    width, height = max(map(columns, lines)) * ADVANCE + 4, len(lines) * LEADING
    back = {"x": f"{x - width / 2:.1f}", "y": f"{y - height / 2:.1f}", "width": f"{width:.1f}", "height": str(height)}
    SubElement(svg, "rect", back | {"fill": "#ffffff"})
    for number, line in enumerate(lines):
        _text(svg, line, x, y - height / 2 + (number + 0.75) * LEADING, "label")


def _box(svg: Element, box: Box, x: float, y: float, height: float) -> None:
    left, top, right, low = x - WIDTH / 2, y - height / 2, x + WIDTH / 2, y + height / 2
    group = SubElement(svg, "g", {"class": f"box {box.shape}"})
    SubElement(group, "title").text = one_line(" ".join((box.head, box.name, box.words)), 500)
    look = {"fill": "#ffffff", "stroke": COLOUR[box.shape], "stroke-width": "2"}
    match box.shape:
        case "rejected":
            corners = _corners(left, top, right, low, 14, 14)
            SubElement(group, "polygon", look | {"points": corners, "stroke-dasharray": "6 3"})
        case "covered" | "missing":
            dashes = {"stroke-dasharray": "6 3"} if box.shape == "missing" else {}
            corners = _corners(left, top, right, low, 12, height / 2)
            SubElement(group, "polygon", look | dashes | {"points": corners})
        case _:
            size = {"x": f"{left:.1f}", "y": f"{top:.1f}", "width": str(WIDTH), "height": f"{height:.1f}"}
            round_ = {"admitted": "12", "note": f"{height / 2:.0f}", "return": "0"}.get(box.shape, "2")
            width = {"admitted": "3.5", "return": "3.5", "note": "1"}.get(box.shape, "1.5")
            SubElement(group, "rect", look | size | {"rx": round_, "stroke-width": width})
    for number, (line, kind) in enumerate(box.lines()):
        _text(group, line, x, top + PADDING + (number + 0.75) * LEADING, kind, COLOUR[box.shape])


def _corners(left: float, top: float, right: float, low: float, dx: float, dy: float) -> str:
    """A rectangle with its corners cut off."""
    points = [(left + dx, top), (right - dx, top), (right, top + dy), (right, low - dy)]
    points += [(right - dx, low), (left + dx, low), (left, low - dy), (left, top + dy)]
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)


def _text(parent: Element, text: str, x: float, y: float, kind: str, colour: str = "#222222") -> None:
    place = {"x": f"{x:.1f}", "y": f"{y:.1f}", "text-anchor": "middle", "font-size": str(SIZE), "class": kind}
    weight = {"font-weight": "bold"} if kind == "head" else {}
    ink = colour if kind == "head" else "#222222"
    SubElement(parent, "text", place | weight | {"fill": ink}).text = text
