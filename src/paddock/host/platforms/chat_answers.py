"""Answers that people give in the chat of a platform to what a run asked there. Only whoever was asked can answer.

A choice that was taken comes as an event of its own; where a platform shows nothing but text, a plain yes or no counts.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paddock.host.conversations.answers import Answers, continued
from paddock.host.conversations.client_history import INPUTS, ClientHistory, data_of
from paddock.host.session.arrivals import NewRun
from paddock.ports import ConversationRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import StoredFact
from paddock.rules.platforms.chat_questions import Submission, as_consent, consents, declined, entries, is_yes_or_no
from paddock.rules.run.events import RunEvent, from_payload
from paddock.rules.run.open_calls import approvals_in, questions_in
from paddock.rules.run.outputs import as_object
from paddock.rules.values import Value, replace

HANDED_OVER = "CONTROL:HANDOVER_CONTEXT"
MAX_STEPS = 256
"""Facts that are looked at to find who started a run."""
NOTHING_OPEN = "nothing that is asked in this conversation is still open; answer by a message"
NOT_ASKED = "somebody else was asked this; only they can answer it"


class Open(Value, frozen=True):
    """Open questions of a session: which, by whom and of whom."""

    questions: Sequence[Mapping[str, Any]]
    ours: frozenset[str]
    """Those that the host asks."""
    agent_id: str
    actor: Mapping[str, Any] | None
    """Who may answer; None when the platform did not say who spoke: then whoever it lets speak."""
    known: bool
    """Whether that could be found out; if not, nobody may answer in the chat."""

    def asks(self, actor: Mapping[str, Any] | None) -> bool:
        return self.known and (self.actor is None or (actor is not None and _same(actor, self.actor)))


class ChatAnswers:
    def __init__(self, records: ConversationRecords, history: ClientHistory, answers: Answers) -> None:
        self._records = records
        self._history = history
        self._answers = answers

    async def submitted(self, new: NewRun, given: Sequence[Submission]) -> NewRun:
        """The run that goes on because choices were taken. Raises CONFLICT, UNAUTHORIZED, INVALID_ARGUMENT."""
        there = await self._open(new)
        if there is None:
            raise HostError(ErrorCode.CONFLICT, NOTHING_OPEN)
        if not there.asks(_actor(new)):
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_ASKED)
        resume, outcomes = await self._answers.taken(new, entries(given, there.questions))
        happened = continued(outcomes, resume)
        event = None if new.event is None else replace(new.event, data={**new.event.data, **happened.data})
        return replace(_resumed(new, resume), agent_id=there.agent_id, supplied=outcomes, event=event)

    async def said(self, new: NewRun) -> NewRun:
        """A message; one that is a plain yes or no answers what is open, if it is of whoever was asked.

        Words of anybody else are none, whatever they are: a runner that reads them must not take them for one.
        """
        there = await self._open(new)
        if there is None:
            return new
        if not there.asks(_actor(new)):
            return _resumed(new, declined([one for one in there.questions if str(one["id"]) not in there.ours]))
        yes = as_consent(new.text)
        if yes is None or not all(map(is_yes_or_no, there.questions)):
            return new
        resume, outcomes = await self._answers.taken(new, consents(there.questions, yes))
        return replace(_resumed(new, resume), agent_id=there.agent_id, supplied=outcomes)

    # --- what is open ------------------------------------------------------------------------------------------------

    async def _open(self, new: NewRun) -> Open | None:
        thread_id = new.thread_id
        end = await self._history.last_end(thread_id, new.view)
        questions = questions_in(data_of(end)) if end is not None else []
        run = await self._records.run(end.turn_id or "") if end is not None and questions else None
        if end is None or run is None:
            return None
        origin = await self._origin(thread_id, run.first_seq)
        event = _event(origin) if origin is not None else None
        ours = frozenset(approvals_in(data_of(end)))
        return Open(questions, ours, run.agent_id, event.actor if event is not None else None, event is not None)

    async def _origin(self, thread_id: str, seq: int) -> StoredFact | None:
        """The input a run goes back to: past what came along with it, and through those who handed over."""
        for _ in range(MAX_STEPS):
            fact = await self._records.fact(thread_id, seq)
            if fact is None or fact.kind in INPUTS:
                return fact
            if fact.kind != HANDED_OVER:
                seq += 1
                continue
            run = await self._records.run(str(as_object(fact.read_payload()).get("parent_turn_id")))
            if run is None:
                return None
            seq = run.first_seq
        return None


def _event(origin: StoredFact) -> RunEvent | None:
    """Event of a platform; None for a run that was asked for elsewhere."""
    return from_payload(as_object(as_object(origin.read_payload()).get("run")))


def _resumed(new: NewRun, resume: Sequence[Mapping[str, Any]]) -> NewRun:
    return replace(new, params={**new.params, "resume": list(resume)}) if resume else new


def _actor(new: NewRun) -> Mapping[str, Any] | None:
    return new.event.actor if new.event is not None else None


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in ("actor_type", "actor_id"))
