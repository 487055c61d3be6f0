"""Audits, checks and evaluations."""

from __future__ import annotations

import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tracegraph.cli import (
    AUDIT,
    Json,
    Name,
    app,
    eval_app,
    harmless,
    on,
    plain,
    progress,
    run,
    show,
    usage,
)

if TYPE_CHECKING:
    from tracegraph.audit import CycleReport, Returned
    from tracegraph.chain import Verification
    from tracegraph.model import Pairs
    from tracegraph.workspace import Workspace


Html = Annotated[
    Path | None, typer.Option(help="Write a page there as well: the decision as a picture, with the reasons.")
]


def _write(file: Path, page: str) -> None:
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        usage(f"{file}: cannot be written ({type(error).__name__}).")


@app.command(rich_help_panel=AUDIT)
def why(
    item: Annotated[str, typer.Argument(help="The item's id.")],
    cycle: Annotated[str, typer.Option(help="The return cycle's id, as admit and join print it.")],
    workspace: Name = "",
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Explain why an item came out of a return as it did, with its evidence.

    Example: tracegraph why p0 -w trip --cycle cycle-1
    """
    from tracegraph.explanation import render_why

    found = on(workspace, lambda ws: ws.why(item, cycle))
    if html is not None:
        from tracegraph.pages import why_page

        _write(html, why_page(found))
    show(found, as_json, render_why(found))


@app.command(rich_help_panel=AUDIT)
def returns(
    item: Annotated[str | None, typer.Argument(help="Only returns that had this item before them.")] = None,
    workspace: Name = "",
    limit: Annotated[int, typer.Option(help="How many, the newest first.")] = 50,
    as_json: Json = False,
) -> None:
    """List the returns, and with an item what came of it: where to find the cycle that `why` asks for.

    Example: tracegraph returns p0 -w trip
    """
    found = on(workspace, lambda ws: ws.returns(item, limit=limit))

    def told(one: Returned) -> str:
        came = "admitted" if one.admitted else ", ".join(one.reasons) or "left out"
        line = f"{one.at.isoformat(timespec='seconds')}  {one.cycle_id}  {one.decision}"
        line += f"{' (preview)' if one.preview else ''}  {one.principal} as {one.role} for {one.task}"
        return f"{line}  {item}: {came}" if item else line

    show(found, as_json, [told(one) for one in found] or ["no returns"])


@app.command("cycle", rich_help_panel=AUDIT)
def cycle_(
    cycle: Annotated[str, typer.Argument(help="The return cycle's id.")],
    workspace: Name = "",
    html: Html = None,
    as_json: Json = False,
) -> None:
    """Show a return as it was decided, every item of its pool included.

    Example: tracegraph cycle cycle-1 -w trip --html return.html
    """

    async def work(ws: Workspace) -> tuple[CycleReport, str | None]:
        from tracegraph.pages import whole_return

        return await ws.cycle(cycle), await whole_return(ws, cycle) if html is not None else None

    found, page = on(workspace, work)
    if html is not None and page is not None:
        _write(html, page)
    show(
        found,
        as_json,
        [
            f"{found.decision}{f' ({found.reason})' if found.reason else ''}{', a preview' if found.preview else ''}: "
            f"{found.principal} as {found.role} for {found.task}, epoch {found.epoch}, {found.valid_at.isoformat()}",
            f"coverage {found.coverage:.3g}, critical {found.critical:.3g}"
            + (f", uncovered: {', '.join(found.uncovered)}" if found.uncovered else ""),
            *(f"  + {id}" for id in found.admitted),
            *(f"  - {id}: {', '.join(reasons)}" for id, reasons in found.rejected.items()),
            *(f"  ! {id}: {', '.join(reasons)}" for id, reasons in found.selection.items()),
        ],
    )


@app.command(rich_help_panel=AUDIT)
def history(
    key: Annotated[str, typer.Argument(help="What the statements are about.")],
    workspace: Name = "",
    scope: Annotated[str | None, typer.Option(help="Only in this scope.")] = None,
    kind: Annotated[str | None, typer.Option(help="Only this kind.")] = None,
    as_json: Json = False,
) -> None:
    """List every version of a key, on both clocks.

    Example: tracegraph history hotel -w trip
    """
    found = on(workspace, lambda ws: ws.history(key, scope=scope, kind=kind))
    show(
        found,
        as_json,
        [
            f"epoch {one.epoch}: {one.id} [{one.kind} in {one.scope}] valid from {one.valid_from.isoformat()}"
            + (f" to {one.valid_to.isoformat()}" if one.valid_to else "")
            + (f", superseded by {', '.join(by.id for by in one.superseded_by)}" if one.superseded_by else "")
            + "".join(
                f", {'resolved' if end.code == 'resolved' else 'revoked'} from {end.effective_from.isoformat()}"
                for end in one.revocations
                if end.withdrawn_epoch is None
            )
            + (", retracted" if one.retraction else "")
            + (", erased" if one.erasure else "")
            for one in found
        ],
    )


@app.command(rich_help_panel=AUDIT)
def exposure(
    item: Annotated[str, typer.Argument(help="The item's id.")], workspace: Name = "", as_json: Json = False
) -> None:
    """List every view that admitted an item, who opened it, and what has ended the item since.

    Example: tracegraph exposure h1 -w trip
    """
    found = on(workspace, lambda ws: ws.exposure(item))
    lines = [
        f"{one.view}: {one.principal} as {one.role} for {one.task}, issued {one.issued_at.isoformat()}, "
        + (f"opened {len(one.opened)} times" if one.opened else "never opened")
        + (f"; no longer stands: {', '.join(one.ended)}" if one.ended else "; still stands")
        for one in found.views
    ]
    show(found, as_json, lines or [f"no view admitted {item}"])


@app.command(rich_help_panel=AUDIT)
def replay(
    cycle: Annotated[str, typer.Argument(help="The return cycle's id.")], workspace: Name = "", as_json: Json = False
) -> None:
    """Decide a recorded return again from the graph. Exit code 1 when it comes out otherwise.

    Example: tracegraph replay cycle-1 -w trip
    """
    found = on(workspace, lambda ws: ws.replay(cycle))
    show(
        found,
        as_json,
        [
            f"{found.decision}: the same again" if found.equal else f"{found.decision}: comes out otherwise",
            *(
                f"  {one.field}{f' of {one.item}' if one.item else ''}: was {one.recorded}, is {one.replayed}"
                for one in found.differences
            ),
            *(f"  erased since: {id}" for id in found.erased),
        ],
    )
    if not found.equal:
        raise typer.Exit(1)


@app.command(rich_help_panel=AUDIT)
def verify(workspace: Name = "", as_json: Json = False) -> None:
    """Walk the commit log and recompute every digest. Exit code 1 at the first break.

    Example: tracegraph verify -w trip
    """

    async def work(ws: Workspace) -> Verification:
        with progress("Verifying", None) as advance:
            seen = 0

            def tell(done: int, _: int) -> None:
                nonlocal seen
                advance(done - seen)
                seen = done

            return await ws.verify(progress=tell)

    found = on(workspace, work)
    line = f"intact: {found.records} records in {found.epoch} epochs, head {found.digest}"
    if found.broken is not None:
        what = f"epoch {found.broken.epoch}{f', {found.broken.record}' if found.broken.record else ''}"
        line = f"broken at {what}: {found.broken.what}"
    show(found, as_json, [line])
    if not found.intact:
        raise typer.Exit(1)


@app.command(rich_help_panel=AUDIT)
def sweep(
    workspace: Name = "",
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what it would cost, and make no call.")] = False,
    batch: Annotated[
        bool,
        typer.Option(
            "--batch",
            help="One step of a sweep by the Batch API, in one process at a time; run again later.",
        ),
    ] = False,
    budget: Annotated[int | None, typer.Option(min=0, help="Tokens at most; what is left waits.")] = None,
    as_json: Json = False,
) -> None:
    """Judge what is new since the last sweep against what stands, so that returns find their answers waiting.

    Needs TRACEGRAPH_MODEL, and OPENAI_BASE_URL or OPENAI_API_KEY.

    Example: tracegraph sweep -w trip --dry-run
    """
    if budget is not None and (batch or dry_run):
        usage("--budget limits a sweep that calls the model now: leave it out with --batch and --dry-run.")
    if dry_run:
        plan = on(workspace, lambda ws: ws.sweep_plan())
        show(
            asdict(plan),
            as_json,
            [
                f"{plan.items} items, {plan.pairs} pairs so far: {plan.scan_calls} scan calls and "
                f"{plan.verify_calls} verify calls, about {plan.tokens} tokens"
            ],
        )
        return
    if batch:
        step = on(workspace, lambda ws: ws.sweep_batch())
        found = {**asdict(step), "collected": plain(step.collected)}
        jobs = ", ".join(f"{id} {state}" for id, state in step.jobs.items()) or "none"
        show(
            found,
            as_json,
            [
                f"{step.sent} questions sent, jobs out: {jobs}; {step.collected.judged} pairs judged",
                "done" if step.done else "run it again later",
            ],
        )
        return

    async def work(ws: Workspace) -> Pairs:
        with progress("Sweeping", None) as advance:
            seen = 0

            def tell(_stage: object, done: int, _total: int, _usage: object) -> None:
                nonlocal seen
                advance(max(0, done - seen))
                seen = done

            return await ws.sweep(budget=budget, progress=tell)

    done = on(workspace, work)
    show(
        done,
        as_json,
        [
            f"{done.judged} pairs judged ({done.invalidated} invalidated, {done.cleared} cleared, {done.unverified} "
            f"unverified, {done.restored} restored), {done.reused} known before, {done.unjudged} left",
            f"{done.calls} calls, {done.retries} retries, {done.tokens_in} tokens in, {done.tokens_out} out, "
            f"{done.seconds:.1f} s",
        ],
    )


@app.command(rich_help_panel=AUDIT)
def check(
    files: Annotated[list[Path], typer.Argument(help="Scenario files, or folders of *.trace.yaml.")],
    as_json: Json = False,
) -> None:
    """Run scenario files, each on a fresh workspace: one line per expectation.

    Exit code 1 when an expectation fails, 2 when a file is malformed.

    Example: tracegraph check tests/scenarios/travel.trace.yaml
    """
    import anyio

    import tracegraph
    from tracegraph.scenarios import MalformedScenario, Report, load
    from tracegraph.scenarios import check as check_one

    paths = [
        found for path in files for found in (sorted(path.rglob("*.trace.yaml")) if os.path.isdir(path) else [path])
    ]
    scenarios, malformed = [], []
    for path in paths:
        try:
            scenarios.append(load(path))
        except MalformedScenario as error:
            malformed.append(str(error))
    reports: dict[int, Report] = {}

    async def work() -> None:
        turn = anyio.CapacityLimiter(4)
        async with tracegraph.connect() as graph:
            with progress("Checking", len(scenarios)) as advance:

                async def one(number: int) -> None:
                    async with turn:
                        reports[number] = await check_one(graph, scenarios[number])
                        advance(1)

                async with anyio.create_task_group() as group:
                    for number in range(len(scenarios)):
                        group.start_soon(one, number)

    if scenarios:
        run(work)
    done = [reports[number] for number in range(len(scenarios))]
    show(
        {"scenarios": [asdict(report) | {"passed": report.passed} for report in done], "malformed": malformed},
        as_json,
        [
            f"{'ok  ' if one.passed else 'FAIL'} {report.path}:{one.line}: {one}"
            for report in done
            for one in report.expectations
        ],
    )
    for fault in malformed:
        typer.echo(harmless(fault), err=True)
    failed = sum(not report.passed for report in done)
    if not as_json:
        typer.echo(f"files: {len(done) - failed} passed, {failed} failed, {len(malformed)} malformed", err=True)
    if malformed or failed:
        raise typer.Exit(2 if malformed else 1)


@eval_app.command("statebench")
def eval_statebench(
    files: Annotated[list[Path], typer.Argument(help="StateBench 1.0 timelines, JSONL.")],
    policies: Annotated[
        list[str] | None,
        typer.Option("--policy", help="trace, static, latest or reset; may be repeated. By default all four."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, help="Play only the first so many timelines.")] = None,
    as_json: Json = False,
) -> None:
    """Play StateBench timelines as work state, without a model, and compare what each policy admits.

    trace is what tracegraph admits, static all that was ever written, latest the newest per key, reset
    nothing. Exit code 2 when a file is malformed.

    Example: tracegraph eval statebench train.jsonl dev.jsonl --policy trace --policy latest --limit 100
    """
    import tracegraph
    from tracegraph.evals import statebench

    chosen = [name for name in statebench.POLICIES if policies is None or name in policies]
    unknown = set(policies or ()) - set(chosen)
    if unknown:
        usage(f"--policy {', '.join(sorted(unknown))}: choose among {', '.join(statebench.POLICIES)}.")
    try:
        timelines = statebench.load(files, limit)
    except statebench.MalformedTimelineError as error:
        usage(str(error))
    except (OSError, UnicodeDecodeError) as error:
        usage(f"A file cannot be read ({type(error).__name__}): {getattr(error, 'filename', None) or error}.")

    async def work() -> dict[str, statebench.Score]:
        if "trace" not in chosen:
            return await statebench.evaluate(None, timelines, chosen)
        async with tracegraph.connect() as graph:
            with progress("Playing", len(timelines)) as advance:
                return await statebench.evaluate(graph, timelines, chosen, advance)

    scores = run(work)
    show(statebench.as_json(scores), as_json, statebench.as_lines(scores))
