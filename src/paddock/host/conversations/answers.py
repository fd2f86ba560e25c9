"""A person's answers to the questions with which a run ended: matched to what is open, and the host's own decided.

Knows no dialect and no platform. What comes of it is put on record with the run that goes on.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import structlog

from paddock.host.conversations.client_history import ClientHistory
from paddock.host.people.approvals import Approvals
from paddock.host.session.arrivals import NewRun
from paddock.rules.conversations.client_history import Supplied
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.run.events import CONTINUED, RunEvent
from paddock.rules.run.open_calls import answers_to, approvals_in

log = structlog.get_logger("paddock.answers")


class Answers:
    def __init__(self, history: ClientHistory, approvals: Approvals | None, *, clock: Callable[[], float]) -> None:
        self._history = history
        self._approvals = approvals
        self._clock = clock

    async def taken(
        self, new: NewRun, resume: Sequence[Mapping[str, Any]]
    ) -> tuple[list[Mapping[str, Any]], list[Supplied]]:
        """The answers to open questions, and what came of those that the host itself had asked. Raises HostError."""
        if not resume:
            return [], []
        asked, end = await self._history.interrupts(new.thread_id, new.view)
        entries, odd = answers_to(resume, asked, self._clock())
        for remark in odd:
            log.warning("an answer was passed over", action="run.resume", session_id=new.thread_id, reason=remark)
        ours = approvals_in(end)
        return entries, [
            await self._decided(new, ours[name], entry) for entry in entries if (name := _id(entry)) in ours
        ]

    async def _decided(self, new: NewRun, action: str, entry: Mapping[str, Any]) -> Supplied:
        """One of the host's own approvals: granted, which does it, or denied."""
        approval_id, yes = _id(entry), _is_yes(entry)
        if self._approvals is None:
            raise HostError(ErrorCode.NOT_FOUND, "there is no such approval")
        approval = await self._approvals.get(new.principal, approval_id)
        if approval.status(self._clock()) == "pending":  # else it was decided elsewhere meanwhile, and that counts
            approval = await self._approvals.decide(new.principal, approval_id, "granted" if yes else "denied")
        outcome = {"status": approval.outcome(self._clock())}
        data = {"tool_call_id": approval_id, "tool_name": action, "result": outcome}
        return Supplied(f"{approval_id}:result", {"type": "tool.call.completed", "data": data})


def continued(answers: Sequence[Supplied], resume: Sequence[Mapping[str, Any]]) -> RunEvent:
    """Event of an input that only answers questions."""
    calls = [answer.payload["data"]["tool_call_id"] for answer in answers]
    data = {"tool_call_ids": calls, "interrupt_ids": [_id(entry) for entry in resume]}
    return RunEvent(event_type=CONTINUED, data={name: ids for name, ids in data.items() if ids})


def _id(entry: Mapping[str, Any]) -> str:
    return str(entry["interruptId"])


def _is_yes(entry: Mapping[str, Any]) -> bool:
    payload = entry.get("payload")
    approved = cast("Mapping[str, Any]", payload).get("approved") if isinstance(payload, dict) else None
    return entry["status"] == "resolved" and approved is True
