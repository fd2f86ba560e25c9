"""A run as a client asks for it that tells the whole conversation: what is new in it, and what it answers.

Knows no dialect. Works on a run that is not on record yet; what is found is put on record with it, in one commit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from paddock.host.conversations.answers import Answers, continued
from paddock.host.conversations.branches import files_in, message_of
from paddock.host.conversations.client_files import ClientFiles
from paddock.host.conversations.client_history import ClientHistory
from paddock.host.people.approvals import Approvals
from paddock.host.session.arrivals import NewRun
from paddock.ports.attachments import AttachmentRef
from paddock.rules.conversations.client_history import (
    ClientMessage,
    Media,
    Merged,
    Supplied,
    Unseen,
    merge,
    supplied_by,
)
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value, replace

log = structlog.get_logger("paddock.client_runs")

MAX_FILES = 16
NOTHING_ASKED = "messages must contain a user message: the last one is what the agent answers"
NOTHING_NEW = (
    "there is nothing new to answer: end messages with a user message, or with answers to tool calls that are open, "
    "or send resume for open interrupts"
)
STILL_OPEN = "the last run ended with interrupts that are still open; answer all of them with resume"


class Told(Value, frozen=True):
    """Context that a client sends with its request: the history, its own instructions, answers to questions."""

    messages: Sequence[ClientMessage]
    raw: Sequence[Mapping[str, Any]]
    instructions: Sequence[Mapping[str, Any]] = ()
    resume: Sequence[Mapping[str, Any]] = ()
    unseen: Unseen | None = None
    """What it says of questions that it leaves out; most say nothing."""
    tells_all: bool = True
    """Whether it is known to tell the whole conversation every time."""


class Completed(Value, frozen=True):
    new: NewRun
    diverged: bool = False
    """The client should be told how the conversation stands."""


class ClientRuns:
    def __init__(
        self, history: ClientHistory, files: ClientFiles, approvals: Approvals | None, *, clock: Callable[[], float]
    ) -> None:
        self._history = history
        self._files = files
        self._answers = Answers(history, approvals, clock=clock)

    async def completed(self, new: NewRun, told: Told, *, exists: bool) -> Completed:
        """The run with everything that has to be looked up for it. Raises HostError."""
        if not exists:
            return await self._asked(new, told, merge(told.messages, ()), [], [])
        answers = await self._history.answers(new.thread_id, told.messages)
        merged = await self._history.merged(new.thread_id, told.messages, told.unseen, tells_all=told.tells_all)
        resume, outcomes = await self._answers.taken(new, told.resume)
        if resume and merged.asked is None:
            merged = Merged(diverged=merged.diverged)
        elif answers and merged.asked is None and (await self._history.interrupts(new.thread_id))[0]:
            raise HostError(ErrorCode.CONFLICT, STILL_OPEN)
        return await self._asked(new, told, merged, [*answers, *outcomes], resume)

    # --- what is asked -----------------------------------------------------------------------------------------------

    async def _asked(
        self, new: NewRun, told: Told, merged: Merged, answers: list[Supplied], resume: list[Mapping[str, Any]]
    ) -> Completed:
        if merged.again is not None:
            message = message_of(merged.again)
            done = replace(new, message=message, text=merged.again.content, attachments=files_in(message["content"]))
        elif merged.asked is not None:
            done = await self._message(new, told.messages[merged.asked])
        elif answers or resume:
            done = replace(new, message={}, text="", event=continued(answers, resume))
        else:
            users = any(message.role == "user" for message in told.messages)
            raise HostError(ErrorCode.INVALID_ARGUMENT, NOTHING_NEW if users else NOTHING_ASKED)
        supplied = (*supplied_by(told.messages[index] for index in merged.supplied), *answers)
        params = _params(new.params, told, merged, answers, resume)
        return Completed(replace(done, supplied=supplied, replaces=merged.replaces, params=params), merged.diverged)

    async def _message(self, new: NewRun, asked: ClientMessage) -> NewRun:
        if isinstance(asked.content, str):
            return replace(new, message={"id": asked.message_id, "content": asked.content}, text=asked.text)
        parts: list[Mapping[str, Any]] = []
        files: list[AttachmentRef] = []
        for part in asked.content:
            if not isinstance(part, Media):
                parts.append(part)
            elif (file := await self._file(new, part, len(files))) is not None:
                files.append(file)
                parts.append({"type": "binary", **file.block()})
        message = {"id": asked.message_id, "content": parts}
        return replace(
            new,
            message=message,
            text=asked.text,
            attachments=[file.artifact() for file in files],
            rows=[*new.rows, *(file.attached(new.thread_id) for file in files)],
        )

    async def _file(self, new: NewRun, media: Media, before: int) -> AttachmentRef | None:
        """A part that cannot be used is passed over: a run never fails over it."""
        found = f"a message may have {MAX_FILES} files" if before >= MAX_FILES else None
        found = found or await self._files.store(new.principal, new.thread_id, media)
        if isinstance(found, AttachmentRef):
            return found
        log.warning("a part of a message was passed over", action="run.accept", session_id=new.thread_id, reason=found)
        return None


def _params(
    params: Mapping[str, Any],
    told: Told,
    merged: Merged,
    answers: Sequence[Supplied],
    resume: Sequence[Mapping[str, Any]],
) -> Mapping[str, Any]:
    """Untrusted parameters for the runner: the client's instructions, further fields, its answers as they came."""
    first = len(told.raw) if merged.asked is None else merged.asked + 1
    if first >= len(told.raw) and not (answers or resume or told.instructions):
        return params
    answered = {answer.message_id for answer in answers}
    besides = [raw for index, raw in enumerate(told.raw) if index >= first or raw["id"] in answered]
    more = {"messages": [*told.instructions, *besides], "resume": list(resume)}
    return {**params, **{name: value for name, value in more.items() if value}}
