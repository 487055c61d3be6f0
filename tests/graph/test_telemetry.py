"""What operators see of a return: its stages as spans, counts as attributes and metrics, never a word of content."""

from __future__ import annotations

import json
import logging
import sys
from typing import Any

import pytest
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import tracegraph
from tracegraph import Item, Receipt, TracegraphError, telemetry

pytestmark = pytest.mark.anyio
SECRET = "the-hotel-is-called-Marguerite"  # noqa: S105


@pytest.fixture(scope="module")
def exported() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


@pytest.fixture(scope="module")
def measured() -> InMemoryMetricReader:
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider([reader]))
    return reader


@pytest.fixture
def spans(exported: InMemorySpanExporter) -> InMemorySpanExporter:
    exported.clear()
    return exported


async def returned(ws: tracegraph.Workspace) -> Any:
    """Somebody leaves, something is recorded, and they come back."""
    await ws.grant(role="planner", read=["trip"], write=["trip"], principal="ada")
    ticket = await ws.depart(principal="ada", role="planner", task="t")
    await ws.record(
        Item(id="hotel", scope="trip", content=SECRET, receipts=[Receipt(uri="mail:1", text=SECRET)]),
        Item(id="bare", scope="trip", content=SECRET),
    )
    return await ws.admit(ticket, principal="ada", query=SECRET)


def points(reader: InMemoryMetricReader, name: str) -> list[tuple[dict[str, Any], Any]]:
    data = reader.get_metrics_data()
    assert data is not None
    return [
        (dict(point.attributes or {}), getattr(point, "value", None) or getattr(point, "count", None))
        for resource in data.resource_metrics
        for scope in resource.scope_metrics
        for metric in scope.metrics
        if metric.name == name
        for point in metric.data.data_points
    ]


async def test_a_return_is_one_trace_with_its_stages_and_counts(
    workspace: tracegraph.Workspace, spans: InMemorySpanExporter, measured: InMemoryMetricReader
) -> None:
    result = await returned(workspace)

    found: dict[str, ReadableSpan] = {span.name: span for span in spans.get_finished_spans()}
    assert list(found) == [f"tracegraph.{name}" for name in ("pin", "judge", "cover", "sign", "record", "return")]
    whole = found["tracegraph.return"]
    assert {span.context.trace_id for span in found.values()} == {whole.context.trace_id}
    assert all(span.parent == whole.context for span in found.values() if span is not whole)
    told = dict(whole.attributes or {})
    assert told["tracegraph.decision"] == "admitted"
    assert (told["tracegraph.items"], told["tracegraph.rejected"]) == (1, 1)
    assert told["tracegraph.cycle"] == result.cycle_id
    judged = dict(found["tracegraph.judge"].attributes or {})
    assert (judged["tracegraph.remembered"], judged["tracegraph.judged"]) == (2, 2)
    assert ({"decision": "admitted", "error": ""}, 1) in points(measured, "tracegraph.returns")
    assert ({"decision": "admitted"}, 1) in points(measured, "tracegraph.return.duration")
    assert ({"outcome": "written"}, 3) in points(measured, "tracegraph.batches")


async def test_a_refusal_is_told_by_its_code(
    workspace: tracegraph.Workspace, spans: InMemorySpanExporter, measured: InMemoryMetricReader
) -> None:
    await workspace.grant(role="planner", principal="ada")
    ticket = await workspace.depart(principal="ada", role="planner", task="t")
    await workspace.admit(ticket, principal="ada")
    spans.clear()
    with pytest.raises(TracegraphError, match="ticket_consumed"):
        await workspace.admit(ticket, principal="ada")
    with pytest.raises(TracegraphError, match="unknown_item"):
        await workspace.record(Item(scope="s", content=SECRET, depends_on=["nothing"]))

    assert [(span.name, (span.attributes or {}).get("error.type")) for span in spans.get_finished_spans()] == [
        ("tracegraph.pin", "ticket_consumed"),
        ("tracegraph.return", "ticket_consumed"),
    ]
    assert ({"decision": "error", "error": "ticket_consumed"}, 1) in points(measured, "tracegraph.returns")
    assert ({"outcome": "unknown_item"}, 1) in points(measured, "tracegraph.batches")


async def test_no_word_of_content_and_no_name_of_a_person_leaves(
    workspace: tracegraph.Workspace,
    spans: InMemorySpanExporter,
    measured: InMemoryMetricReader,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="tracegraph")
    await returned(workspace)

    records = [record for record in caplog.records if record.name == "tracegraph"]
    assert [record.getMessage() for record in records] == ["batch", "batch", "batch", "return"]
    facts = records[-1].__dict__["tracegraph"]
    assert (facts["decision"], facts["workspace"]) == ("admitted", workspace.id)
    assert facts["seconds"] > 0
    data = measured.get_metrics_data()
    assert data is not None
    seen = [span.to_json() for span in spans.get_finished_spans()]
    seen += [data.to_json(), *(json.dumps(record.__dict__, default=str) for record in records)]
    for text in seen:
        assert SECRET not in text
        assert '"ada"' not in text


async def test_without_opentelemetry_the_log_still_tells(
    workspace: tracegraph.Workspace, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    telemetry.instruments.cache_clear()
    caplog.set_level(logging.INFO, logger="tracegraph")
    try:
        assert telemetry.instruments() is None
        assert (await returned(workspace)).decision == "admitted"
    finally:
        telemetry.instruments.cache_clear()

    assert [record.getMessage() for record in caplog.records if record.name == "tracegraph"][-1] == "return"
