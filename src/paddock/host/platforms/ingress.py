"""Accepts events of platforms: each once, for exactly one agent.

The commit that accepts the run also records the event. A repeated event gets the same answer.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any

import msgspec

from paddock.host.agents.agents import Agents
from paddock.host.conversations.client_files import ClientFiles
from paddock.host.conversations.inbox import Inbox, ThreadNames, room_name
from paddock.host.platforms.chat_answers import NOTHING_OPEN, ChatAnswers
from paddock.host.platforms.event_shapes import EventShape, read_event
from paddock.host.platforms.platforms import Platform
from paddock.host.session.arrivals import Accepted, Arrived, NewRun
from paddock.ports import DeliveryRecords
from paddock.ports.attachments import AttachmentRef
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import is_salted
from paddock.rules.log.payloads import CONTINUED, RunEvent, is_message
from paddock.rules.platforms.chat_questions import SUBMITTED
from paddock.rules.rows.deliveries import PlatformEventRow
from paddock.rules.run.request_bodies import canonical
from paddock.rules.values import replace

OnAccepted = Callable[[Platform, Accepted, NewRun], None]


@dataclass(kw_only=True, eq=False)
class Ingress:
    inbox: Inbox
    records: DeliveryRecords
    agents: Agents
    files: ClientFiles
    answers: ChatAnswers
    names: ThreadNames
    accepted: OnAccepted = lambda _platform, _accepted, _new: None

    async def accept(
        self, platform: Platform, given: Mapping[str, Any], local: Callable[[str], str] = lambda url: url
    ) -> Accepted:
        """Accept an event that its platform signed; returns once it is recorded. Raises HostError.

        `local` turns this host's own URLs into paths."""
        event, digest = read_event(given), sha256(canonical(given)).digest()
        known = await self.records.platform_event(platform.name, event.event_id)
        if known is not None:
            return _same(known, digest, event)
        room = room_name(platform.name, event.place)
        new = self._new_run(platform, event, digest, room, await self.names.find_room(platform.principal, room))
        try:
            accepted = await self.inbox.accept(new, partial(self._completed, event, local))
        except HostError as error:
            known = await self.records.platform_event(platform.name, event.event_id)
            if error.code is not ErrorCode.CONFLICT or known is None:
                raise
            return _same(known, digest, event)  # the same event arrived twice at once
        self.accepted(platform, accepted, new)
        return accepted

    async def _completed(self, event: EventShape, local: Callable[[str], str], new: NewRun, exists: bool) -> NewRun:
        """Store the files of the event and apply its answers. Not called again for a repeated event. Raises
        HostError."""
        if event.answers:
            if not exists:
                raise HostError(ErrorCode.CONFLICT, NOTHING_OPEN)
            return await self.answers.submitted(new, event.input.choices)
        new = await self._with_files(new, event, local) if event.input.attachments else new
        if not exists:
            return new
        if is_message(event.event_type):
            return await self.answers.message(new, event.bot_id)
        return await self.answers.event(new)

    async def _with_files(self, new: NewRun, event: EventShape, local: Callable[[str], str]) -> NewRun:
        files: list[AttachmentRef] = []
        for index, file in enumerate(event.input.attachments):
            where = f"input.attachments.{index}"
            media = replace(file.media, url=local(file.url)) if file.url else file.media
            files.append(await self.files.need(new.principal, new.session_id, media, where))
        words = [{"type": "text", "text": new.text}] if new.text else []
        return replace(
            new,
            message={**new.message, "content": [*words, *({"type": "binary", **file.block()} for file in files)]},
            attachments=[file.artifact() for file in files],
            rows=[*new.rows, *(file.attached(new.session_id, event.thread_id) for file in files)],
        )

    def _new_run(self, platform: Platform, event: EventShape, digest: bytes, room: str, session_id: str) -> NewRun:
        who, target = platform.principal, event.reply_target()
        run_event = RunEvent(
            event_type=CONTINUED if event.answers else event.event_type,
            event_time=event.event_time,
            source_event_type=event.source_event_type or (SUBMITTED if event.answers else None),
            data=event.data,
            actor=event.actor.for_run if event.actor else None,
            subject=event.subject.model_dump(exclude_none=True) if event.subject else None,
            delivery=platform.delivery(target),
            subthread_id=event.thread_id,
            launcher_type=platform.name,
            launcher_id=event.conversation_id,
        )
        return NewRun(
            principal=who,
            session_id=session_id,
            thread_name=room,
            client_run_id=f"{platform.name}:{event.event_id}",
            body_hash=digest,
            message={} if event.answers else {"id": event.event_id, "content": event.input.text},
            text="" if event.answers else event.input.text,
            agent_id=event.bot_id or self._routed(platform, event),
            source="platform",
            door="events",
            event=run_event,
            cause=Arrived(platform.name, event.event_id, msgspec.json.encode(target)),
        )

    def _routed(self, platform: Platform, event: EventShape) -> str | None:
        """Choose the agent of a message that names none; None leaves the choice to the session.

        It is the platform's agent, else the session's choice if there is a default agent, else the one agent that
        answers messages.
        """
        if not is_message(event.event_type):
            return None
        if platform.spec.agent is not None:
            return platform.spec.agent
        agents, workspace = self.agents, platform.principal.workspace_id
        if agents.default_agent_id is not None and agents.known(agents.default_agent_id, workspace):
            return None
        return agents.answering(event.event_type, workspace)


def _same(known: PlatformEventRow, digest: bytes, event: EventShape) -> Accepted:
    if not is_salted(known.body_hash, digest):
        text = f"event {event.event_id!r} was accepted already with another body; use a new event_id"
        raise HostError(ErrorCode.CONFLICT, text)
    label = f"{known.platform}:{known.event_id}"
    return Accepted(known.run_id, known.session_id, label, False, 0)
