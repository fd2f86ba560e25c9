"""Titles of conversations that agents suggest with the action `session.title`. One that people gave is never replaced.

The words of a title are kept with the conversation and not in its log: there they could not be erased with the message
they came from.
"""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import structlog

from paddock.ports import Records
from paddock.rules.errors import HostError, StorageUnavailableError
from paddock.rules.outputs import as_object
from paddock.rules.permissions import Grant
from paddock.rules.results import Result
from paddock.rules.rows import AuditRow, SessionDetailsRow

TITLE_ACTION = "session.title"
MAX_CHARS = 80
WRITE_SECONDS = 10.0

log = structlog.get_logger("paddock.titles")


class Titles:
    def __init__(self, records: Records, clock: Callable[[], float]) -> None:
        self._records = records
        self._clock = clock

    async def suggested(self, grant: Grant, result: Result) -> Result:
        """The result as the conversation may hold it: that a title was suggested, not which. Never raises."""
        title = title_in(result.data)
        try:
            async with asyncio.timeout(WRITE_SECONDS):
                await self._write(grant, title)
        except (HostError, StorageUnavailableError, TimeoutError) as error:
            log.warning("a title could not be kept", action=TITLE_ACTION, run_id=result.run_id, reason=str(error))
        data: dict[str, Any] = {"action": TITLE_ACTION, "target": {}, "payload": {}}
        return Result(result.run_id, result.type, data, result.sequence, result.timestamp)

    async def _write(self, grant: Grant, title: str) -> None:
        at = grant.scope
        verdict = ("allowed", "kept unless there is one") if title else ("invalid_argument", "it has no words")
        audit = AuditRow(
            time=self._clock(),
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
        await self._records.write([*kept, audit])


def title_in(data: Mapping[str, Any]) -> str:
    """The words of a suggestion on one line, cut; empty when there are none."""
    given = as_object(data.get("payload")).get("title")
    shown = "".join(char if char.isprintable() else " " for char in given) if isinstance(given, str) else ""
    words = " ".join(shown.split())
    return words if len(words) <= MAX_CHARS else words[: MAX_CHARS - 1].rstrip() + "…"


def repeats(title: str, content: str) -> bool:
    """Whether a title is made of the words of a message."""
    words = title.removesuffix("…").strip()
    return bool(words) and words in " ".join(content.split())
