"""The register of hosts that serve a database, and what they ask of each other.

Beats have a connection of their own, so that a busy host is never taken for a dead one. All times are the database's.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from uuid import uuid4

from paddock.ports.hosts import ASKED_SECONDS, Beat, LeftBehind, PendingRequest, steady_seconds
from paddock.rules.cluster.leases import LEASE_SECONDS, RESTARTED, Peer, store_offset
from paddock.rules.errors import StorageUnavailableError
from paddock.storage.postgres.connection import AWAY, STATEMENT_SECONDS, Connection, connect, is_over, unavailable
from paddock.storage.postgres.reader import Reader
from paddock.storage.postgres.silence import Silence

_log = logging.getLogger(__name__)

# ruff: noqa: S608 - the numbers are our own, values are always bound
KEEP = "1 hour"
"""How long hosts that are gone and errands are remembered."""
UNDER_WAY_SECONDS = 3 * STATEMENT_SECONDS
"""For so long something that a host began to write while it was there may still be written."""
_REGISTER = """
with mine as materialized (select nextval('epochs') as boot),
     earlier as (update hosts set gone = $3, beat_at = clock_timestamp() where host_id = $1 and gone is null)
insert into hosts (boot, host_id, url, started_at, beat_at)
select boot, $1, $2, clock_timestamp(), clock_timestamp() from mine returning boot"""
# A host that has not ended is said to have been started again: another one has its name.
_NAMESAKE = "select 1 from hosts where boot = $1 and gone = $2"
_COPIED = (
    "another host has the name of this one, as when a data directory is copied: this one takes another until it is "
    "started again; remove the file host-id from one of the two directories"
)
_BEAT = "update hosts set beat_at = clock_timestamp() where boot = $1 and gone is null returning boot"
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
update hosts set gone = $2, beat_at = clock_timestamp() where boot = any($1::bigint[]) and gone is null
   and beat_at < clock_timestamp() - interval '{LEASE_SECONDS} s' returning boot"""
_LEAVE = "update hosts set gone = $2, beat_at = clock_timestamp() where boot = $1 and gone is null"
# What is unfinished has a run or a transaction, so no index over sessions is needed, which every run would pay for. A
# run was accepted at a host that still has it, or is gone; which host has its session now is told by the session.
_OPEN = "select session_id from runs where status in ('queued', 'running')"
LEFT = f"""
with open_ones as (
  {_OPEN} and boot is null
  union {_OPEN} and boot < (select min(boot) from hosts)
  union {_OPEN} and boot = any(array(select boot from hosts where gone is not null))
  union select session_id from transactions)
select s.session_id, coalesce(h.gone, $1) from open_ones join sessions s using (session_id)
  left join hosts h on h.boot = s.boot
 where h.boot is null or h.gone is not null order by random() limit $2"""
# A write that began before its host was gone may end after it was looked for what it left: it is looked again until
# that cannot be any more.
_SETTLED = f"""
update hosts set settled = true where gone is not null and not settled and boot = any($1::bigint[])
   and beat_at < clock_timestamp() - interval '{UNDER_WAY_SECONDS} s'"""
_ASK = "insert into errands (errand_id, boot, body, created_at) values ($1, $2, $3, clock_timestamp())"
# Whoever asked has given up after a while and said so; what nobody waits for is not done any more.
_ASKED = f"""
select errand_id, body from errands
 where boot = $1 and answer is null and created_at > clock_timestamp() - interval '{ASKED_SECONDS} s'
 order by created_at limit $2"""
_ANSWER = "update errands set answer = $2 where errand_id = $1"
_ANSWERED = """
select answer, exists (select 1 from hosts where hosts.boot = errands.boot and hosts.gone is null)
  from errands where errand_id = $1"""
_TIDY = (
    f"delete from errands where created_at < clock_timestamp() - interval '{KEEP}'",
    f"delete from hosts where gone is not null and settled and beat_at < clock_timestamp() - interval '{KEEP}'",
)


class PostgresHosts:
    """The `Hosts` port over one database, for the host that is called `host_id`."""

    def __init__(self, address: str, host_id: str, url: str, *, reader: Callable[[], Reader], silence: Silence) -> None:
        self._address = address
        self._silence = silence
        self._host_id = host_id
        self._url = url
        self._reader = reader
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

    # --- what time it is

    def clock(self) -> float:
        return steady_seconds() + self._offset

    async def _ask_the_time(self, statement: str) -> Sequence[Any]:
        """A row that begins with the database's time, without it."""
        asked_at = steady_seconds()
        store_time, *rest = (await self._now(statement))[0]
        self._offset = store_offset(self._offset, store_time, asked_at, steady_seconds())
        return rest

    # --- who is there

    async def register(self) -> None:
        await self._ask_the_time(_TIME)
        if self.boot and await self._now(_NAMESAKE, self.boot, RESTARTED):
            _log.error(_COPIED, extra={"action": "hosts.namesake"})
            self._host_id = uuid4().hex
        self.boot = (await self._now(_REGISTER, self._host_id, self._url, RESTARTED))[0][0]
        self.on_boot(self.boot)

    async def name(self) -> str:
        return (await self._now(_NAME))[0][0]

    async def beat(self) -> Beat:
        held = bool(await self._now(_BEAT, self.boot))
        peers = [Peer(*found) for found in await self._now(_PEERS)]
        up, changes = await self._ask_the_time(_STORE)
        return Beat(held, up, peers, changes)

    async def declare_gone(self, boots: Sequence[int], why: str) -> Sequence[int]:
        return [found[0] for found in await self._now(_GONE, list(boots), why)]

    async def leave(self, why: str) -> None:
        await self._now(_LEAVE, self.boot, why)

    async def left_behind(self, *, limit: int) -> Sequence[LeftBehind]:
        return [LeftBehind(*found) for found in await self._reader().all(LEFT, RESTARTED, limit)]

    async def settled(self, boots: Sequence[int]) -> None:
        await self._now(_SETTLED, list(boots))

    # --- what one asks of another

    async def ask(self, boot: int, errand: PendingRequest) -> None:
        await self._durably(_ASK, errand.request_id, boot, errand.body)

    async def asked(self, *, limit: int) -> Sequence[PendingRequest]:
        return [PendingRequest(*found) for found in await self._reader().all(_ASKED, self.boot, limit)]

    async def answer(self, errand_id: str, answer: bytes) -> None:
        await self._durably(_ANSWER, errand_id, answer)

    async def answered(self, errand_id: str) -> tuple[bytes | None, bool]:
        found = await self._reader().one(_ANSWERED, errand_id)
        return (found[0], found[1]) if found else (None, False)

    async def tidy(self) -> None:
        for statement in _TIDY:
            await self._durably(statement)

    # --- within

    async def _durably(self, statement: str, *values: Any) -> None:
        def do(connection: Connection) -> Awaitable[str]:
            return connection.execute(statement, *values)

        await self._reader().perform(do)

    async def _now(self, statement: str, *values: Any) -> Sequence[Any]:
        """On the connection for beats. One that was lost is replaced by the next question."""
        async with self._one_at_a_time:
            try:
                if self._pulse is None or self._pulse.is_closed():
                    self._pulse = await connect(self._address)
                return await self._silence.watch(self._pulse, self._pulse.fetch(statement, *values))
            except AWAY as error:
                if self._pulse is not None and is_over(self._pulse, error):
                    self.close()
                raise unavailable(error, self._address) from error
            except StorageUnavailableError:
                self.close()
                raise
