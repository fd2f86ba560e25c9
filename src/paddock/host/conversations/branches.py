"""Branches of a conversation: an earlier message changed, or answered again; and ratings of answers.

The conversation goes on from the earlier message. Later items stay on record, but history, search and runners read the
conversation without them.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, cast

import msgspec

from paddock.host.conversations.controls import Controls
from paddock.host.conversations.inbox import Accepted, Inbox, NewRun
from paddock.host.people.principals import Principal
from paddock.ports import ConversationRecords, DayRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import AuditRow, FeedbackRow, TranscriptRow
from paddock.rules.run.request_bodies import body_hash
from paddock.rules.values import Value
from paddock_sdk.protocol.run_context import TriggerSource

MAX_OF_A_RUN = 10_000


class _Records(ConversationRecords, DayRecords, Protocol): ...


class Again(Value, frozen=True):
    """A request for another branch: the item it starts from, its name, the agent to answer, and new words if any."""

    item_id: str
    client_run_id: str
    agent_id: str | None
    text: str | None = None
    """The new words; None repeats the old ones."""
    source: TriggerSource = "api"


class Branches:
    def __init__(self, *, controls: Controls, inbox: Inbox, records: _Records, clock: Callable[[], float]) -> None:
        self._controls = controls
        self._inbox = inbox
        self._records = records
        self._clock = clock

    async def again(self, principal: Principal, session_id: str, asked: Again) -> Accepted:
        """Go on from the user's message that this item is, or answers. Raises NOT_FOUND, or CONFLICT while a turn is
        live."""
        await self._controls.find(principal, session_id)
        known = await self._records.inbox(session_id, asked.client_run_id)
        item = await self._asked_in(session_id, asked.item_id, left_behind=known is not None)
        message = message_of(item)
        if asked.text is not None:
            message = {**message, "content": _with_text(message["content"], asked.text)}
        text = item.content if asked.text is None else asked.text
        return await self._inbox.accept(
            NewRun(
                principal=principal,
                session_id=session_id,
                client_run_id=asked.client_run_id,
                body_hash=body_hash({"item": item.item_id, "text": asked.text}, asked.agent_id),
                message=message,
                text=text,
                agent_id=asked.agent_id,
                attachments=files_in(message["content"]),
                replaces=item.seq,
                source=asked.source,
                door="session",
            )
        )

    async def rate(self, principal: Principal, session_id: str, item_id: str, rating: str | None, comment: str) -> None:
        """Rate an answer; None takes the rating back."""
        await self._controls.find(principal, session_id)
        items = await self._items(session_id, item_id)
        if not any(row.item_id == item_id and row.role == "assistant" for row in items):
            raise HostError(ErrorCode.NOT_FOUND, "there is no such answer in this conversation")
        now = self._clock()
        await self._records.write(
            [
                FeedbackRow(session_id, item_id, rating, comment, now),
                _rated(principal, session_id, item_id, rating, now),
            ]
        )

    async def _asked_in(self, session_id: str, item_id: str, *, left_behind: bool) -> TranscriptRow:
        for row in await self._items(session_id, item_id, left_behind=left_behind):
            if row.role == "user":
                return row
        raise HostError(ErrorCode.NOT_FOUND, "there is no such message in this conversation")

    async def _items(self, session_id: str, item_id: str, *, left_behind: bool = False) -> list[TranscriptRow]:
        run = await self._records.run(item_id.rpartition(".")[0])
        if run is None or run.session_id != session_id:
            return []
        rows = await self._records.spoken(
            session_id, before=run.last_seq + 1, start=run.first_seq, limit=MAX_OF_A_RUN, left_behind=left_behind
        )
        mine = [row for row in rows if row.run_id == run.run_id]
        return mine if any(row.item_id == item_id for row in mine) else []


def message_of(item: TranscriptRow) -> dict[str, Any]:
    """Return a user's message in the form in which doors hand it in."""
    whole: dict[str, Any] = msgspec.json.decode(item.content_json) if item.content_json else {}
    about: Mapping[str, Any] = msgspec.json.decode(item.metadata) if item.metadata else {}
    return {"id": about.get("message_id") or item.item_id, "content": item.content, **whole}


def _with_text(content: object, text: str) -> object:
    blocks = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    files = [block for block in blocks if block.get("type") == "binary"]
    return [{"type": "text", "text": text}, *files] if files else text


def files_in(content: object) -> list[Mapping[str, Any]]:
    blocks = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    found = [block for block in blocks if block.get("type") == "binary" and "id" in block]
    named = {"id": "artifact_id", "mimeType": "mime_type", "filename": "name"}
    return [{new: block[old] for old, new in named.items() if old in block} for block in found]


def _rated(principal: Principal, session_id: str, item_id: str, rating: str | None, now: float) -> AuditRow:
    reason = rating or "taken back"
    return principal.audit("answer.rate", item_id, at=now, scope=session_id, reason=reason, session_id=session_id)
