"""Titles of conversations that agents suggest with the action `session.title`. One that people gave is never replaced.

The words of a title are kept with the conversation and not in its log: there they could not be erased with the message
they came from.
"""

from collections.abc import Mapping
from typing import Any

from paddock.rules.access.permissions import Grant
from paddock.rules.rows.rows import AuditRow, Row, SessionDetailsRow
from paddock.rules.run.outputs import as_object
from paddock.rules.run.results import Result

TITLE_ACTION = "session.title"
MAX_CHARS = 80
READ_CHARS = 4_000
"""Of a suggestion."""


def suggested(grant: Grant, result: Result, now: float) -> tuple[Result, list[Row]]:
    """The result as the conversation may hold it, that a title was suggested and not which; and what is written
    with it."""
    at, title = grant.scope, title_in(result.data)
    verdict = ("allowed", "kept unless there is one") if title else ("invalid_argument", "it has no words")
    audit = AuditRow(
        time=now,
        workspace_id=at.workspace_id,
        actor=f"agent:{at.agent_id}",
        action=TITLE_ACTION,
        resource=at.conversation_id,
        scope=at.conversation_id,
        result=verdict[0],
        reason=verdict[1],
        run_id=at.run_id,
        runner_id=grant.runner_id,
        session_id=at.conversation_id,
    )
    kept = [SessionDetailsRow(at.conversation_id, title=title, suggested=True)] if title else []
    data: dict[str, Any] = {"action": TITLE_ACTION, "target": {}, "payload": {}}
    return Result(result.run_id, result.type, data, result.sequence, result.timestamp), [*kept, audit]


def title_in(data: Mapping[str, Any]) -> str:
    """The words of a suggestion on one line, cut; empty when there are none."""
    given = as_object(data.get("payload")).get("title")
    shown = (
        "".join(char if char.isprintable() else " " for char in given[:READ_CHARS]) if isinstance(given, str) else ""
    )
    words = " ".join(shown.split())
    return words if len(words) <= MAX_CHARS else words[: MAX_CHARS - 1].rstrip() + "…"


def repeats(title: str, content: str) -> bool:
    """Tell if a title is made of the words of a message."""
    words = title.removesuffix("…").strip()
    return bool(words) and words in " ".join(content.split())
