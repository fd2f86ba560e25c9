"""Runners attached from elsewhere: one-time tokens, one connection each, and who is attached for which workspace.
Carrying the lines is the door's work."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from secrets import token_urlsafe
from time import monotonic
from typing import Any, Protocol

import anyio
import structlog

from paddock.ports import Caller, RunnerStatus
from paddock.rules.access.signatures import HOST, Credential
from paddock.rules.errors import EndCode, ErrorCode, HostError
from paddock.runners.installed.manifests import check_manifests, lower, read_permissions
from paddock.runners.processes.shared import ProcessServices
from paddock.runners.wire.connection import LineTransport, RunnerConnection, RunnerPeer
from paddock.runners.wire.errors import PeerError
from paddock_sdk.protocol.ids import PluginId, RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerManifest, AgentRunnerPermissions

TOKEN_SECONDS = 60.0
MAX_TOKENS = 1000
MAX_TOKENS_OF_ONE = 100
"""Of one workspace: no administrator keeps those of another from attaching."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Ticket:
    """The workspace and plugin one token is good for."""

    workspace: str
    plugin: PluginId
    expires_at: float
    by: Credential = HOST
    """Who made it was let in with this; the runner stays for as long as that counts."""
    ceiling: AgentRunnerPermissions | None = None
    """The most its runners may ask for; None: whatever they like, unless the plugin is installed."""


class AttachTransport(LineTransport, Protocol):
    """Carries lines to a runner elsewhere, and can tell it why it is shown out."""

    def close(self, reason: str = "", *, refused: bool = False) -> None:
        """`refused`: coming back unchanged would not help. A reason without it tells what the runner did wrong."""
        ...


class AttachTokens:
    """Tokens for one workspace and one plugin, good once and for a minute. Only their hashes are kept, in memory."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._tickets: dict[bytes, Ticket] = {}

    def mint(self, workspace: str, author: str, name: str, permissions: Any = None, *, by: Credential = HOST) -> str:
        """A fresh token. Raises HostError for a name or permissions that cannot be, or when too many are waiting."""
        token = f"pda_{token_urlsafe(32)}"
        self.admit(self.digest_of(token), workspace, author, name, permissions, by=by)
        return token

    def admit(
        self,
        digest: bytes,
        workspace: str,
        author: str,
        name: str,
        permissions: Any = None,
        *,
        by: Credential = HOST,
    ) -> None:
        """Let the token of this hash in, once. Raises HostError as `mint` does."""
        now = self._clock()
        self._tickets = {key: ticket for key, ticket in self._tickets.items() if ticket.expires_at > now}
        theirs = sum(ticket.workspace == workspace for ticket in self._tickets.values())
        if theirs >= MAX_TOKENS_OF_ONE or len(self._tickets) >= MAX_TOKENS:
            raise HostError(
                ErrorCode.RATE_LIMITED,
                "too many attach tokens are waiting to be used; use one, or wait a minute",
                retryable=True,
            )
        try:
            plugin = PluginId(author, name)
            ceiling = None if permissions is None else read_permissions(permissions)
        except ValueError as problem:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(problem)) from None
        self._tickets[digest] = Ticket(workspace, plugin, now + TOKEN_SECONDS, by, ceiling)

    def digest_of(self, token: str) -> bytes:
        return sha256(token.encode("utf-8", "replace")).digest()

    def redeem(self, token: str) -> Ticket:
        """Use a token up. Unknown, used and expired ones look the same."""
        ticket = self._tickets.pop(self.digest_of(token), None)
        if ticket is None or ticket.expires_at <= self._clock():
            raise HostError(ErrorCode.UNAUTHENTICATED, "this attach token is not valid (any more); ask for a new one")
        return ticket


class AttachedRunner:
    """One runner program that came to us. Offers its runners once it has shaken hands."""

    def __init__(
        self,
        ticket: Ticket,
        transport: AttachTransport,
        services: ProcessServices,
        *,
        ceiling: AgentRunnerPermissions | None,
        peers: Callable[[], Sequence[str]],
        on_ready: Callable[["AttachedRunner"], None],
        on_gone: Callable[["AttachedRunner"], None],
    ) -> None:
        self.ticket = ticket
        self.manifests: Mapping[str, AgentRunnerManifest] = {}
        self._services = services
        self._peers = peers
        self._ceiling = lower(ticket.ceiling, ceiling)
        self._on_ready = on_ready
        self._on_gone = on_gone
        self._transport = transport
        caller = Caller(str(ticket.plugin), f"{ticket.plugin}#{next(services.numbers)}")
        self.connection = RunnerConnection(
            RunnerPeer(
                transport,
                caller,
                services.gate.on_call,
                kill=self._kill,
                on_foreign=services.gate.on_foreign,
                on_overload=services.gate.on_overload,
            )
        )
        self._introduction = asyncio.create_task(self._introduce())

    @property
    def let_in_by(self) -> Credential:
        return self.ticket.by

    def feed_line(self, line: bytes) -> None:
        self.connection.feed_line(line)

    def end(self, code: EndCode = "runner.crashed", message: str = "the attached runner disconnected") -> None:
        """The other side is gone, or we are: its runs end with it."""
        self._let_go(code, message)

    def tell_peers(self) -> None:
        """Send the list of other hosts; a runner still in its handshake gets it there."""
        if self.manifests and not self.connection.closed:
            self.connection.notify("peers", {"peers": list(self._peers())})

    async def introduced(self) -> None:
        """Wait until it has shaken hands and its runners are known, or it was let go."""
        await asyncio.shield(self._introduction)

    async def _kill(self) -> None:
        """The connection broke the rules; it knows which."""
        self._let_go("runner.protocol_error", self.connection.reason, why=self.connection.reason)

    def _refuse(self, why: str) -> None:
        log.warning(
            "a runner that attached was refused",
            action="runner.attach_refused",
            plugin=str(self.ticket.plugin),
            reason=why,
        )
        self._let_go("runner.refused", why, why=why, refused=True)

    def _let_go(self, code: EndCode, message: str, *, why: str = "", refused: bool = False) -> None:
        self._on_gone(self)
        self.connection.end(code, message)
        self._transport.close(why, refused=refused)

    async def _introduce(self) -> None:
        plugin = self.ticket.plugin
        try:
            with anyio.fail_after(self._services.times.start_seconds):
                await self.connection.open(
                    (plugin.author, plugin.name), self._services.introduction, peers=self._peers()
                )
                offered = await self.connection.list_runners()
        except TimeoutError:
            self._refuse(f"it did not introduce itself within {self._services.times.start_seconds:g} seconds")
            return
        except PeerError as problem:
            if not self.connection.closed:
                self._refuse(str(problem))
            return
        listing = check_manifests(str(plugin), offered, self._ceiling)
        if listing.why_none:
            self._refuse(listing.why_none)
            return
        self.manifests = listing.runners
        self._on_ready(self)
        log.info(
            "a runner is attached",
            action="runner.attached",
            plugin=str(plugin),
            workspace=self.ticket.workspace,
            runners=list(self.manifests),
        )


MAX_OF_ONE = 50
"""Connections of runners attached for one workspace, at one host."""
MAX_ATTACHED = 1000
ELSEWHERE = "elsewhere"
"""The isolation of a runner on a machine we know nothing of."""


class AttachedRunners:
    """All that are connected, and those of them that have shaken hands and serve runs."""

    def __init__(
        self, services: ProcessServices, *, elsewhere: Callable[[], Sequence[str]], on_change: Callable[[str], None]
    ) -> None:
        """`elsewhere` lists where else a runner attaches; `on_change` gets the workspace a runner came to, or left."""
        self._services = services
        self._elsewhere = elsewhere
        self._on_change = on_change
        self._connected: set[AttachedRunner] = set()
        self._serving: dict[str, list[AttachedRunner]] = {}
        """By plugin, in the order they came."""

    def __iter__(self) -> Iterator[AttachedRunner]:
        return (runner for each in self._serving.values() for runner in each)

    def __len__(self) -> int:
        return sum(map(len, self._serving.values()))

    def let_in(
        self, ticket: Ticket, transport: AttachTransport, ceiling: AgentRunnerPermissions | None
    ) -> AttachedRunner:
        """It serves new runs of its plugin in its workspace once it has shaken hands. Raises HostError for too many."""
        theirs = sum(runner.ticket.workspace == ticket.workspace for runner in self._connected)
        if theirs >= MAX_OF_ONE or len(self._connected) >= MAX_ATTACHED:
            said = f"as many runners are attached as may be ({MAX_OF_ONE} for a workspace); let one go first"
            raise HostError(ErrorCode.RATE_LIMITED, said, retryable=True)
        runner = AttachedRunner(
            ticket,
            transport,
            self._services,
            ceiling=ceiling,
            peers=self._elsewhere,
            on_ready=self._arrived,
            on_gone=self._left,
        )
        self._connected.add(runner)
        return runner

    def tell_peers(self) -> None:
        for runner in list(self._connected):
            runner.tell_peers()

    def show_out(self, code: EndCode, message: str) -> None:
        for runner in list(self._connected):
            runner.end(code, message)

    def of(self, workspace: str | None) -> list[AttachedRunner]:
        """Those attached for a workspace; for any when none is named."""
        return [runner for runner in self if workspace in (None, runner.ticket.workspace)]

    def of_plugin(self, plugin: str, workspace: str | None) -> Iterator[AttachedRunner]:
        """Yield the attached runners of one plugin, the newest first."""
        serving = reversed(self._serving.get(plugin, ()))
        return (runner for runner in serving if workspace in (None, runner.ticket.workspace))

    def names(self, workspace: str) -> Mapping[str, str]:
        return {_short_name(runner_id): runner_id for runner in self.of(workspace) for runner_id in runner.manifests}

    def statuses(self, workspace: str | None) -> list[RunnerStatus]:
        return [status for runner in self.of(workspace) for status in _statuses(runner)]

    def _arrived(self, runner: AttachedRunner) -> None:
        if runner in self._connected:
            self._serving.setdefault(str(runner.ticket.plugin), []).append(runner)
            self._on_change(runner.ticket.workspace)

    def _left(self, runner: AttachedRunner) -> None:
        self._connected.discard(runner)
        serving = self._serving.get(str(runner.ticket.plugin), [])
        if runner in serving:
            serving.remove(runner)
            self._on_change(runner.ticket.workspace)


def _short_name(runner_id: str) -> str:
    known = RunnerId.parse(runner_id)
    return known.name if known.runner == "default" else f"{known.name}-{known.runner}"


def _statuses(runner: AttachedRunner) -> list[RunnerStatus]:
    plugin, detail = str(runner.ticket.plugin), f"for workspace {runner.ticket.workspace}"
    return [
        RunnerStatus(runner_id, plugin, "attached", isolation=ELSEWHERE, detail=detail, manifest=manifest)
        for runner_id, manifest in runner.manifests.items()
    ]
