"""The same names without `await`: one background event loop runs the async core (an anyio portal).

with tracegraph.sync.connect() as graph:
    ws = graph.workspace("trip", owner="lead")
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from tracegraph import graph as core
from tracegraph import workspace as core_workspace

if TYPE_CHECKING:
    from anyio.from_thread import BlockingPortal

    from tracegraph.invalidation.pipeline import Invalidation

P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A")


def _blocking(
    method: Callable[Concatenate[A, P], Coroutine[Any, Any, R]],
) -> Callable[Concatenate[Any, P], R]:
    """The method of the wrapped async object, run to its end on the portal's loop."""

    @wraps(method)
    def call(self: Any, /, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._portal.call(lambda: method(self._inner, *args, **kwargs))  # type: ignore[no-any-return]

    return call


class Workspace:
    """`tracegraph.Workspace`, blocking."""

    def __init__(self, portal: BlockingPortal, inner: core_workspace.Workspace) -> None:
        self._portal = portal
        self._inner = inner
        self.id = inner.id

    record = _blocking(core_workspace.Workspace.record)
    open_obligation = _blocking(core_workspace.Workspace.open_obligation)
    advance = _blocking(core_workspace.Workspace.advance)
    resolve = _blocking(core_workspace.Workspace.resolve)
    revoke = _blocking(core_workspace.Workspace.revoke)
    retract = _blocking(core_workspace.Workspace.retract)
    withdraw = _blocking(core_workspace.Workspace.withdraw)
    verdict = _blocking(core_workspace.Workspace.verdict)
    grant = _blocking(core_workspace.Workspace.grant)
    deny = _blocking(core_workspace.Workspace.deny)
    set_policy = _blocking(core_workspace.Workspace.set_policy)
    policy = _blocking(core_workspace.Workspace.policy)
    erase = _blocking(core_workspace.Workspace.erase)
    depart = _blocking(core_workspace.Workspace.depart)
    admit = _blocking(core_workspace.Workspace.admit)
    join = _blocking(core_workspace.Workspace.join)
    open_view = _blocking(core_workspace.Workspace.open_view)
    read = _blocking(core_workspace.Workspace.read)
    remember = _blocking(core_workspace.Workspace.remember)
    recall = _blocking(core_workspace.Workspace.recall)
    sweep = _blocking(core_workspace.Workspace.sweep)
    sweep_plan = _blocking(core_workspace.Workspace.sweep_plan)
    sweep_batch = _blocking(core_workspace.Workspace.sweep_batch)
    returns = _blocking(core_workspace.Workspace.returns)
    cycle = _blocking(core_workspace.Workspace.cycle)
    why = _blocking(core_workspace.Workspace.why)
    history = _blocking(core_workspace.Workspace.history)
    exposure = _blocking(core_workspace.Workspace.exposure)
    replay = _blocking(core_workspace.Workspace.replay)
    verify = _blocking(core_workspace.Workspace.verify)
    export = _blocking(core_workspace.Workspace.export)


class Graph:
    """`tracegraph.Graph`, blocking."""

    def __init__(self, portal: BlockingPortal, inner: core.Graph) -> None:
        self._portal = portal
        self._inner = inner

    def workspace(
        self,
        id: str,
        *,
        owner: str | None = None,
        clock: core_workspace.Clock | None = None,
        policy: dict[str, Any] | None = None,
        invalidation: Invalidation | Literal["environment"] | None = "environment",
    ) -> Workspace:
        """Open a workspace; with `owner`, create it when it does not exist. See `tracegraph.Graph.workspace`."""

        async def call() -> core_workspace.Workspace:
            return await self._inner.workspace(id, owner=owner, clock=clock, policy=policy, invalidation=invalidation)

        return Workspace(self._portal, self._portal.call(call))

    import_ = _blocking(core.Graph.import_)


@contextmanager
def connect(
    uri: str | None = None,
    *,
    username: str | None = None,
    password: str | None = None,
    database: str | None = None,
    patience: float = core.ANSWER_SECONDS,
) -> Iterator[Graph]:
    """A connected graph. See `tracegraph.connect`."""
    from anyio.from_thread import start_blocking_portal

    with (
        start_blocking_portal() as portal,
        portal.wrap_async_context_manager(
            core.connect(uri, username=username, password=password, database=database, patience=patience)
        ) as inner,
    ):
        yield Graph(portal, inner)
