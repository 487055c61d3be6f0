"""The connection: one driver, named Cypher files, managed transactions, the schema.

Every Cypher text is a file under `cypher/`, loaded by name. Faults of the server become `unavailable`.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

import anyio

from tracegraph.errors import TracegraphError, Unavailable

if TYPE_CHECKING:
    from neo4j import AsyncDriver, AsyncManagedTransaction, AsyncSession

    from tracegraph.importing import Imported
    from tracegraph.invalidation.pipeline import Invalidation
    from tracegraph.workspace import Clock, Workspace
    from tracegraph.write import Line

T = TypeVar("T")

SCHEMA_VERSION = 2
RETRY_SECONDS = 20.0
"""How long a transient fault of the server is retried before it is reported."""
ANSWER_SECONDS = 60.0
"""How long the server may take over one statement or one commit before it is given up as `unavailable`."""
INDEX_SECONDS = 330.0
"""The same for the indexes of a new schema, which may have a large store to read."""


def cypher_folder() -> Path:
    """The folder of Cypher files: inside the wheel, or beside the package in a checkout."""
    shipped = Path(__file__).parent / "cypher"
    return shipped if shipped.is_dir() else Path(__file__).parent.parent / "cypher"


@cache
def cypher(name: str) -> str:
    """The text of `cypher/{name}.cypher`, with the one option every query is run with.

    A plan, once made, is kept: Neo4j otherwise plans every query anew, seconds for the large ones, each time a young
    store has grown by three quarters. Every query names its indexed properties, so its first plan is the right one.
    """
    return "CYPHER replan=skip\n" + (cypher_folder() / f"{name}.cypher").read_text(encoding="utf-8")


class Tx:
    """One transaction: runs named queries, and returns rows as dicts."""

    def __init__(self, inner: AsyncManagedTransaction, patience: Patience) -> None:
        self._inner = inner
        self._patience = patience

    async def rows(self, name: str, **parameters: Any) -> list[dict[str, Any]]:
        self._patience.renew()
        result = await self._inner.run(cypher(name), parameters)
        found = await result.data()
        self._patience.renew()
        return found

    async def row(self, name: str, **parameters: Any) -> dict[str, Any] | None:
        """The one row of a query that returns at most one."""
        found = await self.rows(name, **parameters)
        return found[0] if found else None

    async def run(self, name: str, **parameters: Any) -> None:
        """Run for the effect alone."""
        self._patience.renew()
        result = await self._inner.run(cypher(name), parameters)
        await result.consume()
        self._patience.renew()


class Patience:
    """How long a transaction waits for the server: each statement, and the commit, has `seconds` of its own."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._scope = anyio.CancelScope()

    def renew(self) -> None:
        self._scope.deadline = anyio.current_time() + self._seconds

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Raises TimeoutError when the server took too long."""
        with anyio.fail_after(self._seconds) as self._scope:
            yield


class _Rollback(Exception):
    """Leaves a transaction without committing it, carrying what was read."""

    def __init__(self, value: Any) -> None:
        self.value = value


@contextmanager
def server_faults() -> Iterator[None]:
    """Turn the driver's errors into `unavailable`, without parameters or content."""
    from neo4j import exceptions

    try:
        yield
    except exceptions.AuthError:
        raise Unavailable(
            "Neo4j refused the user name or password.", hint="Check NEO4J_USERNAME and NEO4J_PASSWORD."
        ) from None
    except exceptions.Forbidden:
        raise Unavailable(
            "The Neo4j user may not do this.", hint="Use a user that may read, write and create indexes."
        ) from None
    except exceptions.ClientError as error:
        if error.code and "DatabaseNotFound" in error.code:
            raise Unavailable(
                "Neo4j has no such database.", hint="Check NEO4J_DATABASE; create the database first."
            ) from None
        if error.code and "Security" in error.code:
            raise Unavailable(f"Neo4j refused: {error.code}.", hint="Check the Neo4j user's rights.") from None
        raise
    except (
        exceptions.ServiceUnavailable,
        exceptions.SessionExpired,
        exceptions.TransientError,
        exceptions.DatabaseError,
        exceptions.ConfigurationError,
        exceptions.ConnectionAcquisitionTimeoutError,
    ) as error:
        name = getattr(error, "code", None) or type(error).__name__
        raise Unavailable(f"Neo4j cannot be used now ({name}).") from None
    except (TimeoutError, OSError) as error:
        raise Unavailable(f"Neo4j did not answer ({type(error).__name__}).") from None


class Graph:
    """A database that holds workspaces. Get one from `tracegraph.connect()`."""

    def __init__(self, driver: AsyncDriver, database: str | None, *, patience: float = ANSWER_SECONDS) -> None:
        from neo4j import AsyncGraphDatabase

        self._driver = driver
        self._database = database
        self._patience = patience
        self._invalidation: Invalidation | None = None
        self._lines: dict[str, Line] = {}
        self._bookmarks = AsyncGraphDatabase.bookmark_manager()

    def line(self, workspace: str) -> Line:
        """Where this connection's batches for a workspace wait for their turn."""
        from tracegraph.write import Line

        return self._lines.setdefault(workspace, Line())

    def _session(self, access: str) -> AsyncSession:
        return self._driver.session(
            database=self._database, bookmark_manager=self._bookmarks, default_access_mode=access
        )

    async def read(self, work: Callable[[Tx], Awaitable[T]], *, patience: float | None = None) -> T:
        """Run `work` in a read transaction, again if the server asks for it."""
        waits = Patience(patience or self._patience)
        with server_faults(), waits.waiting():
            async with self._session("READ") as session:

                async def attempt(inner: AsyncManagedTransaction) -> T:
                    return await work(Tx(inner, waits))

                return await session.execute_read(attempt)

    async def write(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work` in a write transaction and commit it, again if the server asks for it."""
        waits = Patience(self._patience)
        with server_faults(), waits.waiting():
            async with self._session("WRITE") as session:

                async def attempt(inner: AsyncManagedTransaction) -> T:
                    return await work(Tx(inner, waits))

                return await session.execute_write(attempt)

    async def under_lock(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work`, which takes a lock, in a transaction that is rolled back: nothing is written."""

        async def attempt(tx: Tx) -> T:
            raise _Rollback(await work(tx))

        try:
            return await self.write(attempt)
        except _Rollback as done:
            return cast(T, done.value)

    async def answers(self) -> None:
        """Connect once, without retries; `unavailable` when that fails."""
        with server_faults(), anyio.fail_after(self._patience):
            try:
                await self._driver.verify_connectivity()
            except ValueError:  # of the name resolution; it repeats the address
                raise Unavailable("The server's address has no meaning.", hint="Check NEO4J_URI.") from None

    async def schema(self) -> int:
        """The version of the schema that is in place; 0 when there is none."""

        async def version(tx: Tx) -> int:
            row = await tx.row("schema/version")
            return int(row["version"] or 0) if row else 0

        return await self.read(version)

    async def ready(self) -> None:
        """Connect, and bring the schema to this version; safe by several processes at once."""
        await self.answers()
        found = await self.schema()
        if found > SCHEMA_VERSION:
            raise Unavailable(
                f"The database has schema {found}; this tracegraph knows {SCHEMA_VERSION}.",
                hint="Upgrade tracegraph.",
            )
        if found == SCHEMA_VERSION:
            return
        names = sorted(path.stem for path in (cypher_folder() / "schema").glob("*.cypher") if path.stem[:3].isdigit())

        async def apply(tx: Tx) -> None:
            for name in names:
                await tx.run(f"schema/{name}")

        async def settle(tx: Tx) -> None:
            await tx.run("schema/await")

        async def mark(tx: Tx) -> None:
            await tx.run("schema/mark", version=SCHEMA_VERSION)

        await self.write(apply)
        await self.read(settle, patience=INDEX_SECONDS)
        await self.write(mark)

    async def workspace(
        self,
        id: str,
        *,
        owner: str | None = None,
        clock: Clock | None = None,
        policy: dict[str, Any] | None = None,
        invalidation: Invalidation | Literal["environment"] | None = "environment",
    ) -> Workspace:
        """Open a workspace; with `owner`, create it when it does not exist.

        Raises `unknown_item` when it does not exist and no owner is given, `conflict` when it belongs to
        another owner. `policy` names what the first revision changes from the defaults. `invalidation` is the
        pipeline that verifies returns: by default the one that TRACEGRAPH_MODEL names, if any; None is none.
        """
        from tracegraph.workspace import open_workspace

        if invalidation == "environment":
            invalidation = self._verifier()
        return await open_workspace(self, id, owner=owner, clock=clock, policy=policy, invalidation=invalidation)

    async def import_(self, file: Path, *, progress: Callable[[int, int], None] | None = None) -> Imported:
        """Rebuild the workspace of a file that `Workspace.export` wrote; again after an interruption, it goes on.

        `progress` is told how many bytes of how many are done. Raises `invalid_record` for a changed file and
        `conflict` over another history of that workspace; then nothing was written.
        """
        from tracegraph.importing import import_from

        return await import_from(self, file, progress=progress)

    def _verifier(self) -> Invalidation | None:
        """The environment's, made once for this connection."""
        if self._invalidation is None and os.environ.get("TRACEGRAPH_MODEL"):
            from tracegraph.invalidation.pipeline import Invalidation

            self._invalidation = Invalidation.from_environment()
        return self._invalidation

    async def close(self) -> None:
        if self._invalidation is not None:
            await self._invalidation.close()
        await self._driver.close()


@asynccontextmanager
async def connect(
    uri: str | None = None,
    *,
    username: str | None = None,
    password: str | None = None,
    database: str | None = None,
    patience: float = ANSWER_SECONDS,
) -> AsyncIterator[Graph]:
    """A connected graph with its schema in place.

    Arguments default to NEO4J_URI, NEO4J_USERNAME, NEO4J_PASSWORD and NEO4J_DATABASE; with no URI at all,
    the embedded Neo4j is started, or found running, and left running. A statement or a commit that takes longer
    than `patience` seconds is given up. Raises `unavailable`.
    """
    uri = uri or os.environ.get("NEO4J_URI")
    if uri is None:
        import anyio.to_thread

        from tracegraph import embedded

        server = await anyio.to_thread.run_sync(embedded.start)
        uri, username, password = server.bolt_uri, server.username, server.password
    async with reach(uri, username=username, password=password, database=database, patience=patience) as graph:
        await graph.ready()
        yield graph


@asynccontextmanager
async def reach(
    uri: str,
    *,
    username: str | None = None,
    password: str | None = None,
    database: str | None = None,
    patience: float = ANSWER_SECONDS,
) -> AsyncIterator[Graph]:
    """A graph on this server as it is: nothing is started, no schema made; the first query connects."""
    from neo4j import AsyncGraphDatabase, exceptions

    username = username or os.environ.get("NEO4J_USERNAME") or "neo4j"
    password = password or os.environ.get("NEO4J_PASSWORD")
    database = database or os.environ.get("NEO4J_DATABASE")
    try:
        for text in (uri, username, password or "", database or ""):
            text.encode()
        if "@" in uri:
            raise ValueError("a user or a password in the address")
        driver = AsyncGraphDatabase.driver(
            uri,
            auth=(username, password) if password else None,
            notifications_min_severity="OFF",
            telemetry_disabled=True,
            connection_timeout=5.0,
            connection_acquisition_timeout=RETRY_SECONDS,
            max_transaction_retry_time=RETRY_SECONDS,
            user_agent="tracegraph",
        )
    except (exceptions.ConfigurationError, ValueError, TypeError, AttributeError):
        raise Unavailable(  # without the driver's words: they repeat the address, and a password put into it
            "The server's address, user, password or database cannot be used as given.",
            hint="NEO4J_URI is for example bolt://127.0.0.1:7687; user and password are given apart from it.",
        ) from None
    graph = Graph(driver, database, patience=patience)
    try:
        yield graph
    finally:
        await graph.close()


__all__ = ["Graph", "TracegraphError", "Tx", "connect", "cypher", "reach", "server_faults"]
