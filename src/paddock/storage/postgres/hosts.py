"""The register of hosts that serve a database, and what they ask of each other.

Beats have a connection of their own, so that a busy host is never taken for a dead one. All times are the database's.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from typing import Any
from uuid import uuid4

from paddock.ports.hosts import ASKED_SECONDS, Beat, LeftBehind, PendingRequest, steady_seconds
from paddock.rules.cluster import LEASE_SECONDS, RESTARTED, KnownHost, store_offset
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres.connection import AWAY, STATEMENT_SECONDS, Connection, connect, is_over, unavailable
from paddock.storage.postgres.engine import rows_of
from paddock.storage.postgres.silence import Silence
from paddock.storage.tables.statements import Ask, Engine, Query, Work, ask, several

# ruff: noqa: S608 - the numbers are our own, values are always bound
_log = logging.getLogger(__name__)

KEEP = "1 hour"
"""How long hosts that are gone and errands are remembered."""
UNDER_WAY_SECONDS = 3 * STATEMENT_SECONDS
"""For so long something that a host began to write while it was there may still be written."""
_REGISTER = """
with mine as materialized (select nextval('epochs') as boot),
     earlier as (
       update hosts set gone = :restarted::text, beat_at = clock_timestamp() where host_id = :host_id and gone is null)
insert into hosts (boot, host_id, url, started_at, beat_at)
select boot, :host_id, :url, clock_timestamp(), clock_timestamp() from mine returning boot"""
# A host that has not ended is said to have been started again: another one has its name.
_NAMESAKE = "select 1 from hosts where boot = :boot and gone = :gone"
_COPIED = (
    "another host has the name of this one, as when a data directory is copied: this one takes another until it is "
    "started again; remove the file host-id from one of the two directories"
)
_BEAT = "update hosts set beat_at = clock_timestamp() where boot = :boot and gone is null returning boot"
_TIME = "select extract(epoch from clock_timestamp())::float"
_PEERS = """
select boot, host_id, url, extract(epoch from clock_timestamp() - beat_at)::float, gone, settled
  from hosts where gone is null or not settled order by boot"""
_STORE = """
select extract(epoch from clock_timestamp())::float,
       extract(epoch from clock_timestamp() - pg_postmaster_start_time())::float,
       concat((select concat(count(*), ' ', sum(updated_at::numeric)) from agents), ' ',
              (select concat(count(*), ' ', sum(installed_at::numeric)) from plugins), ' ',
              (select max(changed_at) from signing_keys))"""
_NAME = "select md5(min(applied_at)::text || current_database()) from schema_version"
# From then on `beat_at` tells when a host ended.
_GONE = f"""
update hosts set gone = :why, beat_at = clock_timestamp() where boot = any(:boots::bigint[]) and gone is null
   and beat_at < clock_timestamp() - interval '{LEASE_SECONDS} s' returning boot"""
_LEAVE = "update hosts set gone = :why, beat_at = clock_timestamp() where boot = :boot and gone is null"
# What is unfinished has a run or a transaction, so no index over sessions is needed, which every run would pay for. A
# run was accepted at a host that still has it, or is gone; which host has its session now is told by the session.
_OPEN = "select session_id from runs where status in ('queued', 'running')"
LEFT = Query(
    LeftBehind,
    f"""
with open_ones as (
  {_OPEN} and boot is null
  union {_OPEN} and boot < (select min(boot) from hosts)
  union {_OPEN} and boot = any(array(select boot from hosts where gone is not null))
  union select session_id from transactions)
select s.session_id, coalesce(h.gone, :restarted::text) from open_ones join sessions s using (session_id)
  left join hosts h on h.boot = s.boot
 where h.boot is null or h.gone is not null order by random() limit :limit""",
)
# A write that began before its host was gone may end after it was looked for what it left: it is looked again until
# that cannot be any more.
_SETTLED = f"""
update hosts set settled = true where gone is not null and not settled and boot = any(:boots::bigint[])
   and beat_at < clock_timestamp() - interval '{UNDER_WAY_SECONDS} s'"""
_ASK = "insert into errands (errand_id, boot, body, created_at) values (:request_id, :boot, :body, clock_timestamp())"
# Whoever asked has given up after a while and said so; what nobody waits for is not done any more.
_ASKED = Query(
    PendingRequest,
    f"""
select errand_id, body from errands
 where boot = :boot and answer is null and created_at > clock_timestamp() - interval '{ASKED_SECONDS} s'
 order by created_at limit :limit""",
)
_ANSWER = "update errands set answer = :answer where errand_id = :request_id"
_ANSWERED = Query(
    several,
    """
select answer, exists (select 1 from hosts where hosts.boot = errands.boot and hosts.gone is null)
  from errands where errand_id = :request_id""",
)
_TIDY = (
    f"delete from errands where created_at < clock_timestamp() - interval '{KEEP}'",
    f"delete from hosts where gone is not null and settled and beat_at < clock_timestamp() - interval '{KEEP}'",
)


class PostgresHosts:
    """The `Hosts` port over one database, for the host that is called `host_id`."""

    def __init__(self, address: str, host_id: str, url: str, *, engine: Engine, silence: Silence) -> None:
        self._address = address
        self._silence = silence
        self._host_id = host_id
        self._url = url
        self._engine = engine
        self._pulse: Connection | None = None
        self._one_at_a_time = asyncio.Lock()
        self._offset = time.time() - steady_seconds()
        """How far the database's clock is ahead of the steady one; this machine's own, until it was asked."""
        self.boot = 0
        self.on_boot: Callable[[int], None] = lambda _: None
        """Told whenever this host gets a number."""

    def close(self) -> None:
        if self._pulse is not None:
            self._pulse.terminate()
            self._pulse = None

    def clock(self) -> float:
        return steady_seconds() + self._offset

    async def _ask_the_time(self, statement: str) -> Sequence[Any]:
        asked_at = steady_seconds()
        store_time, *rest = (await self._now(statement))[0]
        self._offset = store_offset(self._offset, store_time, asked_at, steady_seconds())
        return rest

    async def register(self) -> None:
        await self._ask_the_time(_TIME)
        if self.boot and await self._now(_NAMESAKE, boot=self.boot, gone=RESTARTED):
            _log.error(_COPIED, extra={"action": "hosts.namesake"})
            self._host_id = uuid4().hex
        mine = {"host_id": self._host_id, "url": self._url, "restarted": RESTARTED}
        self.boot = (await self._now(_REGISTER, **mine))[0][0]
        self.on_boot(self.boot)

    async def name(self) -> str:
        return (await self._now(_NAME))[0][0]

    async def beat(self) -> Beat:
        held = bool(await self._now(_BEAT, boot=self.boot))
        peers = [KnownHost(*found) for found in await self._now(_PEERS)]
        up, changes = await self._ask_the_time(_STORE)
        return Beat(held, up, peers, changes)

    async def declare_gone(self, boots: Sequence[int], why: str) -> Sequence[int]:
        return [found[0] for found in await self._now(_GONE, boots=boots, why=why)]

    async def leave(self, why: str) -> None:
        await self._now(_LEAVE, boot=self.boot, why=why)

    async def left_behind(self, *, limit: int) -> Sequence[LeftBehind]:
        return await self._engine.all(LEFT, restarted=RESTARTED, limit=limit)

    async def settled(self, boots: Sequence[int]) -> None:
        await self._now(_SETTLED, boots=boots)

    async def ask(self, boot: int, errand: PendingRequest) -> None:
        await self._durably(ask(_ASK, request_id=errand.request_id, boot=boot, body=errand.body))

    async def asked(self, *, limit: int) -> Sequence[PendingRequest]:
        return await self._engine.all(_ASKED, boot=self.boot, limit=limit)

    async def answer(self, errand_id: str, answer: bytes) -> None:
        await self._durably(ask(_ANSWER, request_id=errand_id, answer=answer))

    async def answered(self, errand_id: str) -> tuple[bytes | None, bool]:
        answer, there = await self._engine.one(_ANSWERED, request_id=errand_id) or (None, False)
        return answer, there

    async def tidy(self) -> None:
        await self._durably(*map(ask, _TIDY))

    async def _durably(self, *asked: Ask) -> None:
        def work() -> Work[None]:
            for one in asked:
                _ = yield one

        await self._engine.do(work)

    async def _now(self, statement: str, **given: Any) -> Sequence[Any]:
        """On the connection for beats. One that was lost is replaced by the next question."""
        async with self._one_at_a_time:
            try:
                if self._pulse is None or self._pulse.is_closed():
                    self._pulse = await connect(self._address)
                return await self._silence.watch(self._pulse, rows_of(self._pulse, statement, **given))
            except AWAY as error:
                if self._pulse is not None and is_over(self._pulse, error):
                    self.close()
                raise unavailable(error, self._address) from error
            except StorageUnavailableError:
                self.close()
                raise


_LOCK = 0x7061_6464_6F63_6B02
"""Which advisory lock means "hosts serve this database"."""
PATIENCE_SECONDS = 5.0
"""How long an old host that was just stopped may take to be gone from the database."""
_WRITER = "paddock writer"
_SERVING = f"""
select count(*) from hosts where gone is null and beat_at > clock_timestamp() - interval '{LEASE_SECONDS} s'"""
_END = """
select pg_terminate_backend(pid) from pg_stat_activity
 where pid = $1 and pid <> pg_backend_pid() and application_name = $2 and usename = current_user"""


async def own_connection(connection: Connection, before: int, *, serving: bool, place: str) -> None:
    """Make this connection the writer's. `before` is the server's process of the one it follows, 0 for none."""
    try:
        await connection.execute("select set_config('application_name', $1, false)", _WRITER)
        await connection.execute(_END, before, _WRITER)
        if serving and not await _lock(connection):
            raise StorageUnavailableError(
                f"the database at {place} is served by a host of an older Paddock: stop that one first"
            )
    except AWAY as error:
        raise unavailable(error) from error


async def refuse_while_served(connection: Connection, advice: str) -> None:
    """Raises StorageUnavailableError when hosts serve this database: they would not know what happens under them."""
    if serving := await connection.fetchval(_SERVING):
        raise StorageUnavailableError(f"{serving} host(s) serve this database; {advice}")


async def keep_hosts_out(connection: Connection) -> None:
    """Keep hosts out until the transaction ends. Raises StorageUnavailableError when one serves this database."""
    if not await _lock(connection, "select pg_try_advisory_xact_lock($1)"):
        text = "this upgrade changes how the log is kept: stop all hosts that serve this database, then start one"
        raise StorageUnavailableError(text)


async def _lock(connection: Connection, sql: str = "select pg_try_advisory_lock_shared($1)") -> bool:
    end = asyncio.get_running_loop().time() + PATIENCE_SECONDS
    while not (taken := await connection.fetchval(sql, _LOCK)):
        if asyncio.get_running_loop().time() > end:
            break
        await asyncio.sleep(0.1)
    return bool(taken)
