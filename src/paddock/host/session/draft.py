"""Draft of one take: facts, the rows that follow, and the commands to perform afterwards.

A draft works on the memory of the session's owner. When it cannot be written, that memory is thrown away with it.
"""

from collections.abc import Sequence
from functools import partial

from paddock.host.ids import chance
from paddock.host.people.principals import no_such_thread
from paddock.host.runs.created_artifacts import REFUSED
from paddock.host.session.arrivals import (
    Accepted,
    Arrival,
    MessageSubmitted,
    NewRun,
    ResultArrived,
    RunSubmitted,
    owns,
    reject,
    resolve,
    same_answer,
)
from paddock.host.session.draft_facts import DraftFacts
from paddock.host.session.inputs import HANDOVER_ACTION, came_along, handover_wish, rows_of, user_input
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import SALT_BYTES, salted
from paddock.rules.rows.rows import AuditRow, InboxRow, SessionRow, ThreadNameRow
from paddock.rules.run.context import RunInput
from paddock.rules.run.outputs import KNOWN_TYPES
from paddock.rules.run.results import Result
from paddock.rules.session.messages import Agents, Message, OpenRequested, OutputReceived, RunFailed
from paddock.rules.values import replace

JUDGED = frozenset({"state.updated", "artifact.created"})
"""Results that have an effect: each leaves an audit row."""
RECENT_ANSWERS = 4096
"""More than can wait at once: a repeated request whose first is not on record yet finds its answer here."""


class Draft(DraftFacts):
    """One take in the making."""

    __slots__ = ()

    def decide_all(self, arrivals: Sequence[Arrival]) -> None:
        """Decide everything that arrived, in order; results that wait together are heard together."""
        said: list[ResultArrived] = []
        for arrival in arrivals:
            if type(arrival) is ResultArrived:
                if said and said[-1].turn_id != arrival.turn_id:
                    self._hear(said)
                    said = []
                said.append(arrival)
                continue
            if said:
                self._hear(said)
                said = []
            self._take_one(arrival)
        if said:
            self._hear(said)

    def _take_one(self, arrival: RunSubmitted | MessageSubmitted | ResultArrived | Message) -> None:
        match arrival:
            case RunSubmitted():
                self._order(arrival)
            case MessageSubmitted():
                self._ask(arrival)
            case ResultArrived():
                self._hear([arrival])
            case _:
                self.consider(arrival)

    def _ask(self, ask: MessageSubmitted) -> None:
        refusal = self._unasked(ask)
        if refusal is not None:
            self.done.append(partial(reject, ask.recorded, refusal))
            return
        self.rows += ask.rows
        decision = self.consider(ask.message)
        self.done.append(partial(resolve, ask.recorded, decision))

    def _unasked(self, ask: MessageSubmitted) -> HostError | None:
        """Why this person may not ask that of this session; an opening makes a new one theirs."""
        memory, who = self._memory, ask.principal
        if who is None:
            return None
        if memory.exists or memory.answers or self.facts:
            mine = (memory.projection.session.workspace_id, memory.projection.session.user_id) == (
                who.workspace_id,
                who.user_id,
            )
            return None if mine else no_such_thread()
        if not isinstance(ask.message, OpenRequested):
            return no_such_thread()
        memory.projection.session = SessionRow(memory.session_id, who.workspace_id, who.user_id, self._now)
        self.rows.append(memory.projection.session)
        return None

    # --- results of the live turn ------------------------------------------------------------------------------------

    def _hear(self, said: list[ResultArrived]) -> None:
        turn_id = said[0].turn_id
        collected = self._memory.collected
        if self.state.turn is None or collected is None or collected.turn_id != turn_id:
            self.rows.append(self.audit("output.dropped", turn_id, "the turn has ended"))
            return
        results: list[Result] = []
        keys: dict[int, str] = {}
        for item in said:
            results.append(item.result)
            self.rows += item.rows
            if item.scope_key is not None:
                keys[id(item.result)] = item.scope_key
        for result in collected.gather(results):
            if result.type == "action.requested" and result.data.get("action") == HANDOVER_ACTION:
                self.decide(handover_wish(result, collected.agent_id, self._around.agents(), self._now))
                continue
            if result.type not in KNOWN_TYPES or result.type in JUDGED:
                self.rows.append(self._judged(result))
            for output in collected.read(result, self._now):
                self.decide(_with_scope_key(output, keys.get(id(result))) if keys else output)
        self.done.append(partial(self._around.consumed, turn_id, len(said)))  # a closure would make the draft a cycle

    def _judged(self, result: Result) -> AuditRow:
        """The audit row of a result that something was decided about."""
        if result.type == "state.updated":
            where = f"{result.data['scope']}/{result.data['key']}"
            return self.audit("state.updated", result.run_id, "in the grant", result="allowed", resource=where)
        if result.type == "state.refused":
            code, reason = str(result.data["code"]), str(result.data["reason"])
            return self.audit("state.updated", result.run_id, reason, result=code)
        if result.type == "artifact.created":
            kept = str(result.data.get("artifact_id"))
            return self.audit("artifact.created", result.run_id, "kept", result="allowed", resource=kept)
        if result.type == REFUSED:
            return self.audit("artifact.created", result.run_id, str(result.data["reason"]), result="refused")
        return self.audit("result.ignored", result.run_id, f"unknown type {result.type[:64]!r}")

    # --- new runs ----------------------------------------------------------------------------------------------------

    def _order(self, order: RunSubmitted) -> None:
        refusal = self._refusal(order.new)
        if refusal is not None:
            self.done.append(lambda: reject(order.answer, refusal))
            return
        known = self._memory.answers.get(order.new.client_run_id)
        answer = self._admit(order) if known is None else _again(order.new, *known)
        if isinstance(answer, HostError):
            self.done.append(lambda: reject(order.answer, answer))
        else:
            self.done.append(lambda: resolve(order.answer, answer))

    def _refusal(self, new: NewRun) -> HostError | None:
        memory = self._memory
        if (memory.exists or memory.answers) and not owns(memory.projection.session, new):
            return no_such_thread()
        if self.state.closed or self.state.closing:
            return HostError(ErrorCode.SESSION_CLOSED, "this conversation is closed; open it again to go on")
        if new.replaces is not None and (self.state.turn is not None or self.state.queue):
            text = "something is still being answered in this conversation; wait for it or cancel it first"
            return HostError(ErrorCode.CONFLICT, text, retryable=True)
        return None

    def _admit(self, order: RunSubmitted) -> Accepted:
        memory, new, now = self._memory, order.new, self._now
        opens = not memory.exists and not memory.answers and not self.facts
        if opens:
            memory.projection.session = SessionRow(
                memory.session_id, new.principal.workspace_id, new.principal.user_id, now
            )
            self.rows.append(memory.projection.session)
            if new.thread_name is not None:
                self.rows.append(_named(memory.projection.session, new.thread_name))
        self.rows += new.rows
        kept = salted(new.body_hash, chance(SALT_BYTES))
        self.rows.append(InboxRow(memory.session_id, new.client_run_id, kept, order.task_id, now, opens))
        self.rows += rows_of(new, order.task_id, kept, now)
        given = RunInput(
            new.text,
            new.message,
            new.params,
            new.source,
            0,
            now,
            self.seq > 0 or bool(new.supplied),
            new.event,
            new.attachments,
            new.door,
            new.locale,
            new.time_zone,
        )
        memory.inputs[order.task_id] = (given, order.trace_id)
        first = self._first_number()
        self._along = came_along(order, now) if new.supplied else []
        self.decide(user_input(order, self._agents(new), now))
        answer = Accepted(order.task_id, memory.session_id, new.client_run_id, opens, first)
        memory.answers[new.client_run_id] = (new.body_hash, answer)
        if len(memory.answers) > RECENT_ANSWERS:
            memory.answers.popitem(last=False)
        return answer

    def _agents(self, new: NewRun) -> Agents:
        """As configured; a policy of steering counts only where the runner of the live turn takes part in it, and no
        policy lets one of a platform's threads reach into another."""
        agents, turn = self._around.agents(), self.state.turn
        policy = agents.while_busy.get(turn.agent_id) if turn is not None else None
        if turn is None or policy not in {"steer", "interrupt"}:
            return agents
        run = self._memory.projection.runs.get(turn.turn_id)
        here = new.event.subthread_id if new.event is not None else None
        apart = run is not None and run.subthread_id != here
        if not apart and (policy == "interrupt" or self._around.steers(turn.turn_id)):
            return agents
        return replace(agents, while_busy={**agents.while_busy, turn.agent_id: "queue"})

    def _first_number(self) -> int:
        """The number the input, or what came along with it, will get: only the opening is recorded before it."""
        return self.seq + (1 if self.state.opened else 2)


def _again(new: NewRun, body_hash: bytes, answer: Accepted) -> Accepted | HostError:
    return same_answer(new, answer, is_same=body_hash == new.body_hash)


def _with_scope_key(output: OutputReceived | RunFailed, scope_key: str | None) -> OutputReceived | RunFailed:
    if scope_key is None or isinstance(output, RunFailed):
        return output
    return replace(output, metadata={**output.metadata, "scope_key": scope_key})


def _named(session: SessionRow, name: str) -> ThreadNameRow:
    return ThreadNameRow(session.workspace_id, session.user_id, name, session.session_id)
