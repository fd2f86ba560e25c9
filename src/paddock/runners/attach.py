"""Runners that attach from elsewhere: one-time tokens, one connection each. Carrying the lines is the door's work."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from time import monotonic

import anyio
import structlog

from paddock.ports import Caller
from paddock.rules.errors import ErrorCode, HostError
from paddock.runners.connection import Connection, LineTransport, Peer
from paddock.runners.errors import HandshakeError, PeerRefusedError
from paddock.runners.manifests import check_manifests
from paddock.runners.supervisor import Surroundings
from paddock_sdk.protocol.ids import PluginId
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions

TOKEN_SECONDS = 60.0
MAX_TOKENS = 1000

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ticket:
    """What one token is good for."""

    workspace: str
    plugin: PluginId
    expires_at: float


class AttachTokens:
    """Tokens for one workspace and one plugin, good once and for a minute. Only their hashes are kept, in memory."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._tickets: dict[bytes, Ticket] = {}

    def mint(self, workspace: str, author: str, name: str) -> str:
        """A fresh token. Raises HostError for a name that cannot be one, or when too many are waiting."""
        self._drop_expired()
        if len(self._tickets) >= MAX_TOKENS:
            raise HostError(ErrorCode.RATE_LIMITED, "too many attach tokens are waiting to be used", retryable=True)
        try:
            plugin = PluginId(author, name)
        except ValueError as problem:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(problem)) from None
        token = f"pda_{token_urlsafe(32)}"
        self._tickets[_digest(token)] = Ticket(workspace, plugin, self._clock() + TOKEN_SECONDS)
        return token

    def redeem(self, token: str) -> Ticket:
        """Use a token up. Unknown, used and expired ones look the same."""
        ticket = self._tickets.pop(_digest(token), None)
        if ticket is None or ticket.expires_at <= self._clock():
            raise HostError(ErrorCode.UNAUTHENTICATED, "this attach token is not valid (any more); ask for a new one")
        return ticket

    def _drop_expired(self) -> None:
        now = self._clock()
        self._tickets = {key: ticket for key, ticket in self._tickets.items() if ticket.expires_at > now}


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "replace")).digest()


class AttachedRunner:
    """One runner program that came to us. Offers its runners once it has shaken hands."""

    def __init__(
        self,
        ticket: Ticket,
        transport: LineTransport,
        around: Surroundings,
        *,
        ceiling: AgentRunnerPermissions | None,
        on_ready: Callable[["AttachedRunner"], None],
        on_gone: Callable[["AttachedRunner"], None],
    ) -> None:
        self.ticket = ticket
        self.manifests: Mapping[str, AgentRunnerManifest] = {}
        self._around = around
        self._ceiling = ceiling
        self._on_ready = on_ready
        self._on_gone = on_gone
        self._transport = transport
        caller = Caller(str(ticket.plugin), f"{ticket.plugin}#{next(around.numbers)}")
        self.connection = Connection(
            Peer(transport, caller, around.handler, kill=self._kill, on_foreign=around.on_foreign)
        )
        self._introduction = asyncio.create_task(self._introduce())

    def feed_line(self, line: bytes) -> None:
        self.connection.feed_line(line)

    def end(self, code: str = "runner.crashed", message: str = "the attached runner disconnected") -> None:
        """The other side is gone: its runs end with it."""
        self._on_gone(self)
        self.connection.end(code, message)
        self._transport.close()

    async def introduced(self) -> None:
        """Wait until it has shaken hands and its runners are known, or it was let go."""
        await asyncio.shield(self._introduction)

    async def _kill(self) -> None:
        self.end()

    async def _introduce(self) -> None:
        plugin = self.ticket.plugin
        try:
            with anyio.fail_after(self._around.start_seconds):
                await self.connection.open((plugin.author, plugin.name), host_version=self._around.host_version)
                offered = await self.connection.list_runners()
        except (HandshakeError, PeerRefusedError, TimeoutError) as problem:
            log.warning("runner.attach_refused", plugin=str(plugin), reason=str(problem) or "no answer in time")
            self.end()
            return
        self.manifests = check_manifests(str(plugin), offered, self._ceiling)
        self._on_ready(self)
        log.info("runner.attached", plugin=str(plugin), workspace=self.ticket.workspace, runners=list(self.manifests))
