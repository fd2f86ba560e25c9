"""A run's events as they happen, over server-sent events: from the reader's cursor to the run's last word.

Everything that waits goes out in one write. A reader that goes away ends its stream and nothing else: runs are never
cancelled by a lost connection. Nothing is said here that is not in the log; keep-alives are comments.
"""

import re
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

import anyio
import msgspec
import structlog
from starlette.types import ASGIApp, Receive, Scope, Send

from paddock.host.conversations.inbox import Accepted
from paddock.host.keeping.deletion import Deletion
from paddock.host.people.principals import Principal
from paddock.host.runs.lookup import RunsView
from paddock.host.streams.open_streams import OpenStream, OpenStreams, while_let_in
from paddock.host.streams.tails import Entry, Follower, Tails
from paddock.http_api.ag_ui.events import SPOKEN_KINDS, TERMINAL_KINDS, AgUiPeer, frames, is_personal
from paddock.ports.attachments import Attachments
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow
from paddock.rules.values import Value

log = structlog.get_logger(__name__)

DIALECTS = ("1", "0")
"""AG-UI 1.0, and the 0.x peers that came before it. The first is what the native stream speaks."""
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
LAST_LINE_SECONDS = 1.0
"""How long a reader that is cut may take to hear why."""

_CURSOR = re.compile(r"([01])\.([0-9]{1,18})\.([0-9]{1,9})", re.ASCII)

WhenGone = Callable[[], Awaitable[None]]
"""What is done when a reader goes away before the run has ended."""


class Cursor(Value, frozen=True):
    """The last frame a reader has. `k` -1 means nothing of that fact yet."""

    dialect: str
    seq: int
    k: int


class RunReader(msgspec.Struct, frozen=True):
    """A reader of a run, and where it starts."""

    peer: AgUiPeer
    start: Cursor
    place: OpenStream
    after_start: bytes = b""
    """Frames that come behind the first one."""
    when_gone: WhenGone | None = None


def parse_cursor(text: str) -> Cursor:
    found = _CURSOR.fullmatch(text)
    if found is None:
        raise HostError(
            ErrorCode.INVALID_ARGUMENT,
            f"{text[:80]!r} is not a cursor: send the last `id:` of the stream as it came, such as 1.42.0",
        )
    return Cursor(found[1], int(found[2]), int(found[3]))


@dataclass(kw_only=True, eq=False)
class RunStreams:
    """Opens the streams of runs: from which frame on, in which dialect, under which names."""

    tails: Tails
    runs: RunsView
    keeping: Deletion
    open_streams: OpenStreams
    keep_alive_seconds: float
    attachments: Attachments

    def peer(
        self, principal: Principal, dialect: str, thread_id: str, run_id: str, name: str | None = None
    ) -> AgUiPeer:
        """A reader that calls the thread by a name or a spelling of its own shares frames with those who do so too."""
        signed_url = partial(signed_for, self.attachments, principal)
        key = dialect if name is None or name == thread_id else f"{dialect}:{name}"
        return AgUiPeer(dialect, name or thread_id, run_id, key, signed_url=signed_url)

    async def cursor(self, given: str, dialect: str, thread_id: str) -> Cursor:
        """Where a client stands that asks for a run again. Raises HostError for what nobody said."""
        start = parse_cursor(given)
        if start.dialect != dialect:
            text = f"this cursor belongs to a stream of dialect {start.dialect}, and the request asks for {dialect}"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)
        await self.keeping.check_reached(thread_id, start.seq)
        return start

    async def open(self, principal: Principal, accepted: Accepted, reader: RunReader) -> "RunStream":
        """A run from the reader's cursor on. Takes the reader's place and gives it back when the stream is over."""
        run_id = accepted.run_id

        async def is_over(last: int) -> bool:
            run = await self.runs.find(principal, run_id)
            return run.status in TERMINAL_STATUSES and run.last_seq <= last

        follower = self.tails.follow(accepted.session_id, run_id, reader.start.seq - 1)
        try:  # refusals come from here, while the answer can still say so
            first = await follower.next(FIRST_WAIT)
        except BaseException:
            follower.close()
            reader.place.leave()
            raise
        return RunStream(follower, first, reader, self.keep_alive_seconds, is_over)

    async def go_on(self, principal: Principal, accepted: Accepted, reader: RunReader) -> ASGIApp:
        """The rest of a run that was accepted before, after its reader's last frame."""
        run = await self.runs.find(principal, accepted.run_id)
        await self.keeping.check_run(run)
        if reader.start.seq > run.last_seq and run.status in TERMINAL_STATUSES:
            reader.place.leave()
            return nothing_more
        return await self.open(principal, accepted, reader)

    async def from_a_cursor(
        self, principal: Principal, run: RunRow, cursor: str | None, dialect: str | None, thread_name: str | None
    ) -> ASGIApp:
        """A run from where the reader stands, or from its start; in the dialect asked for, or that of the cursor."""
        start = parse_cursor(cursor) if cursor else None
        dialect = dialect or (start.dialect if start else DIALECTS[0])
        await self.keeping.check_run(run)
        if start is None or start.seq < run.first_seq:
            start = Cursor(dialect, run.first_seq, -1)
        if start.seq > run.last_seq:
            if run.status in TERMINAL_STATUSES:
                return nothing_more
            await self.keeping.check_reached(run.session_id, start.seq)
        accepted = accepted_before(run)
        peer = self.peer(principal, dialect, run.session_id, accepted.client_run_id, thread_name)
        return await self.open(principal, accepted, RunReader(peer, start, self.open_streams.stream(principal)))


def accepted_before(run: RunRow) -> Accepted:
    return Accepted(run.run_id, run.session_id, run.client_run_id or run.run_id, False, run.first_seq)


def signed_for(attachments: Attachments, principal: Principal, file_id: str) -> str | None:
    """An address under which this reader can have a file for a while."""
    return attachments.signed_url(
        file_id, workspace_id=principal.workspace_id, user_id=principal.user_id, by=principal.credential
    )


@dataclass(eq=False)
class RunStream:
    """The ASGI answer that streams one run to one reader."""

    follower: Follower
    first: Sequence[Entry]
    """The events that exist already."""
    reader: RunReader
    keep_alive: float
    is_over: Callable[[int], Awaitable[bool]]
    """Tells if the run has ended at or before a number."""
    _ended: bool = field(default=False, init=False)

    def __post_init__(self) -> None:
        self._after_start = self.reader.after_start
        self._last = self.reader.start.seq

    async def __call__(self, _: Scope, receive: Receive, send: Send) -> None:
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            started = time.monotonic()
            await self._tell(send, self.first)
            while not self._ended and time.monotonic() - started < UNWATCHED:
                await self._tell(send, await self.follower.next(UNWATCHED))
            if not self._ended:
                await self._watched(receive, send)
        except* (HostError, StorageUnavailableError) as errors:
            # Returning with the body unfinished tells the client that it was cut; its cursor brings it back.
            reason, run_id = str(errors.exceptions[0]), self.reader.peer.run_id
            log.warning("stream cut", action="http.stream_cut", run_id=run_id, reason=reason)
        finally:
            self.follower.close()
            self.reader.place.leave()

    async def _watched(self, receive: Receive, send: Send) -> None:
        await while_read(self.reader.place, receive, send, self._stream_on)
        if not self._ended and self.reader.when_gone is not None:
            await self.reader.when_gone()

    async def _stream_on(self, send: Send) -> None:
        while not self._ended:
            entries = await self.follower.next(self.keep_alive)
            if not entries and not await self._has_ended():
                await send({"type": "http.response.body", "body": KEEP_ALIVE, "more_body": True})
                continue
            self._ended = not entries
            await self._tell(send, entries)

    async def _has_ended(self) -> bool:
        """Tell if the run has ended. While the store is away the answer is no: the run may go on."""
        try:
            return await self.is_over(self._last)
        except StorageUnavailableError:
            return False

    async def _tell(self, send: Send, entries: Sequence[Entry]) -> None:
        """Send these facts in the reader's dialect. The last fact of the run ends the stream."""
        pieces: list[bytes] = []
        for entry in entries:
            self._last = entry.fact.seq
            if entry.fact.kind not in SPOKEN_KINDS:
                continue
            pieces += self._frames(entry)
            if self._after_start and pieces:
                pieces.append(self._after_start)
                self._after_start = b""
            if entry.fact.kind in TERMINAL_KINDS:
                self._ended = True
                break
        if pieces or self._ended:
            await send({"type": "http.response.body", "body": b"".join(pieces), "more_body": not self._ended})

    def _frames(self, entry: Entry) -> list[bytes]:
        peer, start = self.reader.peer, self.reader.start
        said = entry.frames.get(peer.key)
        if said is None:
            said = frames(entry.fact, peer)
            if not is_personal(entry.fact):
                entry.frames[peer.key] = said
        return said[start.k + 1 :] if entry.fact.seq == start.seq else said


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


async def while_read(
    place: OpenStream, receive: Receive, send: Send, stream: Callable[[Send], Awaitable[None]]
) -> None:
    """Stream for as long as the reader is there and may read. Its last line says why it may not any more; the body
    stays unfinished then, because it was cut."""
    async with anyio.create_task_group() as watched:
        watched.start_soon(_cancel_when_gone, receive, watched.cancel_scope)
        place.when_over(watched.cancel_scope.cancel)
        await stream(send)
        watched.cancel_scope.cancel()
    if place.over:
        with anyio.move_on_after(LAST_LINE_SECONDS):
            why = b": %b\n\n" % place.over.encode()
            await send({"type": "http.response.body", "body": why, "more_body": True})


async def _cancel_when_gone(receive: Receive, scope: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    scope.cancel()
