"""Questions that a run leaves to a person, as a chat platform shows them, and what counts as an answer there. Pure.

The words are those of chat hosts: an interaction is requested, and submitted with one of its actions.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.payloads import as_object
from paddock.rules.run.results import approvals_in, questions_in
from paddock.rules.values import Value, nothing

SUBMITTED = "interaction.submitted"
"""The event with which a platform hands an answer back."""
MAX_TITLE = 1000
MAX_SHOWN = 500
"""Characters of what an action would do, in words."""
APPROVE, DENY, CANCEL = "approve", "deny", "cancel"
CHOICES = (
    {"id": APPROVE, "label": "Approve", "style": "primary"},
    {"id": DENY, "label": "Deny", "style": "danger"},
)
HOW = "Answer yes or no."
_END = r"[\s.!。！]*"
_YES = re.compile(
    rf"\s*(?:yes|y|ok|okay|approve|approved|go ahead|do it|sure|是|好|好的|可以|同意|批准){_END}", re.IGNORECASE
)
_NO = re.compile(rf"\s*(?:no|n|deny|denied|do not|don't|stop|cancel|不|不要|不行|否|拒绝|取消){_END}", re.IGNORECASE)
_encode = msgspec.json.Encoder(order="deterministic").encode


class Submission(Value, frozen=True):
    """One answer as a platform hands it in; without an id it answers all that is open."""

    interaction_id: str | None = None
    action_id: str | None = None
    values: Mapping[str, Any] = nothing


def interactions(end: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The questions in the end of a run, for a platform that can show choices."""
    return [_interaction(question) for question in questions_in(end)]


def host_words(end: Mapping[str, Any]) -> str:
    """Put the host's own questions into words, for a platform that shows only text; empty without any.

    What a runner asks it has said in its own words: only it knows how.
    """
    ours = approvals_in(end)
    return words([question for question in questions_in(end) if str(question["id"]) in ours])


def words(questions: Sequence[Mapping[str, Any]]) -> str:
    lines = [_line(question) for question in questions]
    if not lines:
        return ""
    return "\n".join([*lines, HOW] if all(map(is_yes_or_no, questions)) else lines)


def is_yes_or_no(question: Mapping[str, Any]) -> bool:
    """Return true if a yes or no answers the question: it asks for `approved`, or has no schema."""
    schema = as_object(question.get("response_schema"))
    return not schema or as_object(as_object(schema.get("properties")).get("approved")).get("type") == "boolean"


def as_consent(text: str) -> bool | None:
    """Read a whole message as yes or no; None for everything else."""
    if _YES.fullmatch(text):
        return True
    return False if _NO.fullmatch(text) else None


def consents(questions: Sequence[Mapping[str, Any]], yes: bool) -> list[dict[str, Any]]:
    return [_resolved(str(question["id"]), {"approved": yes}) for question in questions]


def declined(questions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [{"interruptId": str(question["id"]), "status": "cancelled"} for question in questions]


def entries(given: Sequence[Submission], questions: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Turn submissions into answers to open questions. Raises INVALID_ARGUMENT, CONFLICT."""
    known = {str(question["id"]): question for question in questions}
    found: dict[str, dict[str, Any]] = {}
    for one in given:
        if one.interaction_id is not None and one.interaction_id not in known:
            text = f"interaction {one.interaction_id[:64]!r} is not open in this conversation any more"
            raise HostError(ErrorCode.CONFLICT, text)
        for name in [one.interaction_id] if one.interaction_id is not None else list(known):
            found[name] = _entry(name, one, known[name])
    return list(found.values())


def _entry(name: str, given: Submission, question: Mapping[str, Any]) -> dict[str, Any]:
    match given.action_id:
        case "approve" | "deny" if is_yes_or_no(question):
            return _resolved(name, {**given.values, "approved": given.action_id == APPROVE})
        case "cancel":
            return {"interruptId": name, "status": "cancelled"}
        case None if given.values:
            return _resolved(name, dict(given.values))
        case _:
            wanted = "action_id approve or deny" if is_yes_or_no(question) else "values as its response_schema says"
            text = f"interaction {name[:64]!r} wants {wanted}, or action_id cancel"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)


def _resolved(name: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"interruptId": name, "status": "resolved", "payload": payload}


def _interaction(question: Mapping[str, Any]) -> dict[str, Any]:
    confirms = is_yes_or_no(question)
    told = {
        "interaction_id": str(question["id"]),
        "kind": "confirmation" if confirms else "form",
        "title": _title(question),
        "actions": list(CHOICES) if confirms else [],
        "fallback_text": words([question]),
    }
    more = ("expires_at", "tool_call_id", "action", "target", "payload", *(() if confirms else ("response_schema",)))
    return {**told, **{name: question[name] for name in more if question.get(name) is not None}}


def _title(question: Mapping[str, Any]) -> str:
    return str(question.get("message") or question.get("reason") or "The agent has a question")[:MAX_TITLE]


def _line(question: Mapping[str, Any]) -> str:
    about = [question[name] for name in ("target", "payload") if question.get(name)]
    shown = " ".join(_encode(one).decode() for one in about)
    cut = shown if len(shown) <= MAX_SHOWN else f"{shown[:MAX_SHOWN]}…"
    return f"{_title(question)}: {cut}" if cut else _title(question)
