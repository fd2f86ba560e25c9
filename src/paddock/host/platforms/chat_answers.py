"""Answers in the chat of a platform to the questions of a run. Only the person who was asked can answer.

A choice arrives as an event of its own. On a platform that shows only text, a plain yes or no answers too. Where the
platform did not say who started the run, nobody in the chat is known to be the one who was asked, so nobody there can
answer.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from paddock.host.conversations.client_history import INPUTS, ClientHistory, data_of
from paddock.host.conversations.client_runs import Answers, continued
from paddock.host.session.arrivals import NewRun
from paddock.ports import ConversationRecords
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import StoredFact
from paddock.rules.log.payloads import as_object, from_payload
from paddock.rules.platforms.chat_questions import Submission, as_consent, consents, declined, entries, is_yes_or_no
from paddock.rules.run.results import approvals_in, questions_in
from paddock.rules.values import Value, replace

HANDED_OVER = "CONTROL:HANDOVER_CONTEXT"
MAX_STEPS = 256
"""How many facts are read to find who started a run."""
NOTHING_OPEN = "no question is open in this conversation; answer by a message"
NOT_ASKED = "somebody else was asked this; only they can answer it"
NOBODY_ASKED = (
    "it is not known who was asked this, so nobody can answer it in the chat; whoever the conversation belongs to can, "
    "elsewhere. A platform says who speaks by the actor of its events"
)


class OpenQuestions(Value, frozen=True):
    """The open questions of a session, and who may answer them."""

    questions: Sequence[Mapping[str, Any]]
    ours: frozenset[str]
    """Ids of the questions that the host asks."""
    agent_id: str
    asked: Mapping[str, Any] | None
    """Who on the platform was asked; None when that is not known, and then nobody may answer in the chat."""

    def asks(self, actor: Mapping[str, Any] | None) -> bool:
        return self.asked is not None and actor is not None and _same(actor, self.asked)


class ChatAnswers:
    def __init__(self, records: ConversationRecords, history: ClientHistory, answers: Answers) -> None:
        self._records = records
        self._history = history
        self._answers = answers

    async def submitted(self, new: NewRun, given: Sequence[Submission]) -> NewRun:
        """The run that goes on with submitted choices. Raises CONFLICT, UNAUTHORIZED or INVALID_ARGUMENT."""
        open_ones = await self._open(new)
        if open_ones is None:
            raise HostError(ErrorCode.CONFLICT, NOTHING_OPEN)
        if not open_ones.asks(_actor(new)):
            raise HostError(ErrorCode.UNAUTHORIZED, NOBODY_ASKED if open_ones.asked is None else NOT_ASKED)
        resume, outcomes = await self._answers.taken(new, entries(given, open_ones.questions))
        happened = continued(outcomes, resume)
        event = None if new.event is None else replace(new.event, data={**new.event.data, **happened.data})
        return replace(_resumed(new, resume), agent_id=open_ones.agent_id, supplied=outcomes, event=event)

    async def message(self, new: NewRun, bot_id: str | None = None) -> NewRun:
        """The run for a message. A plain yes or no of the person who was asked answers the open questions.

        `bot_id` is the agent that the platform names; what is said to another one than the one that asks is not about
        the question.
        """
        open_ones = await self._open(new)
        if open_ones is None or bot_id not in {None, open_ones.agent_id}:
            return new
        if not open_ones.asks(_actor(new)):
            return _unanswered(new, open_ones)
        yes = as_consent(new.text)
        if yes is None or not all(map(is_yes_or_no, open_ones.questions)):
            return new
        resume, outcomes = await self._answers.taken(new, consents(open_ones.questions, yes))
        return replace(_resumed(new, resume), agent_id=open_ones.agent_id, supplied=outcomes)

    async def event(self, new: NewRun) -> NewRun:
        """The run for any other event, which is no answer, whatever words it brings."""
        open_ones = await self._open(new)
        if open_ones is None or new.agent_id != open_ones.agent_id or open_ones.asks(_actor(new)):
            return new
        return _unanswered(new, open_ones)

    # --- open questions ----------------------------------------------------------------------------------------------

    async def _open(self, new: NewRun) -> OpenQuestions | None:
        session_id = new.session_id
        end = await self._history.last_end(session_id, new.view)
        questions = questions_in(data_of(end)) if end is not None else []
        run = await self._records.run(end.turn_id or "") if end is not None and questions else None
        if end is None or run is None:
            return None
        origin = await self._origin(session_id, run.first_seq)
        event = from_payload(as_object(as_object(origin.read_payload()).get("run"))) if origin is not None else None
        ours = frozenset(approvals_in(data_of(end)))
        return OpenQuestions(questions, ours, run.agent_id, event.actor if event is not None else None)

    async def _origin(self, session_id: str, seq: int) -> StoredFact | None:
        """The input that led to a run: skips other facts at its beginning, and follows handovers back."""
        for _ in range(MAX_STEPS):
            fact = await self._records.fact(session_id, seq)
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


def _unanswered(new: NewRun, open_ones: OpenQuestions) -> NewRun:
    """Decline the questions of runners, which must not take the words of somebody else for an answer."""
    return _resumed(new, declined([one for one in open_ones.questions if str(one["id"]) not in open_ones.ours]))


def _resumed(new: NewRun, resume: Sequence[Mapping[str, Any]]) -> NewRun:
    return replace(new, params={**new.params, "resume": list(resume)}) if resume else new


def _actor(new: NewRun) -> Mapping[str, Any] | None:
    return new.event.actor if new.event is not None else None


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(one.get(name) == other.get(name) for name in ("actor_type", "actor_id"))
