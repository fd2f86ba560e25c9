"""Runs of clients that send the whole conversation: what is new in it, and which questions it answers.

Independent of any dialect. It works on a run that is not on record yet; the results are recorded with the run, in one
commit.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import structlog

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
from paddock.rules.log.payloads import CONTINUED, RunEvent
from paddock.rules.run.results import answers_to, approvals_in
from paddock.rules.values import Value, replace

log = structlog.get_logger("paddock.client_runs")

MAX_FILES = 16
NOTHING_ASKED = "messages must contain a user message: the last one is what the agent answers"
NOTHING_NEW = (
    "there is nothing new to answer: end messages with a user message, or with answers to tool calls that are open, "
    "or send resume for open interrupts"
)
STILL_OPEN = "the last run ended with interrupts that are still open; answer all of them with resume"


class ClientContext(Value, frozen=True):
    """Context that a client sends with its request: the history, its own instructions, answers to questions."""

    messages: Sequence[ClientMessage]
    raw: Sequence[Mapping[str, Any]]
    instructions: Sequence[Mapping[str, Any]] = ()
    resume: Sequence[Mapping[str, Any]] = ()
    unseen: Unseen | None = None
    """How to treat questions that it leaves out, if it says so."""
    tells_all: bool = True
    """Whether it always sends the whole conversation."""


class Completed(Value, frozen=True):
    new: NewRun
    diverged: bool = False
    """Whether the client should be sent the conversation as it is stored."""


class ClientRuns:
    def __init__(
        self, history: ClientHistory, files: ClientFiles, approvals: Approvals | None, *, clock: Callable[[], float]
    ) -> None:
        self._history = history
        self._files = files
        self._answers = Answers(history, approvals, clock=clock)

    async def completed(self, new: NewRun, sent: ClientContext, *, exists: bool) -> Completed:
        """Return the run with everything that has to be looked up for it. Raises HostError."""
        if not exists:
            return await self._asked(new, sent, merge(sent.messages, ()), [], [])
        answers = await self._history.answers(new.session_id, sent.messages)
        merged = await self._history.merged(new.session_id, sent.messages, sent.unseen, tells_all=sent.tells_all)
        resume, outcomes = await self._answers.taken(new, sent.resume)
        if resume and merged.asked is None:
            merged = Merged(diverged=merged.diverged)
        elif answers and merged.asked is None and (await self._history.interrupts(new.session_id))[0]:
            raise HostError(ErrorCode.CONFLICT, STILL_OPEN)
        return await self._asked(new, sent, merged, [*answers, *outcomes], resume)

    # --- what is asked -----------------------------------------------------------------------------------------------

    async def _asked(
        self, new: NewRun, sent: ClientContext, merged: Merged, answers: list[Supplied], resume: list[Mapping[str, Any]]
    ) -> Completed:
        if merged.again is not None:
            message = message_of(merged.again)
            done = replace(new, message=message, text=merged.again.content, attachments=files_in(message["content"]))
        elif merged.asked is not None:
            done = await self._message(new, sent.messages[merged.asked])
        elif answers or resume:
            done = replace(new, message={}, text="", event=continued(answers, resume))
        else:
            users = any(message.role == "user" for message in sent.messages)
            raise HostError(ErrorCode.INVALID_ARGUMENT, NOTHING_NEW if users else NOTHING_ASKED)
        supplied = (*supplied_by(sent.messages[index] for index in merged.supplied), *answers)
        params = _params(new.params, sent, merged, answers, resume)
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
            rows=[*new.rows, *(file.attached(new.session_id) for file in files)],
        )

    async def _file(self, new: NewRun, media: Media, before: int) -> AttachmentRef | None:
        """Keep a file. An unusable part is left out: a run never fails because of it."""
        found = f"a message may have {MAX_FILES} files" if before >= MAX_FILES else None
        found = found or await self._files.store(new.principal, new.session_id, media)
        if isinstance(found, AttachmentRef):
            return found
        log.warning("a part of a message was passed over", action="run.accept", session_id=new.session_id, reason=found)
        return None


def _params(
    params: Mapping[str, Any],
    sent: ClientContext,
    merged: Merged,
    answers: Sequence[Supplied],
    resume: Sequence[Mapping[str, Any]],
) -> Mapping[str, Any]:
    first = len(sent.raw) if merged.asked is None else merged.asked + 1
    if first >= len(sent.raw) and not (answers or resume or sent.instructions):
        return params
    answered = {answer.message_id for answer in answers}
    besides = [raw for index, raw in enumerate(sent.raw) if index >= first or raw["id"] in answered]
    more = {"messages": [*sent.instructions, *besides], "resume": list(resume)}
    return {**params, **{name: value for name, value in more.items() if value}}


class Answers:
    def __init__(self, history: ClientHistory, approvals: Approvals | None, *, clock: Callable[[], float]) -> None:
        self._history = history
        self._approvals = approvals
        self._clock = clock

    async def taken(
        self, new: NewRun, resume: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Mapping[str, Any]], list[Supplied]]:
        """Return the answers to open questions, and the outcomes of those that the host itself had asked. Raises
        HostError."""
        if not resume:
            return [], []
        asked, end = await self._history.interrupts(new.session_id, new.view)
        entries, odd = answers_to(resume, asked, self._clock())
        for remark in odd:
            log.warning("an answer was passed over", action="run.resume", session_id=new.session_id, reason=remark)
        ours = approvals_in(end)
        return entries, [
            await self._decided(new, ours[name], entry) for entry in entries if (name := _id(entry)) in ours
        ]

    async def _decided(self, new: NewRun, action: str, entry: Mapping[str, Any]) -> Supplied:
        """Grant or deny one of the host's own approvals; granting performs it."""
        approval_id, yes = _id(entry), _is_yes(entry)
        if self._approvals is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such approval")
        approval = await self._approvals.get(new.principal, approval_id)
        if approval.status(self._clock()) == "pending":  # otherwise an earlier decision counts
            approval = await self._approvals.decide(new.principal, approval_id, "granted" if yes else "denied")
        outcome = {"status": approval.outcome(self._clock())}
        data = {"tool_call_id": approval_id, "tool_name": action, "result": outcome}
        return Supplied(f"{approval_id}:result", {"type": "tool.call.completed", "data": data})


def continued(answers: Sequence[Supplied], resume: Sequence[Mapping[str, Any]]) -> RunEvent:
    calls = [answer.payload["data"]["tool_call_id"] for answer in answers]
    data = {"tool_call_ids": calls, "interrupt_ids": [_id(entry) for entry in resume]}
    return RunEvent(event_type=CONTINUED, data={name: ids for name, ids in data.items() if ids})


def _id(entry: Mapping[str, Any]) -> str:
    return str(entry["interruptId"])


def _is_yes(entry: Mapping[str, Any]) -> bool:
    payload = entry.get("payload")
    approved = cast("Mapping[str, Any]", payload).get("approved") if isinstance(payload, dict) else None
    return entry["status"] == "resolved" and approved is True
