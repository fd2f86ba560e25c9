"""Answers of a host as values with short names, made from the generated shapes in `types.py`.

Fields that have no place here, and those that a newer host adds, are kept in `more`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from paddock_sdk.client import types


class RunFailedError(Exception):
    """The run ended without an answer: it failed, or somebody cancelled it."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Accepted:
    """The run is on record."""

    task_id: str
    thread_id: str
    run_id: str
    created: bool


@dataclass(frozen=True, slots=True)
class Run:
    task_id: str
    thread_id: str
    run_id: str
    status: str
    """queued, running, completed, failed or cancelled"""
    agent_id: str = ""
    code: str = ""
    message: str = ""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])

    @property
    def ended(self) -> bool:
        return self.status in {"completed", "failed", "cancelled"}


@dataclass(frozen=True, slots=True)
class HistoryMessage:
    id: str
    seq: int
    role: str
    content: str
    timestamp: str
    agent_id: str = ""
    attachments: Sequence[types.HistoryFile] = ()
    ui_schema: Mapping[str, Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    erased: bool = False
    """Its words were erased on purpose; `content` is empty."""


@dataclass(frozen=True, slots=True)
class HistoryDay:
    """One day of a conversation; empty when `day` is None."""

    thread_id: str | None
    day: str | None
    has_more: bool
    messages: Sequence[HistoryMessage]


@dataclass(frozen=True, slots=True)
class Session:
    thread_id: str
    title: str
    archived: bool
    closed: bool
    items: int
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    automation_id: str = ""
    """The job that talks in it, if one does."""


@dataclass(frozen=True, slots=True)
class FoundSession:
    """A conversation that answers a search, and the line of it that does."""

    session: Session
    in_title: bool
    item_id: str = ""
    """The newest message that has all the words; empty when only the title has them."""
    role: str = ""
    snippet: str = ""
    pieces: Sequence[tuple[str, bool]] = ()
    """The snippet, cut into what was looked for and what stands around it."""


@dataclass(frozen=True, slots=True)
class FoundPage:
    """The conversation opened last comes first; `next` is where the next page goes on, None when there is none."""

    sessions: Sequence[FoundSession]
    next: int | None
    complete: bool
    """False while older conversations are still on their way into the index: ask again a moment later."""


@dataclass(frozen=True, slots=True)
class Me:
    user_id: str
    workspace_id: str
    role: str
    timezone: str | None
    locale: str | None


def accepted(given: types.Accepted) -> Accepted:
    return Accepted(given["taskId"], given["threadId"], given["runId"], given["created"])


def run(given: types.Run) -> Run:
    known = {"task_id": "taskId", "thread_id": "threadId", "run_id": "runId", "status": "status"}
    known |= {"agent_id": "agentId", "code": "code", "message": "message"}
    values = {name: given.get(wire) or "" for name, wire in known.items()}
    return Run(**values, more=_others(given, known.values()))


def history_day(given: types.HistoryDay) -> HistoryDay:
    messages = [_message(one) for one in given["messages"]]
    return HistoryDay(given["threadId"], given["day"], given["hasMore"], messages)


def _message(given: types.SaidByUser | types.SaidByAgent) -> HistoryMessage:
    plain = ("id", "seq", "role", "content", "timestamp")
    return HistoryMessage(
        id=given["id"],
        seq=given["seq"],
        role=given["role"],
        content=given["content"],
        timestamp=given["timestamp"],
        agent_id=given.get("agentId") or "",
        attachments=given.get("attachments") or (),
        ui_schema=given.get("ui_schema"),
        more=_others(given, (*plain, "agentId", "attachments", "ui_schema", "erased")),
        erased=given.get("erased") is True,
    )


def session(given: types.SessionEntry) -> Session:
    known = ("threadId", "title", "archived", "closed", "items", "automationId")
    return Session(
        given["threadId"],
        given.get("title") or "",
        given["archived"],
        given["closed"],
        given["items"],
        more=_others(given, known),
        automation_id=given.get("automationId") or "",
    )


def found_page(given: types.SessionList) -> FoundPage:
    return FoundPage([_found(one) for one in given["sessions"]], given["next"], given.get("complete", True))


def _found(given: types.SessionEntry) -> FoundSession:
    where = cast("Mapping[str, Any]", given.get("found") or {})
    message = cast("Mapping[str, Any]", where.get("message") or {})
    shown = cast("Sequence[Mapping[str, Any]]", message.get("snippet") or where.get("title") or ())
    pieces = [(str(piece["text"]), bool(piece["hit"])) for piece in shown]
    return FoundSession(
        session(given),
        in_title="title" in where,
        item_id=message.get("itemId", ""),
        role=message.get("role", ""),
        snippet="".join(words for words, _ in pieces),
        pieces=pieces,
    )


def me(given: types.Me) -> Me:
    settings = given["profile"]["settings"]
    return Me(given["userId"], given["workspaceId"], given["role"], settings["timezone"], settings["locale"])


def _others(given: Mapping[str, Any], known: Any) -> dict[str, Any]:
    named = set(known)
    return {name: value for name, value in given.items() if name not in named}
