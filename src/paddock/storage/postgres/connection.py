"""How a connection to the database is opened, and what its errors mean to us. No queries live here.

Every wait has an end: connecting, each statement, each lock. A connection that does not answer in time is thrown away.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol, cast

import asyncpg

from paddock.rules.agents.addresses import each_machine, place_of, without_secrets
from paddock.rules.errors import FilesUnavailableError, StorageUnavailableError
from paddock_sdk.causes import cause_of

CONNECT_SECONDS = 3.0
STATEMENT_SECONDS = 10.0
"""How long the server works on one statement before it gives up."""
ANSWER_SECONDS = 12.0
"""How long we wait for an answer: longer than the server, so that it is the one to say why."""
TURN_SECONDS = 0.5
"""After so long without a word from one machine the next of an address is asked."""
ASK_SECONDS = 3.0
"""How long a server may take to say what it is at, with connecting to it."""
LOCK_SECONDS = 2.0
"""How long to wait for somebody else's transaction that holds a row of ours."""


class Connection(Protocol):
    """Subset of asyncpg's connection that is used here."""

    async def fetch(self, query: str, *values: Any) -> Sequence[Any]: ...
    async def fetchrow(self, query: str, *values: Any) -> Any: ...
    async def fetchval(self, query: str, *values: Any) -> Any: ...
    async def execute(self, query: str, *values: Any, timeout: float | None = ...) -> str: ...  # noqa: ASYNC109
    def transaction(self) -> AbstractAsyncContextManager[None]: ...
    async def set_type_codec(
        self,
        typename: str,
        *,
        schema: str,
        encoder: Callable[[str], bytes],
        decoder: Callable[[bytes], str],
        format: str,  # noqa: A002 - the library's name
    ) -> None: ...
    def add_termination_listener(self, callback: Callable[[Any], None]) -> None: ...
    def get_server_pid(self) -> int: ...
    def is_closed(self) -> bool: ...
    def terminate(self) -> None: ...


class Pool(Protocol):
    """Subset of asyncpg's pool that is used here."""

    def acquire(self, *, timeout: float) -> AbstractAsyncContextManager[Connection]: ...
    def terminate(self) -> None: ...


GUILTY = (
    asyncpg.IntegrityConstraintViolationError,
    asyncpg.CardinalityViolationError,
    asyncpg.DataError,
    asyncpg.ProgramLimitExceededError,
    asyncpg.LockNotAvailableError,
)
"""Errors that one work brings on itself; anything else is the database's and fails the whole group."""
AGAIN = (asyncpg.DeadlockDetectedError, asyncpg.SerializationError)
"""Errors of two hosts in each other's way: the same statement may well succeed a moment later."""
AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)
"""Everything that a statement can fail with."""
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,  # asked just when the server's last words came in
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.CannotConnectNowError,
    OSError,
)
"""Errors that say nothing about the statement, only that this connection is over."""

_asyncpg = cast("Any", asyncpg)  # it has no types of its own
_answered_last: dict[str, int] = {}
"""Which machine of an address answered last, of those that name several."""
LIMITS = {"timeout": CONNECT_SECONDS, "command_timeout": ANSWER_SECONDS}
_SETTLE = """
select set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
       set_config('idle_in_transaction_session_timeout', $1, false),
       set_config('tcp_keepalives_idle', '5', false), set_config('tcp_keepalives_interval', '2', false),
       set_config('tcp_keepalives_count', '3', false),
       set_config('jit', 'off', false), set_config('enable_seqscan', 'off', false),
       set_config('plan_cache_mode', 'force_generic_plan', false),
       set_config('search_path', current_setting('search_path'), false), pg_backend_pid()"""
# Every statement of ours finds its rows by an index. Planned once and for all, while tables are still empty, it must
# not settle for reading them whole; and planning the writer's statement costs more than running it.
_PATIENT = """
select set_config('statement_timeout', $1, false), set_config('idle_in_transaction_session_timeout', $1, false)"""
_WRITES_LAST = """
select set_config('synchronous_commit', 'on', false) where current_setting('synchronous_commit') = 'off'"""
_WRITES_MAY_BE_LOST = "select set_config('synchronous_commit', 'off', false)"
_AT_WORK = """
select pid from pg_stat_activity where pid = any($1::int[])
   and (state is null or state not like 'idle%' or clock_timestamp() - state_change < make_interval(secs => $2))"""
_READ_ONLY = "select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean"


async def connect(address: str, *, patience: float | None = None) -> Connection:
    """A connection that reads and writes durably. Raises StorageUnavailableError with a sentence.

    `patience`: how many seconds a statement may take of somebody who moves all there is, and of nobody else.
    """
    limits = LIMITS if patience is None else {**LIMITS, "command_timeout": patience}
    try:
        connection = cast("Connection", await _dial(address, **limits))
    except (*AWAY, ValueError) as error:
        raise unavailable(error, address) from error
    try:
        await _settle(connection)
        if patience is not None:
            await connection.fetch(_PATIENT, f"{patience:.0f}s")
        await connection.execute(_WRITES_LAST)
        if await connection.fetchval(_READ_ONLY):
            raise StorageUnavailableError(f"the database at {place_of(address)} takes no writes (it is a standby)")
    except AWAY as error:
        connection.terminate()
        raise unavailable(error, address) from error
    except StorageUnavailableError:
        connection.terminate()
        raise
    return connection


@asynccontextmanager
async def connected(address: str, *, patience: float | None = None) -> AsyncGenerator[Connection]:
    """A connection of its own for as long as the block; what the database refuses is a StorageUnavailableError."""
    connection = await connect(address, patience=patience)
    try:
        yield connection
    except AWAY as error:
        raise unavailable(error, address) from error
    finally:
        connection.terminate()


async def open_pool(address: str, *, most: int, idle_seconds: float) -> Pool:
    """A few connections that read. Raises StorageUnavailableError with a sentence."""
    sizes = {"min_size": 1, "max_size": most, "max_inactive_connection_lifetime": idle_seconds}
    try:
        opened = await _asyncpg.create_pool(
            address, **sizes, **LIMITS, connect=_dial, init=_settle_reader, reset=_nothing_to_reset
        )
    except (*AWAY, ValueError) as error:
        raise unavailable(error, address) from error
    return cast("Pool", opened)


async def _dial(address: str, **about: Any) -> Any:
    """Connect, to the one that takes writes where an address names several machines. One that says nothing keeps
    nobody waiting: a moment later the next is asked as well, beginning with whoever answered last."""
    machines = each_machine(address)
    if len(machines) == 1:
        return await _asyncpg.connect(address, **about)
    if "target_session_attrs=" not in address:
        about["target_session_attrs"] = "read-write"
    first = _answered_last.get(address, 0)
    to_ask = [*range(first, len(machines)), *range(first)]
    asked: dict[asyncio.Task[Any], int] = {}
    error: BaseException = StorageUnavailableError(f"{place_of(address)} names no machine")
    try:
        while to_ask or asked:
            if to_ask:
                number = to_ask.pop(0)
                asked[asyncio.ensure_future(_asyncpg.connect(machines[number], **about))] = number
            done, _ = await asyncio.wait(asked, timeout=TURN_SECONDS, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                number = asked.pop(task)
                if (why := task.exception()) is None:
                    _answered_last[address] = number
                    return task.result()
                error = why
    finally:
        for task in asked:
            task.add_done_callback(_hang_up)
            task.cancel()
    raise error


def _hang_up(task: "asyncio.Task[Any]") -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().terminate()


async def _nothing_to_reset(_: Connection) -> None:
    """We change nothing of a connection while we use it, so the usual question between two uses is saved."""


async def _settle(connection: Connection) -> None:
    await connection.set_type_codec("text", schema="pg_catalog", encoder=encode, decoder=decode, format="binary")
    [row] = await connection.fetch(_SETTLE, f"{STATEMENT_SECONDS:.0f}s", f"{LOCK_SECONDS:.0f}s")
    if (said := connection.get_server_pid()) != row[-1]:
        _behind_a_pooler[said] = row[-1]
        if len(_behind_a_pooler) > MAX_BACKENDS:
            del _behind_a_pooler[next(iter(_behind_a_pooler))]


MAX_BACKENDS = 1024
_behind_a_pooler: dict[int, int] = {}
"""A pooler names connections by numbers of its own; the server's process behind each, of the newest."""


def backend_of(connection: Connection) -> int:
    said = connection.get_server_pid()
    return _behind_a_pooler.get(said, said)


async def pids_at_work(address: str, pids: Sequence[int], *, idle_seconds: float) -> Collection[int]:
    """Ask a server, over a connection of its own, which of these processes are at work, or were a moment ago. Raises
    TimeoutError when it does not answer, or StorageUnavailableError."""
    try:
        async with asyncio.timeout(ASK_SECONDS):
            connection = cast("Connection", await _dial(address, timeout=ASK_SECONDS))
            try:
                return {row[0] for row in await connection.fetch(_AT_WORK, pids, idle_seconds)}
            finally:
                connection.terminate()
    except TimeoutError:
        raise
    except (*AWAY, ValueError) as error:
        raise unavailable(error, address) from error


def terminate(connection: Connection) -> None:
    """End a connection that may never answer. One that was seen to be lost is the pool's already, and ended there."""
    with suppress(asyncpg.InterfaceError):
        connection.terminate()


async def _settle_reader(connection: Connection) -> None:
    """A reader writes nothing but claims. One that a crash of the database forgets is still refused by the head."""
    await _settle(connection)
    await connection.execute(_WRITES_MAY_BE_LOST)


def is_over(connection: Connection, error: BaseException) -> bool:
    return connection.is_closed() or isinstance(error, LOST)


def unavailable(error: BaseException, address: str = "") -> StorageUnavailableError:
    """Say in one sentence what the database refused; never with a password in it."""
    at = f" at {place_of(address)}" if address else ""
    return StorageUnavailableError(
        f"the database{at} {_said(error)[0]}: {without_secrets(cause_of(error).splitlines()[0])}"
    )


def advice_on(error: BaseException) -> str:
    """Advice on an error whose sentence gives none: a whole sentence, or empty."""
    if isinstance(error, FilesUnavailableError):
        return ""
    reason = error.__cause__ if isinstance(error, StorageUnavailableError) else error
    return "" if reason is None else _said(reason)[1]


def _said(error: BaseException) -> tuple[str, str]:
    return next(((what, advice) for kinds, what, advice in _SAYS if isinstance(error, kinds)), ("refused", ""))


_START = "Start the database, or set store to another."
_SAYS: tuple[tuple[type[BaseException] | tuple[type[BaseException], ...], str, str], ...] = (
    (asyncpg.InvalidCatalogNameError, "does not exist", "Create it, with encoding 'UTF8', or set store to another."),
    (
        (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidPasswordError),
        "does not let us in",
        "Look at the user and the password in store, and at the server's pg_hba.conf.",
    ),
    (
        asyncpg.InsufficientPrivilegeError,
        "does not give us the rights we need",
        "Make the user the owner of the database.",
    ),
    (
        asyncpg.TooManyConnectionsError,
        "has no room for another connection",
        "Raise max_connections of the server: a host takes up to ten.",
    ),
    (asyncpg.UndefinedTableError, "refused", "No host has used it yet: start one, or set store to another."),
    (asyncpg.DiskFullError, "has no room on its disk", ""),
    (asyncpg.ReadOnlySQLTransactionError, "takes no writes", ""),
    (asyncpg.QueryCanceledError, "does not answer in time", ""),
    (TimeoutError, "does not answer in time", _START),
    (
        (asyncpg.CannotConnectNowError, asyncpg.AdminShutdownError, asyncpg.CrashShutdownError),
        "is stopping or starting",
        _START,
    ),
    (LOST, "cannot be reached", _START),
    (ValueError, "has an address that cannot be read", ""),
)
"""The first that fits counts."""


_NUL, _MARK = "\x00", "\x1a"


def escaped(text: str) -> str:
    if _NUL in text or _MARK in text:
        return text.replace(_MARK, _MARK + "1").replace(_NUL, _MARK + "0")
    return text


def unescaped(text: str) -> str:
    if _MARK in text:
        return text.replace(_MARK + "0", _NUL).replace(_MARK + "1", _MARK)
    return text


def escaped_column(column: Sequence[str | None]) -> Sequence[str | None]:
    """A whole column; looked through once, because hardly any holds such a character."""
    together = "".join(filter(None, column))
    if _NUL in together or _MARK in together:
        return [text and escaped(text) for text in column]
    return column


def encode(text: str) -> bytes:
    return escaped(text).encode()


def decode(stored: bytes) -> str:
    text = str(stored, "utf-8")
    return unescaped(text) if _MARK in text else text
