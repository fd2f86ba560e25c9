"""Hints of an agent about how to show its message, compiled once, when the message is taken in.

What a button stands for stays in the log beside the document, under a name nobody can guess; clients see the name
only. Hints are never a reason for a run to fail: what cannot be drawn is left out, and the agent's author finds out why
in the host's log.
"""

import secrets
from collections.abc import Mapping
from typing import Any

import structlog

from paddock.rules.run.results import Result
from paddock.rules.ui_schema import COMPILER, DEFAULT, compile_hints
from paddock.rules.ui_schema.actions import renamed
from paddock.rules.values import replace

HINTS, DOCUMENT, ACTIONS, VERSION = "ui_hints", "ui_schema", "ui_actions", "ui_compiler"
HOST_FIELDS = frozenset({DOCUMENT, ACTIONS, VERSION})
"""Only the host may say these: what a runner puts there is dropped."""
NOTES_TOLD = 10
LIMITS = replace(DEFAULT, bytes=DEFAULT.bytes - 2048)
"""Names of actions are longer here than the compiler's own, and what a document belongs to is added to it."""

log = structlog.get_logger("paddock.ui")


def with_compiled_ui(result: Result, locale: str, meta: Mapping[str, str]) -> Result:
    """A finished message with the document its hints lead to, and without what only the host may say. `meta` tells in
    the document what it belongs to."""
    data: dict[str, Any] = {name: value for name, value in result.data.items() if name not in HOST_FIELDS}
    if data.get(HINTS) is not None:
        data |= _compiled(result.run_id, data[HINTS], locale, meta)
    return Result(result.run_id, result.type, data, result.sequence, result.timestamp)


def _compiled(run_id: str, hints: object, locale: str, meta: Mapping[str, str]) -> Mapping[str, Any]:
    compiled = compile_hints(hints, locale=locale, limits=LIMITS)
    if compiled.notes:
        told = list(compiled.notes[:NOTES_TOLD])
        log.warning("hints were left out of a card", action="ui.compile", run_id=run_id, notes=told)
    if compiled.document is None:
        return {}
    names = {ref: f"{run_id}.{secrets.token_urlsafe(16)}" for ref in compiled.actions}
    actions = {names[ref]: action for ref, action in compiled.actions.items()}
    document = renamed(compiled.document, names) if names else compiled.document
    return {DOCUMENT: {**document, "meta": meta}, VERSION: COMPILER, **({ACTIONS: actions} if actions else {})}
