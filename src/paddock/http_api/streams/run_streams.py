"""Opening the stream of a run: from which frame on, in which dialect, under which names."""

from functools import partial

from starlette.types import ASGIApp

from paddock.host.conversations.inbox import Accepted
from paddock.host.keeping.deletion import Deletion
from paddock.host.people.principals import Principal
from paddock.host.runs.lookup import RunsView
from paddock.host.streams.open_streams import OpenStreams, Place
from paddock.host.streams.tails import Tails
from paddock.http_api.ag_ui.events import Peer
from paddock.http_api.streams.stream import DIALECTS, Cursor, RunStream, WhenGone, nothing_more, parse_cursor
from paddock.ports.attachments import Attachments
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow


class RunStreams:
    """Makes the answers that stream runs."""

    def __init__(
        self,
        *,
        tails: Tails,
        runs: RunsView,
        keeping: Deletion,
        open_streams: OpenStreams,
        keep_alive_seconds: float,
        attachments: Attachments,
    ) -> None:
        self._attachments = attachments
        self._open_streams = open_streams
        self._keeping = keeping
        self._tails = tails
        self._runs = runs
        self._keep_alive = keep_alive_seconds

    def place(self, principal: Principal) -> Place:
        """For a stream that is opened when its run has been accepted. Raises RATE_LIMITED."""
        return self._open_streams.stream(principal)

    async def from_the_start(
        self,
        principal: Principal,
        accepted: Accepted,
        peer: Peer,
        *,
        place: Place | None = None,
        after_start: bytes = b"",
        when_gone: WhenGone | None = None,
    ) -> RunStream:
        """All of a run that was just accepted, or accepted before and asked for again."""
        start = Cursor(peer.dialect, accepted.first_seq, -1)
        return await self._open(
            principal,
            accepted.thread_id,
            accepted.task_id,
            peer,
            start,
            place=place,
            after_start=after_start,
            when_gone=when_gone,
        )

    async def check_cursor(self, given: str | None, dialect: str, thread_id: str) -> Cursor | None:
        """Where a client that asks for a run again stands; None at its start. Raises HostError for what nobody said."""
        start = parse_cursor(given) if given else None
        if start is None:
            return None
        if start.dialect != dialect:
            text = f"this cursor belongs to a stream of dialect {start.dialect}, and the request asks for {dialect}"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)
        await self._keeping.check_reached(thread_id, start.seq)
        return start

    async def go_on(
        self,
        principal: Principal,
        accepted: Accepted,
        peer: Peer,
        start: Cursor,
        *,
        place: Place,
        when_gone: WhenGone | None,
    ) -> ASGIApp:
        """The rest of a run that was accepted before, after its reader's last frame."""
        run = await self._runs.find(principal, accepted.task_id)
        await self._keeping.check_run(run)
        if start.seq > run.last_seq and run.status in TERMINAL_STATUSES:
            place.leave()
            return nothing_more
        thread_id, task_id = accepted.thread_id, accepted.task_id
        return await self._open(principal, thread_id, task_id, peer, start, place=place, when_gone=when_gone)

    async def from_a_cursor(
        self, principal: Principal, run: RunRow, cursor: str | None, dialect: str | None, thread_name: str | None
    ) -> ASGIApp:
        """A run from where the reader stands, or from its start; in the dialect asked for, or that of the cursor."""
        start = parse_cursor(cursor) if cursor else None
        dialect = dialect or (start.dialect if start else DIALECTS[0])
        await self._keeping.check_run(run)
        start = start or Cursor(dialect, run.first_seq, -1)
        if start.seq < run.first_seq:
            start = Cursor(dialect, run.first_seq, -1)
        if start.seq > run.last_seq and run.status in TERMINAL_STATUSES:
            return nothing_more
        if start.seq > run.last_seq:
            await self._keeping.check_reached(run.session_id, start.seq)
        peer = peer_of(dialect, run.session_id, run.client_run_id or run.run_id, thread_name)
        return await self._open(principal, run.session_id, run.run_id, peer, start)

    async def _open(
        self,
        principal: Principal,
        thread_id: str,
        task_id: str,
        peer: Peer,
        start: Cursor,
        *,
        place: Place | None = None,
        after_start: bytes = b"",
        when_gone: WhenGone | None = None,
    ) -> RunStream:
        async def is_over(last: int) -> bool:
            run = await self._runs.find(principal, task_id)
            return run.status in TERMINAL_STATUSES and run.last_seq <= last

        place = place or self.place(principal)
        follower = self._tails.follow(thread_id, task_id, start.seq - 1)
        return await RunStream(
            follower,
            peer,
            start,
            place=place,
            keep_alive=self._keep_alive,
            is_over=is_over,
            signed_url=partial(signed_for, self._attachments, principal),
            after_start=after_start,
            when_gone=when_gone,
        ).begin()


def signed_for(attachments: Attachments, principal: Principal, file_id: str) -> str | None:
    """An address under which this reader can have a file for a while."""
    return attachments.signed_url(
        file_id, workspace_id=principal.workspace_id, user_id=principal.user_id, by=principal.credential
    )


def peer_of(dialect: str, thread_id: str, run_id: str, name: str | None = None) -> Peer:
    """Readers that call the thread by a name or a spelling of their own do not share frames with those that do not."""
    if name is None or name == thread_id:
        return Peer(dialect, thread_id, run_id, dialect)
    return Peer(dialect, name, run_id, f"{dialect}:{name}")
