"""A run's events as they happen, over server-sent events: from the reader's cursor to the run's last word.

Everything that waits goes out in one write. A reader that goes away ends its stream and nothing else: runs are never
cancelled by a lost connection. Nothing is said here that is not in the log; keep-alives are comments.
"""

import re
import time
from collections.abc import Awaitable, Callable, Iterable
from contextlib import closing

import anyio
import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from paddock.host.streams.open_streams import Place, while_let_in
from paddock.host.streams.tails import Entry, Follower
from paddock.http_api.ag_ui.events import SPOKEN_KINDS, TERMINAL_KINDS, Peer, SignedUrl, frames, is_personal
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.values import Value, replace

DIALECTS = ("1", "0")
"""AG-UI 1.0, and the 0.x peers that came before it. The first is what the native stream speaks."""

_CURSOR = re.compile(r"([01])\.([0-9]{1,18})\.([0-9]{1,9})", re.ASCII)


class Cursor(Value, frozen=True):
    """The last frame a reader has. `k` -1 means nothing of that fact yet."""

    dialect: str
    seq: int
    k: int


def parse_cursor(text: str) -> Cursor:
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise HostError(
            ErrorCode.INVALID_ARGUMENT,
            f"{text[:80]!r} is not a cursor: send the last `id:` of the stream as it came, such as 1.42.0",
        )
    return Cursor(found[1], int(found[2]), int(found[3]))


log = structlog.get_logger(__name__)

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-accel-buffering", b"no"),
]
KEEP_ALIVE = b": keep-alive\n\n"
FIRST_WAIT = 0.25
"""How long the answer's first line may wait for the first events, so that both leave together."""
UNWATCHED = 1.0
"""Seconds before somebody looks whether the client is still there: most runs are over by then."""

TOLD_SECONDS = 1.0
"""How long a reader that is cut may take to hear why."""

WhenGone = Callable[[], Awaitable[None]]
"""What is done when a reader goes away before the run has ended."""
IsOver = Callable[[int], Awaitable[bool]]
"""Whether the run has ended and nothing of it lies beyond this number."""


class RunStream:
    """The ASGI answer that streams one run to one reader."""

    def __init__(
        self,
        follower: Follower,
        peer: Peer,
        start: Cursor,
        *,
        place: Place,
        keep_alive: float,
        is_over: IsOver,
        signed_url: SignedUrl | None = None,
        after_start: bytes = b"",
        when_gone: WhenGone | None = None,
    ) -> None:
        self.follower = follower
        self._place = place
        self._peer = peer
        self._start = start
        self._last = start.seq
        self._keep_alive = keep_alive
        self._is_over = is_over
        self._signed_url = signed_url
        self._after_start = after_start
        self._when_gone = when_gone
        self.first: list[Entry] = []
        """What was there when it began, to be told first."""
        self.ended = False

    @property
    def is_watched(self) -> bool:
        """Tell whether something is done when its reader goes away, so that somebody looks from the beginning."""
        return self._when_gone is not None

    async def begin(self) -> "RunStream":
        """Take what is there already. Refusals come from here, while the answer can still say so."""
        try:
            self.first = await self.follower.next(FIRST_WAIT)
        except BaseException:
            self.close()
            raise
        return self

    def close(self) -> None:
        """Nobody reads it any more."""
        self.follower.close()
        self._place.leave()

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        with closing(self):
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            await self._to_the_end(receive, send, watched=False)

    async def rest(self, _: Scope, receive: Receive, send: Send) -> None:
        """Send the rest to a reader who has the beginning."""
        with closing(self):
            await self._to_the_end(receive, send, watched=True)

    def said(self, entries: Iterable[Entry]) -> bytes:
        """These facts in the reader's words; `ended` when the run's last word is among them."""
        pieces: list[bytes] = []
        for entry in entries:
            kind = entry.fact.kind
            if kind not in SPOKEN_KINDS:
                self._last = entry.fact.seq
                continue
            pieces += self._frames(entry)
            if self._after_start and pieces:
                pieces.append(self._after_start)
                self._after_start = b""
            if kind in TERMINAL_KINDS:
                self.ended = True
                break
        return b"".join(pieces)

    async def _to_the_end(self, receive: Receive, send: Send, *, watched: bool) -> None:
        try:
            if not watched:
                await self._unwatched(send)
            if not self.ended:
                await self._watched(receive, send)
        except* (HostError, StorageUnavailableError) as errors:
            # Returning with the body unfinished tells the client that it was cut; its cursor brings it back.
            log.warning(
                "stream cut", action="http.stream_cut", run_id=self._peer.run_id, reason=str(errors.exceptions[0])
            )

    async def _unwatched(self, send: Send) -> None:
        started = time.monotonic()
        await self._send(send, self.first)
        while not self.ended and time.monotonic() - started < UNWATCHED:
            await self._send(send, await self.follower.next(UNWATCHED))

    async def _watched(self, receive: Receive, send: Send) -> None:
        async with anyio.create_task_group() as watched:
            watched.start_soon(cancel_when_gone, receive, watched.cancel_scope)
            self._place.when_over(watched.cancel_scope.cancel)
            await self._stream_on(send)
            watched.cancel_scope.cancel()
        if self._place.over:
            await tell_why(send, self._place.over)
        if not self.ended and self._when_gone is not None:
            await self._when_gone()

    async def _stream_on(self, send: Send) -> None:
        while not self.ended:
            entries = await self.follower.next(self._keep_alive)
            if entries:
                await self._send(send, entries)
            elif await self._has_ended():
                await self._finish(send)
            else:
                await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})

    async def _has_ended(self) -> bool:
        """Where the store cannot be asked the run may well go on when it is back."""
        try:
            return await self._is_over(self._last)
        except StorageUnavailableError:
            return False

    async def _send(self, send: Send, entries: list[Entry]) -> None:
        body = self.said(entries)
        if body or self.ended:
            await send({"type": "http.response.body", "body": body, "more_body": not self.ended})

    async def _finish(self, send: Send) -> None:
        self.ended = True
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    def _frames(self, entry: Entry) -> list[bytes]:
        said = entry.frames.get(self._peer.key)
        if said is None and is_personal(entry.fact):
            said = frames(entry.fact, replace(self._peer, signed_url=self._signed_url))
        elif said is None:
            said = entry.frames[self._peer.key] = frames(entry.fact, self._peer)
        self._last = entry.fact.seq
        return said[self._start.k + 1 :] if self._last == self._start.seq else said


async def nothing_more(_: Scope, _receive: Receive, send: Send) -> None:
    """The stream of a reader that has seen all of a run that is over."""
    await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
    await send({"type": "http.response.body", "body": b"", "more_body": False})


def in_pieces(answer: ASGIApp) -> ASGIApp:
    """An answer of many pieces, broken off when what let its reader in ends."""

    async def until_let_out(scope: Scope, receive: Receive, send: Send) -> None:
        try:
            with while_let_in(scope):
                await answer(scope, receive, send)
        except HostError as error:
            log.info("an answer was broken off", action="http.broken_off", path=scope["path"], reason=error.message)

    return until_let_out


async def tell_why(send: Send, why: str) -> None:
    """The last line of a stream that its reader may not follow any more. The body stays unfinished: it was cut."""
    with anyio.move_on_after(TOLD_SECONDS):
        await send({"type": "http.response.body", "body": b": %b\n\n" % why.encode(), "more_body": True})


async def cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
