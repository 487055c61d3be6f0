"""What an operator sees of the work: OpenTelemetry spans and metrics when its API is installed, and log records.

Counts, codes, durations, a workspace's and a cycle's id; never content, names of people, keys or tokens. Nothing is
sent unless the process has configured an exporter (`pip install 'tracegraph[otel]'`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from tracegraph.errors import TracegraphError

if TYPE_CHECKING:
    from opentelemetry.metrics import Counter, Histogram
    from opentelemetry.trace import Span, Tracer

log = logging.getLogger("tracegraph")
log.addHandler(logging.NullHandler())

Fact = str | int | float | bool


@dataclass(frozen=True)
class Instruments:
    """What the OpenTelemetry API gives; made once."""

    tracer: Tracer
    returns: Counter
    seconds: Histogram
    """How long returns took."""
    batches: Counter
    records: Counter
    tokens: Counter


@cache
def instruments() -> Instruments | None:
    """None when OpenTelemetry's API is not installed."""
    try:
        from opentelemetry import metrics, trace
    except ImportError:
        return None
    meter = metrics.get_meter("tracegraph")
    return Instruments(
        tracer=trace.get_tracer("tracegraph"),
        returns=meter.create_counter("tracegraph.returns", unit="{return}", description="Returns, by decision"),
        seconds=meter.create_histogram("tracegraph.return.duration", unit="s", description="How long a return took"),
        batches=meter.create_counter("tracegraph.batches", unit="{batch}", description="Batches written, by outcome"),
        records=meter.create_counter("tracegraph.records", unit="{record}", description="Records written"),
        tokens=meter.create_counter("tracegraph.tokens", unit="{token}", description="Tokens that verification took"),
    )


@dataclass
class Stage:
    """One stage at work; `note` what it found."""

    facts: dict[str, Fact] = field(default_factory=dict)
    span: Span | None = None

    def note(self, **facts: Fact) -> None:
        self.facts |= facts
        if self.span is not None:
            self.span.set_attributes({f"tracegraph.{name}": value for name, value in facts.items()})


@contextmanager
def stage(name: str) -> Iterator[Stage]:
    """A span around a stage; its failure is told by its code, without the words."""
    found = instruments()
    if found is None:
        yield Stage()
        return
    with found.tracer.start_as_current_span(
        f"tracegraph.{name}", record_exception=False, set_status_on_exception=False
    ) as span:
        try:
            yield Stage(span=span)
        except BaseException as fault:
            from opentelemetry.trace import StatusCode

            span.set_attribute("error.type", _code(fault))
            span.set_status(StatusCode.ERROR)
            raise


@contextmanager
def returning() -> Iterator[Stage]:
    """The span around one whole return; counted, timed and logged by its decision, or by its refusal's code."""
    begun = time.perf_counter()
    decision = "error"
    with stage("return") as whole:
        try:
            yield whole
            decision = str(whole.facts["decision"])
        except BaseException as fault:
            whole.note(error=_code(fault))
            raise
        finally:
            taken = time.perf_counter() - begun
            if found := instruments():
                found.returns.add(1, {"decision": decision, "error": whole.facts.get("error", "")})
                found.seconds.record(taken, {"decision": decision})
                found.tokens.add(int(whole.facts.get("tokens", 0)))
            tell("return", {**whole.facts, "decision": decision, "seconds": round(taken, 6)})


def wrote(workspace: str, records: int, epoch: int) -> None:
    """One batch is in the graph."""
    if found := instruments():
        found.batches.add(1, {"outcome": "written"})
        found.records.add(records)
    tell("batch", {"workspace": workspace, "epoch": epoch, "records": records})


def refused(workspace: str, fault: BaseException) -> None:
    """One batch was refused, or the server failed it."""
    if found := instruments():
        found.batches.add(1, {"outcome": _code(fault)})
    tell("batch", {"workspace": workspace, "error": _code(fault)})


def tell(event: str, facts: Mapping[str, Fact]) -> None:
    """A log record: its message is the event's name, its attribute `tracegraph` the facts."""
    log.info(event, extra={"tracegraph": dict(facts)})


def _code(fault: BaseException) -> str:
    return fault.code if isinstance(fault, TracegraphError) else type(fault).__name__
