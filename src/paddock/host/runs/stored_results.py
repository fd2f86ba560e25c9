"""Results as a conversation stores them: files by reference, cards compiled, titles without their words.

A title that an agent suggests never replaces one that people gave. Its words are kept with the conversation and not in
the log, where they could not be erased with the message they came from. Hints for cards are compiled once. The log
holds what a button stands for, under a name nobody can guess; clients see the name only. Hints never make a run fail:
those that cannot be drawn are left out and logged for the agent's author.
"""

import secrets
from collections.abc import Mapping
from typing import Any

import structlog

from paddock.rules.access.permissions import Grant
from paddock.rules.log.payloads import as_object
from paddock.rules.rows.rows import AuditRow, Row, SessionDetailsRow
from paddock.rules.run.results import Result
from paddock.rules.ui_schema.actions import renamed
from paddock.rules.ui_schema.compile_budget import DEFAULT
from paddock.rules.ui_schema.compiler import COMPILER, compile_hints
from paddock.rules.values import replace

log = structlog.get_logger("paddock.ui")

TITLE_ACTION = "session.title"
MAX_CHARS = 80
READ_CHARS = 4_000
"""Characters of a suggestion that are read."""


def suggested(grant: Grant, result: Result, now: float) -> tuple[Result, list[Row]]:
    """Return a suggested title's result without its words, and the rows to write with it."""
    at, title = grant.scope, title_in(result.data)
    verdict = ("allowed", "kept unless there is one") if title else ("invalid_argument", "it has no words")
    audit = AuditRow(
        time=now,
        workspace_id=at.workspace_id,
        actor=f"agent:{at.agent_id}",
        action=TITLE_ACTION,
        resource=at.session_id,
        scope=at.session_id,
        result=verdict[0],
        reason=verdict[1],
        run_id=at.run_id,
        runner_id=grant.runner_id,
        session_id=at.session_id,
    )
    kept = [SessionDetailsRow(at.session_id, title=title, suggested=True)] if title else []
    data: dict[str, Any] = {"action": TITLE_ACTION, "target": {}, "payload": {}}
    return Result(result.run_id, result.type, data, result.sequence, result.timestamp), [*kept, audit]


def title_in(data: Mapping[str, Any]) -> str:
    """Return a suggested title on one line, cut; empty when there is none."""
    given = as_object(data.get("payload")).get("title")
    shown = (
        "".join(char if char.isprintable() else " " for char in given[:READ_CHARS]) if isinstance(given, str) else ""
    )
    words = " ".join(shown.split())
    return words if len(words) <= MAX_CHARS else words[: MAX_CHARS - 1].rstrip() + "…"


def repeats(title: str, content: str) -> bool:
    words = title.removesuffix("…").strip()
    return bool(words) and words in " ".join(content.split())


HINTS, DOCUMENT, ACTIONS, VERSION = "ui_hints", "ui_schema", "ui_actions", "ui_compiler"
HOST_FIELDS = frozenset({DOCUMENT, ACTIONS, VERSION})
"""Fields that only the host may set; a runner's are dropped."""
MAX_NOTES = 10
LIMITS = replace(DEFAULT, bytes=DEFAULT.bytes - 2048)
"""Names of actions are longer here than the compiler's own, and metadata is added to the document."""


def with_compiled_ui(result: Result, locale: str, meta: Mapping[str, str]) -> Result:
    """Return a finished message with the document compiled from its hints, and without fields that only the host may
    set. `meta` is the document's metadata."""
    data: dict[str, Any] = {name: value for name, value in result.data.items() if name not in HOST_FIELDS}
    if data.get(HINTS) is not None:
        data |= _compiled(result.run_id, data[HINTS], locale, meta)
    return Result(result.run_id, result.type, data, result.sequence, result.timestamp)


def _compiled(run_id: str, hints: object, locale: str, meta: Mapping[str, str]) -> Mapping[str, Any]:
    compiled = compile_hints(hints, locale=locale, limits=LIMITS)
    if compiled.notes:
        notes = list(compiled.notes[:MAX_NOTES])
        log.warning("hints were left out of a card", action="ui.compile", run_id=run_id, notes=notes)
    if compiled.document is None:
        return {}
    names = {ref: f"{run_id}.{secrets.token_urlsafe(16)}" for ref in compiled.actions}
    actions = {names[ref]: action for ref, action in compiled.actions.items()}
    document = renamed(compiled.document, names) if names else compiled.document
    return {DOCUMENT: {**document, "meta": meta}, VERSION: COMPILER, **({ACTIONS: actions} if actions else {})}
