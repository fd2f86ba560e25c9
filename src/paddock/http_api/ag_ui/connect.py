"""How a thread stands, for an AG-UI client that comes to it: what was said, what is being said, what waits for it.

AG-UI itself has no way to ask for that. A live run is joined from its beginning, so that the stream is whole by
itself; of a thread at rest the stream is one run that says what was said and ends as the last one did.
"""

from functools import partial

from starlette.responses import Response
from starlette.types import ASGIApp

from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.inbox import Accepted
from paddock.host.people.principals import Principal, no_such_thread
from paddock.host.session.controls import Controls
from paddock.http_api.ag_ui.events import Peer, SignedUrl, finished, started
from paddock.http_api.ag_ui.snapshot import MAX_ITEMS, before_run, frame, snapshot
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.streams.run_streams import RunStreams, peer_of, signed_for
from paddock.ports import ConversationRecords
from paddock.ports.attachments import Attachments
from paddock.rules.rows.rows import TERMINAL_STATUSES, RunRow


class ThreadSnapshot:
    def __init__(
        self,
        *,
        records: ConversationRecords,
        controls: Controls,
        streams: RunStreams,
        attachments: Attachments,
        history: ClientHistory,
    ) -> None:
        self._records = records
        self._controls = controls
        self._streams = streams
        self._attachments = attachments
        self._history = history

    async def before_run(self, principal: Principal, accepted: Accepted, peer: Peer) -> bytes:
        """What was said up to the input of a run, as a frame."""
        rows = await self._records.transcript(accepted.thread_id, limit=MAX_ITEMS)
        return snapshot(before_run(rows, accepted.task_id), peer, self._signed(principal))

    async def stream(self, principal: Principal, thread_id: str, peer: Peer) -> ASGIApp:
        """A thread that is not there yet has nothing to tell, which is no error; a foreign one is not there."""
        owner = await self._records.session(thread_id)
        if owner is None:
            return _at_rest(peer, b"", frame(finished(peer, {})))
        if (owner.workspace_id, owner.user_id) != (principal.workspace_id, principal.user_id):
            raise no_such_thread()
        live = await self._live(principal, thread_id)
        if live is not None:
            return await self._join(principal, live, peer)
        rows = await self._records.transcript(thread_id, limit=MAX_ITEMS)
        _, end = await self._history.interrupts(thread_id)
        told = snapshot(rows, peer, self._signed(principal))
        return _at_rest(
            peer, told, frame(finished(peer, {"interrupts": end.get("interrupts"), "approvals": end.get("approvals")}))
        )

    async def _live(self, principal: Principal, thread_id: str) -> RunRow | None:
        looked = await self._controls.snapshot(principal, thread_id)
        turn_id = next(iter(looked.context.inflight), None)
        run = await self._records.run(turn_id) if turn_id is not None else None
        return run if run is not None and run.status not in TERMINAL_STATUSES else None

    async def _join(self, principal: Principal, run: RunRow, peer: Peer) -> ASGIApp:
        name = run.client_run_id or run.run_id
        joined = peer_of(peer.dialect, run.session_id, name, peer.thread_id)
        accepted = Accepted(run.run_id, run.session_id, name, False, run.first_seq)
        told = await self.before_run(principal, accepted, joined)
        return await self._streams.from_the_start(principal, accepted, joined, after_start=told)

    def _signed(self, principal: Principal) -> SignedUrl:
        return partial(signed_for, self._attachments, principal)


def _at_rest(peer: Peer, told: bytes, end: bytes) -> ASGIApp:
    headers = {**GUARDED, "X-Accel-Buffering": "no"}
    response = Response(frame(started(peer)) + told + end, headers=headers)
    response.headers["content-type"] = "text/event-stream"
    return response
