"""Calls and questions that a run left open when it ended, for its client or a person to answer. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.outputs import as_object
from paddock.rules.values import Value

MAX_NAMED = 10
APPROVALS = "approvals"
"""In the end of a run: actions that wait for the user's word. The host writes it, never a runner."""


class Interrupt(Value, frozen=True):
    """A question with which a run ended; the next run brings the answer."""

    interrupt_id: str
    expires_at: float | None = None


def questions_in(data: Mapping[str, Any]) -> list[Mapping[str, object]]:
    """The questions of a run that completed: the runner's own and the host's, each name once. One without a name
    cannot be answered and is left out; where both use a name, it is the host's."""
    if "interrupts" not in data and APPROVALS not in data:
        return []
    given = [*_objects(data.get("interrupts")), *_objects(data.get(APPROVALS))]
    return list({str(raw["id"]): raw for raw in given if isinstance(raw.get("id"), str)}.values())


def interrupts_in(data: Mapping[str, Any]) -> list[Interrupt]:
    return [_interrupt(raw) for raw in questions_in(data)]


def approvals_in(data: Mapping[str, Any]) -> dict[str, str]:
    """Those that the host asks: the approval each stands for, and its action."""
    return {str(raw["id"]): str(raw.get("action") or "") for raw in _objects(data.get(APPROVALS)) if "id" in raw}


def with_approvals(data: Mapping[str, Any], waiting: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The end of a run with what of it waits for its user: only the host says so."""
    said = {name: value for name, value in data.items() if name != APPROVALS}
    return {**said, APPROVALS: list(waiting)} if waiting else said


def _interrupt(raw: Mapping[str, object]) -> Interrupt:
    expires = raw.get("expires_at")
    return Interrupt(str(raw["id"]), float(expires) if isinstance(expires, int | float) else None)


def pending_in(data: Mapping[str, Any]) -> set[str]:
    """Calls that wait for the client's own answer: not those that wait for a person's word first."""
    given = data.get("pending_tool_call_ids")
    ids = {str(one) for one in cast("list[object]", given)} if isinstance(given, list) else set[str]()
    return ids - {str(raw.get("tool_call_id")) for raw in _objects(data.get("interrupts"))}


def _objects(given: object) -> Iterable[Mapping[str, object]]:
    return map(as_object, cast("list[object]", given) if isinstance(given, list) else ())


def answers_to(
    entries: Sequence[Mapping[str, Any]], asked: Sequence[Interrupt], now: float
) -> tuple[list[Mapping[str, Any]], list[str]]:
    """The client's answers to open questions, and what was odd about them. All questions must be answered at once.

    Raises HostError. After its time a question can only be declined.
    """
    known = {one.interrupt_id: one for one in asked}
    taken = {entry["interruptId"]: entry for entry in entries if entry["interruptId"] in known}
    if missing := [name for name in known if name not in taken]:
        listed = ", ".join(missing[:MAX_NAMED])
        text = f"resume must answer every open interrupt of the last run; these are missing: {listed}"
        raise HostError(ErrorCode.INVALID_ARGUMENT, text)
    odd = [
        f"no interrupt {entry['interruptId'][:64]!r} is open" for entry in entries if entry["interruptId"] not in known
    ]
    late = [name for name, one in known.items() if _is_over(one, now) and taken[name]["status"] == "resolved"]
    odd += [f"interrupt {name[:64]!r} has expired and counts as cancelled" for name in late]
    declined = {name: {"interruptId": name, "status": "cancelled"} for name in late}
    return list({**taken, **declined}.values()), odd


def _is_over(one: Interrupt, now: float) -> bool:
    return one.expires_at is not None and one.expires_at < now
