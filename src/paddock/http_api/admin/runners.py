"""Runners: which there are, read once more, and attached from elsewhere by a token."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any, Protocol
from urllib.parse import quote

from msgspec import UNSET, UnsetType
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from paddock.host.cluster.attaching import Attaching
from paddock.host.people.principals import Principal
from paddock.host.streams.open_streams import OpenStreams
from paddock.http_api.admin.keys import MAX_NAME, PrintableName, decided
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import Operations, operation
from paddock.http_api.edge.shapes import Answer, Body, Json, about, seen
from paddock.ports import RunnerGateway, RunnerStatus
from paddock.ports.runners import RunnerState
from paddock.rules.access.signatures import Credential
from paddock.rules.agents.addresses import PATH, TOKENS
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow

MAX_WAITING_BYTES = 8 * 1024 * 1024
"""A runner that does not read is let go rather than remembered for."""
MAX_REASON_BYTES = 123
"""What a WebSocket close frame can carry."""
NORMAL, BROKE_THE_RULES, OVERLOADED = 1000, 1008, 1013
REFUSED, NO_TOKEN = 4400, 4401
"""Ours: coming back with the same program (or the same token) would not help."""


class AttachedPeer(Protocol):
    """The host's end of a runner that attached."""

    @property
    def let_in_by(self) -> Credential:
        """Credential of the person who made the token."""
        ...

    def feed_line(self, line: bytes) -> None: ...
    def end(self) -> None:
        """The other side is gone."""
        ...


class AttachTransport(Protocol):
    def send(self, line: bytes) -> None: ...
    def close(self, reason: str = "", *, refused: bool = False) -> None: ...


class AttachingGateway(RunnerGateway, Protocol):
    async def list_runners(self, workspace: str | None = None) -> Sequence[RunnerStatus]:
        """Every runner, but those attached for another workspace than the one named."""
        ...

    async def refresh(self, plugin: str, workspace: str) -> Sequence[RunnerStatus]:
        """Ask an installed plugin what it offers. Raises HostError(NOT_FOUND)."""
        ...

    async def attach(self, token: str, transport: AttachTransport) -> AttachedPeer:
        """Take a runner in. Raises HostError when the token is not good (any more)."""
        ...


class SocketTransport:
    """Lines on their way out. `send` returns at once; `pump` carries them over the socket in order."""

    def __init__(self) -> None:
        self._waiting: deque[bytes] = deque()
        self._bytes = 0
        self._wake = asyncio.Event()
        self._closing: int | None = None
        self._reason = ""

    def send(self, line: bytes) -> None:
        if self._closing is not None:
            return
        self._waiting.append(line)
        self._bytes += len(line)
        if self._bytes > MAX_WAITING_BYTES:
            self.close_with(OVERLOADED, "the runner does not read what the host sends")
        self._wake.set()

    def close(self, reason: str = "", *, refused: bool = False) -> None:
        self.close_with(REFUSED if refused else BROKE_THE_RULES if reason else NORMAL, reason)

    def close_with(self, code: int, reason: str) -> None:
        if self._closing is None:
            self._closing, self._reason = code, close_reason(reason)
            self._wake.set()

    async def pump(self, socket: WebSocket) -> None:
        """Runs until somebody closes the transport, then closes the socket."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting and self._closing != OVERLOADED:
                line = self._waiting.popleft()
                self._bytes -= len(line)
                await socket.send_text(line.rstrip(b"\n").decode())
            if self._closing is not None:
                await socket.close(self._closing, self._reason)
                return


def close_reason(text: str) -> str:
    """The text, cut to what a close frame can carry; never in the middle of a character."""
    whole = text.encode("utf-8", "replace")
    return whole.decode() if len(whole) <= MAX_REASON_BYTES else whole[:120].decode("utf-8", "ignore") + "…"


class AttachDoor:
    """The WebSocket endpoint. Who is refused hears why: the close frame says it, which an open socket must carry."""

    def __init__(
        self, gateway: AttachingGateway, streams: OpenStreams, way_to: Callable[[str], str | None] = lambda _: None
    ) -> None:
        self._gateway = gateway
        self._streams = streams
        self._way_to = way_to

    def routes(self) -> Sequence[BaseRoute]:
        return [WebSocketRoute(PATH, self)]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        socket = WebSocket(scope, receive, send)
        token, meant = socket.query_params.get("token", ""), socket.query_params.get("host")
        way = "" if meant is None else self._way_to(meant)
        if way is None:
            await socket.close(GOING_AWAY)  # perhaps it is gone just now; whoever asks finds out who is there
        elif way:
            await carry_on(socket, way, token)
        else:
            await self._take_in(socket, token)

    async def _take_in(self, socket: WebSocket, token: str) -> None:
        transport = SocketTransport()
        try:
            peer = await self._gateway.attach(token, transport)
        except HostError as error:
            await _refuse(socket, error.message)
            return
        place = self._streams.hold(peer.let_in_by)

        def show_out() -> None:
            transport.close_with(NO_TOKEN, close_reason(place.over))
            peer.end()

        place.when_over(show_out)
        try:
            await self._streams.look_at(place)
            await (_refuse(socket, place.over) if place.over else self._carry(socket, transport, peer))
        finally:
            place.leave()
            peer.end()

    async def _carry(self, socket: WebSocket, transport: SocketTransport, peer: AttachedPeer) -> None:
        await socket.accept()
        pump = asyncio.ensure_future(transport.pump(socket))
        try:
            with suppress(WebSocketDisconnect):
                while socket.application_state is WebSocketState.CONNECTED:
                    peer.feed_line(await _receive_line(socket))
        finally:
            pump.cancel()
            with suppress(asyncio.CancelledError, WebSocketDisconnect, RuntimeError):
                await pump


async def _refuse(socket: WebSocket, why: str) -> None:
    await socket.accept()
    await socket.close(NO_TOKEN, close_reason(why))


async def _receive_line(socket: WebSocket) -> bytes:
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect(message.get("code") or GOING_AWAY)
    text: str | None = message.get("text")
    return text.encode() if text is not None else message.get("bytes") or b""


# --- carried on to another host of a cluster --------------------------------------------------------------------------


OPEN_SECONDS = 5.0
FRAME_BYTES = 4 * 1024 * 1024
GOING_AWAY = 1001
UNSPEAKABLE = frozenset({1005, 1006, 1015})
"""Close codes that say that none was said; nobody may say them on."""


async def carry_on(socket: WebSocket, door: str, token: str) -> None:
    """Until one of the two ends. A host that cannot be reached is a handshake that fails: the runner tries again."""
    import websockets  # only hosts that stand behind one address ever need it
    from websockets.asyncio.client import connect

    try:
        address = f"{door}?token={quote(token, safe='')}"
        there = await connect(
            address, open_timeout=OPEN_SECONDS, max_size=FRAME_BYTES, compression=None, proxy=None, close_timeout=1
        )
    except (OSError, TimeoutError, websockets.WebSocketException):
        await socket.close(GOING_AWAY)
        return
    await socket.accept()
    ways = [asyncio.create_task(_outward(socket, there)), asyncio.create_task(_homeward(there, socket))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await there.close()
    if socket.client_state is WebSocketState.CONNECTED and socket.application_state is WebSocketState.CONNECTED:
        code = there.close_code
        await socket.close(GOING_AWAY if code is None or code in UNSPEAKABLE else code, there.close_reason or "")


async def _outward(socket: WebSocket, there: Any) -> None:
    while (message := await socket.receive())["type"] != "websocket.disconnect":
        words = message.get("text")
        await there.send(words if words is not None else message.get("bytes") or b"")


async def _homeward(there: Any, socket: WebSocket) -> None:
    async for words in there:
        await (socket.send_text(words) if isinstance(words, str) else socket.send_bytes(words))


# --- runners: which there are, and tokens to attach others ------------------------------------------------------------


BASE = "/api/v1/runners"
CLAIMED = "this plugin is installed here, or the agents file names it: only whoever runs the host attaches it"


class Runner(Answer):
    """A runner. What went wrong inside, in its own words, is for whoever runs the host."""

    runner_id: str
    plugin: str
    state: Annotated[RunnerState, about(example="ready")]
    isolation: Annotated[str, about(example="L0")]
    manifest: Json | None = None
    detail: str | None = None
    pid: int | None = None
    failing: bool | None = None
    unhealthy_for: list[str] | None = None


class RunnerList(Answer):
    runners: list[Runner]


class NewAttachToken(Body):
    author: PrintableName
    name: PrintableName
    permissions: Annotated[Json, about(must="be an object, or left out")] | UnsetType = UNSET


class AttachToken(Answer):
    token: Annotated[str, about(example="...")]
    path: Annotated[str, about(example=PATH)]


@dataclass(frozen=True, kw_only=True)
class RunnersDoor(Operations):
    group = "Agents"
    auth: Auth
    gateway: AttachingGateway
    attaching: Attaching
    note: Callable[[AuditRow], None] = lambda _row: None
    claimed: Callable[[str], bool] = lambda _plugin: False

    @operation("GET", BASE, {200: "And how they are."})
    async def runners(self, who: Principal) -> RunnerList:
        """List the runners there are"""
        listed = await self.gateway.list_runners(who.workspace_id)
        return RunnerList([_seen(status, for_operator=who.operator) for status in listed])

    @operation(
        "POST",
        f"{BASE}/{{author}}/{{name}}/refresh",
        {200: "Its runners, as they are now."},
        role="operator",
        errors=(404,),
    )
    async def refresh_runner(
        self,
        who: Principal,
        author: Annotated[str, about("Of the plugin.", example="paddock")],
        name: Annotated[str, about("Of the plugin.", example="echo")],
    ) -> RunnerList:
        """Read what a plugin offers once more

        The program is everybody's, so only whoever runs the host asks."""
        plugin = f"{author}/{name}"
        self.note(decided(who, "runners.refresh", plugin[:MAX_NAME], allowed=who.operator))
        if not who.operator:
            raise HostError(ErrorCode.UNAUTHORIZED, "only whoever runs the host has a plugin's manifests read again")
        listed = await self.gateway.refresh(plugin, who.workspace_id)
        return RunnerList([_seen(status, for_operator=True) for status in listed])

    @operation("POST", TOKENS, {201: "A token, good once and for a minute."}, role="admin")
    async def mint_attach_token(self, who: Principal, body: NewAttachToken) -> AttachToken:
        """Let a runner attach from elsewhere"""
        plugin = f"{body.author}/{body.name}"
        allowed = who.operator or not self.claimed(plugin)
        self.note(decided(who, "runners.attach_token", plugin, allowed=allowed))
        if not allowed:
            raise HostError(ErrorCode.UNAUTHORIZED, CLAIMED)
        permissions = None if body.permissions is UNSET else body.permissions
        token = await self.attaching.mint(who.workspace_id, body.author, body.name, permissions, by=who.credential)
        return AttachToken(token, PATH)


def _seen(status: RunnerStatus, *, for_operator: bool) -> Runner:
    manifest = status.manifest.model_dump(mode="json", exclude_none=True) if status.manifest else None
    inside = {"failing": status.failing or None, "unhealthy_for": [*status.unhealthy_for] or None}
    hidden = dict.fromkeys(("detail", "pid", "failing", "unhealthy_for"))
    return seen(Runner, status, manifest=manifest, **(inside if for_operator else hidden))
