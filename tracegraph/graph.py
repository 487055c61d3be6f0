"""The connection: one driver, named Cypher files, managed transactions, the schema.

Every Cypher text is a file under `cypher/`, loaded by name. Faults of the server become `unavailable`.
"""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from functools import cache, partial
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

SCHEMA_VERSION = 3
SCHEMES = ("bolt", "bolt+s", "bolt+ssc", "neo4j", "neo4j+s", "neo4j+ssc")
OLDEST = (5, 26)
"""The oldest server that plans every query of `cypher/`."""
LEAST = ".".join(map(str, OLDEST))
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
        found = [dict(record) async for record in result]
        self._patience.answered()
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
        self._patience.answered()


class Patience:
    """How long a transaction waits for the server: each statement, and the commit, has `seconds` of its own.

    `tell` is called whenever the server answered a statement.
    """

    def __init__(self, seconds: float, tell: Callable[[], None] | None = None) -> None:
        self._seconds = seconds
        self._tell = tell
        self._scope = anyio.CancelScope()

    def renew(self) -> None:
        self._scope.deadline = anyio.current_time() + self._seconds

    def answered(self) -> None:
        self.renew()
        if self._tell is not None:
            self._tell()

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Raises TimeoutError when the server took too long.

        Also when its answer, arriving in the moment of the deadline, has renewed that: what was given up stays so.
        """
        with anyio.CancelScope(deadline=anyio.current_time() + self._seconds) as self._scope:
            yield
        if self._scope.cancelled_caught:
            raise TimeoutError


class _Rollback(Exception):
    """Leaves a transaction without committing it, carrying what was read."""

    def __init__(self, value: Any) -> None:
        self.value = value


REFUSED = {
    "DatabaseNotFound": ("Neo4j has no such database.", "Check NEO4J_DATABASE; create the database first."),
    "CredentialsExpired": (
        "The Neo4j user's password must be changed first.",
        "Change it: ALTER CURRENT USER SET PASSWORD.",
    ),
    "AuthenticationRateLimit": (
        "Neo4j refused the user name or password too often.",
        "Wait a few seconds, and check NEO4J_USERNAME and NEO4J_PASSWORD.",
    ),
    "ReadOnly": (
        "The database may only be read.",
        "Take it out of server.databases.read_only, or name another in NEO4J_DATABASE.",
    ),
    "Bookmark": ("The database is not the one of a moment ago.", "It was replaced meanwhile; try again."),
    "Security": ("Neo4j refused.", "Check the Neo4j user's rights."),
    "TransactionTimedOut": (
        "Neo4j ended the transaction.",
        "Raise the server's db.transaction.timeout, or write less at once.",
    ),
    "Memory": ("Neo4j has too little memory for this.", "Write less at once, or give the server more memory."),
    "DatabaseError": (
        "Neo4j failed.",
        "See Neo4j's log. If its disk is full, free some space and restart it: tracegraph down, tracegraph up.",
    ),
    "DatabaseUnavailable": (
        "Neo4j runs, but its database does not.",
        "See Neo4j's log. If its disk is full, free some space and restart it: tracegraph down, tracegraph up.",
    ),
}
"""What Neo4j's codes mean to a user, by a part of the code: the message, and what to do."""
SEND_AGAIN = (
    "See what is wrong: tracegraph doctor. Send a batch again with the same batch_id: nothing is written twice."
)
OURS = ("ClientError.Statement", "ConstraintValidationFailed")
"""Codes that no state of a server explains: they are faults of this program, and stay exceptions of the driver."""


class _InTheWay(Exception):
    """Another index or constraint has the name or the properties of one of the schema's, which the text names."""


@contextmanager
def server_faults(unanswered: str | None = None) -> Iterator[None]:
    """Turn the driver's errors into `unavailable`, without parameters or content.

    `unanswered` is the hint when the server took something and did not say what came of it.
    """
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
    except exceptions.Neo4jError as error:
        code = error.code or type(error).__name__
        if any(part in code for part in OURS):
            raise
        for part, (message, hint) in REFUSED.items():
            if part in code:
                raise Unavailable(f"{message} ({code})", hint=hint) from None
        raise Unavailable(f"Neo4j cannot be used now ({code}).") from None
    except exceptions.IncompleteCommit:
        raise Unavailable("The connection ended during a commit, which may be done or not.", hint=unanswered) from None
    except exceptions.ConfigurationError as error:
        raise Unavailable(
            f"This is no server for tracegraph ({type(error).__name__}).",
            hint=f"Check NEO4J_URI; Neo4j {LEAST} or newer is needed.",
        ) from None
    except exceptions.DriverError as error:
        raise Unavailable(f"Neo4j cannot be used now ({type(error).__name__}).") from None
    except (TimeoutError, OSError, EOFError) as error:
        raise Unavailable(f"Neo4j did not answer ({type(error).__name__}).", hint=unanswered) from None


def need_version(agent: str) -> None:
    """Refuse what is not Neo4j or is too old, by the name that the server gives itself."""
    found = re.match(r"Neo4j/v?(\d+)\.(\d+)", agent)
    if not agent.startswith("Neo4j/") or (found and tuple(map(int, found.groups())) < OLDEST):
        which = f"Neo4j {found[1]}.{found[2]}" if found else "not Neo4j"
        raise Unavailable(
            f"The server is {which}.",
            hint=f"Neo4j {LEAST} or newer is needed: check NEO4J_URI; without it, the embedded one is used.",
        )


class Graph:
    """A database that holds workspaces. Get one from `tracegraph.connect()`."""

    def __init__(
        self, driver: AsyncDriver, database: str | None, *, routed: bool = False, patience: float = ANSWER_SECONDS
    ) -> None:
        from neo4j import AsyncGraphDatabase

        self._driver = driver
        self._database = database
        self._routed = routed
        self.patience = patience
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
        """Run `work` in a read transaction, again if the server asks for it or the connection ends."""
        with server_faults():
            return await self._run("READ", work, Patience(patience or self.patience), again=True)

    async def write(
        self, work: Callable[[Tx], Awaitable[T]], *, again: bool = False, tell: Callable[[], None] | None = None
    ) -> T:
        """Run `work` in a write transaction and commit it, again if the server asks for it.

        `again`: also when the connection ended during the commit; then `work` must know what it wrote before. `tell`
        is called whenever the server answered.
        """
        with server_faults(SEND_AGAIN):
            return await self._run("WRITE", work, Patience(self.patience, tell), again=again)

    async def _run(
        self, access: Literal["READ", "WRITE"], work: Callable[[Tx], Awaitable[T]], patience: Patience, *, again: bool
    ) -> T:
        from neo4j.exceptions import IncompleteCommit

        async def attempt(inner: AsyncManagedTransaction) -> T:
            return await work(Tx(inner, patience))

        with patience.waiting():
            async with self._session(access) as session:
                run = session.execute_read if access == "READ" else session.execute_write
                try:
                    return await run(attempt)
                except IncompleteCommit:  # the one fault that the driver leaves to us
                    if not again:
                        raise
                return await run(attempt)

    async def under_lock(self, work: Callable[[Tx], Awaitable[T]]) -> T:
        """Run `work`, which takes a lock, in a transaction that changes nothing.

        It is rolled back. On a cluster it is committed: that leaves a bookmark, by which the reads that follow see
        what it saw on any server.
        """
        if self._routed:
            return await self.write(work, again=True)

        async def attempt(tx: Tx) -> T:
            raise _Rollback(await work(tx))

        try:
            return await self.write(attempt)
        except _Rollback as done:
            return cast(T, done.value)

    async def answers(self) -> str:
        """Connect once, without retries, and give the server's name and version; `unavailable` when that fails."""
        with server_faults(), anyio.fail_after(self.patience):
            try:
                return (await self._driver.get_server_info()).agent
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
        need_version(await self.answers())
        found = await self.schema()
        if found > SCHEMA_VERSION:
            raise Unavailable(
                f"The database has schema {found}; this tracegraph knows {SCHEMA_VERSION}.",
                hint="Upgrade tracegraph.",
            )
        if found == SCHEMA_VERSION:
            return
        names = sorted(path.stem for path in (cypher_folder() / "schema").glob("*.cypher") if path.stem[:3].isdigit())

        async def settle(tx: Tx) -> None:
            await tx.run("schema/await")

        async def mark(tx: Tx) -> None:
            await tx.run("schema/names")
            await tx.run("schema/mark", version=SCHEMA_VERSION)

        await self._apply(names)
        await self.read(settle, patience=INDEX_SECONDS)
        await self.write(mark, again=True)

    async def _apply(self, names: Sequence[str]) -> None:
        """Make what is not there, in one transaction."""
        from neo4j.exceptions import ClientError

        async def apply(tx: Tx) -> None:
            for name in names:
                try:
                    await tx.run(f"schema/{name}")
                except ClientError as error:
                    if "AlreadyExists" in (error.code or ""):
                        raise _InTheWay(name) from None
                    raise

        for _ in range(3):
            try:
                return await self.write(apply, again=True)
            except _InTheWay as found:
                name = found
                await self._clear(names)
        raise Unavailable(
            f"An index or a constraint that is not tracegraph's stands in the way of cypher/schema/{name}.cypher.",
            hint="Drop it, or use a database of its own.",
        )

    async def _clear(self, names: Sequence[str]) -> None:
        """Drop what a server that was killed within a set-up left of its constraints; what another makes now stays."""
        found = [re.search(r"CONSTRAINT (tracegraph_\w+)", cypher(f"schema/{name}")) for name in names]
        constraints = [one[1] for one in found if one]

        async def drop(tx: Tx, index: str) -> None:
            await tx.run("schema/drop", index=index)

        for row in await self.read(lambda tx: tx.rows("schema/leftover", names=constraints)):
            with suppress(Unavailable):  # it belongs to a constraint by now
                await self.write(partial(drop, index=row["name"]))

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

        Raises `unknown_item` when it does not exist and no owner is given, `conflict` when it belongs to another owner
        or was created with another policy. `policy` names what the first revision changes from the defaults; later
        ones are `set_policy`'s. `invalidation` is the pipeline that verifies returns: by default the one that
        TRACEGRAPH_MODEL names, if any; None is none.
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
    retry = min(RETRY_SECONDS, patience / 2)  # so that the driver says what is wrong before patience ends
    try:
        for text in (uri, username, password or "", database or ""):
            text.encode()
        if "@" in uri:
            raise ValueError("a user or a password in the address")
        if uri.partition("://")[0] not in SCHEMES:
            raise ValueError("a scheme that is not Bolt's")
        if (database or "").lower() == "system":
            raise Unavailable("The database `system` holds nobody's data.", hint="Check NEO4J_DATABASE.")
        driver = AsyncGraphDatabase.driver(
            uri,
            auth=(username, password) if password else None,
            notifications_min_severity="OFF",
            telemetry_disabled=True,
            connection_timeout=5.0,
            connection_acquisition_timeout=retry,
            max_transaction_retry_time=retry,
            user_agent="tracegraph",
        )
    except (exceptions.ConfigurationError, ValueError, TypeError, AttributeError):
        raise Unavailable(  # without the driver's words: they repeat the address, and a password put into it
            "The server's address, user, password or database cannot be used as given.",
            hint=f"NEO4J_URI is for example bolt://127.0.0.1:7687. It begins with {', '.join(SCHEMES)}; user and "
            "password are given apart from it.",
        ) from None
    graph = Graph(driver, database, routed=uri.startswith("neo4j"), patience=patience)
    try:
        yield graph
    finally:
        await graph.close()


__all__ = ["Graph", "TracegraphError", "Tx", "connect", "cypher", "reach", "server_faults"]
