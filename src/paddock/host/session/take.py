"""One take: everything that waits for a session, decided in order into one draft.

Checks whether the sender may ask; the session machine decides the rest.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from paddock.host.ids import new_id, random_bytes
from paddock.host.people.principals import no_such_thread
from paddock.host.session.arrivals import (
    Accepted,
    Arrival,
    Arrived,
    Firing,
    MessageSubmitted,
    NewRun,
    ResultArrived,
    RunSubmitted,
    reject,
    resolve,
    same_answer,
)
from paddock.host.session.draft import Draft
from paddock.host.session.memory import SessionMemory
from paddock.host.session.services import SessionServices
from paddock.rules.access.approvals import HANDOVER
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import SALT_BYTES, SUPPLIED, salted
from paddock.rules.log.payloads import as_object, to_payload
from paddock.rules.log.projection import SUBTHREAD
from paddock.rules.rows.automation import TickRow
from paddock.rules.rows.deliveries import PlatformConversationRow, PlatformEventRow
from paddock.rules.rows.rows import AuditRow, InboxRow, Row, SessionRow, ThreadNameRow
from paddock.rules.run.context import RunInput
from paddock.rules.run.results import ARTIFACT_REFUSED, Result
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import (
    Agents,
    HandoverRequested,
    OpenRequested,
    OutputReceived,
    RunFailed,
    UserInput,
)
from paddock.rules.values import replace
from paddock_sdk.protocol.results import KNOWN_RESULTS

HAVE_EFFECTS = frozenset({"state.updated", "artifact.created"})
"""Types of results that change something outside the conversation: each leaves an audit row."""
RECENT_ANSWERS = 4096
"""More than can wait at once: a repeated request whose first is not on record yet finds its answer here."""
MAX_REASON, MAX_SUMMARY = 1_000, 20_000
"""Characters of an agent's words about a handover; more belongs into its messages."""
_NOTHING_MORE = (None, None, None, None, ())


class Take:
    """Decides what arrived together. The draft is committed afterwards, whole or not at all."""

    __slots__ = ("_draft", "_memory", "_services")

    def __init__(self, draft: Draft, memory: SessionMemory, services: SessionServices) -> None:
        self._draft = draft
        self._memory = memory
        self._services = services

    def decide_all(self, arrivals: Sequence[Arrival]) -> None:
        """Decide everything that arrived, in order; results that wait together are handled together."""
        results: list[ResultArrived] = []
        for arrival in arrivals:
            if isinstance(arrival, ResultArrived):
                if results and results[-1].run_id != arrival.run_id:
                    self._take_results(results)
                    results = []
                results.append(arrival)
                continue
            if results:
                self._take_results(results)
                results = []
            match arrival:
                case RunSubmitted():
                    self._take_run(arrival)
                case MessageSubmitted():
                    self._take_message(arrival)
                case _:
                    self._draft.consider(arrival)
        if results:
            self._take_results(results)

    def _take_message(self, submitted: MessageSubmitted) -> None:
        draft = self._draft
        refusal = self._why_not(submitted)
        if refusal is not None:
            draft.done.append(partial(reject, submitted.recorded, refusal))
            return
        draft.rows += submitted.rows
        decision = draft.consider(submitted.message)
        draft.done.append(partial(resolve, submitted.recorded, decision))

    def _why_not(self, submitted: MessageSubmitted) -> HostError | None:
        """The refusal for a person who may not ask that of this session. Opening a new session makes it theirs."""
        memory, person = self._memory, submitted.principal
        if person is None:
            return None
        if not self._is_new:
            owner = memory.projection.session
            return None if person.owns(owner) else no_such_thread()
        if not isinstance(submitted.message, OpenRequested):
            return no_such_thread()
        self._open(person.workspace_id, person.user_id)
        return None

    @property
    def _is_new(self) -> bool:
        return not self._memory.exists and not self._memory.answers and not self._draft.facts

    def _open(self, workspace_id: str, user_id: str) -> None:
        session = SessionRow(self._memory.session_id, workspace_id, user_id, self._draft.now)
        self._memory.projection.session = session
        self._draft.rows.append(session)

    # --- results of the live turn ------------------------------------------------------------------------------------

    def _take_results(self, arrived: list[ResultArrived]) -> None:
        run_id, draft, collected = arrived[0].run_id, self._draft, self._memory.collected
        if draft.state.turn is None or collected is None or collected.turn_id != run_id:
            draft.rows.append(draft.audit("output.dropped", run_id, "the turn has ended"))
            return
        results: list[Result] = []
        keys: dict[int, str] = {}
        for item in arrived:
            results.append(item.result)
            draft.rows += item.rows
            if item.scope_key is not None:
                keys[id(item.result)] = item.scope_key
        for result in collected.gather(results):
            if result.type == "action.requested" and result.data.get("action") == HANDOVER:
                agents = self._services.agents.for_session(self._memory.projection.session.workspace_id)
                draft.decide(_handover(result, collected.agent_id, agents, draft.now))
                continue
            if result.type not in KNOWN_RESULTS or result.type in HAVE_EFFECTS:
                draft.rows.append(self._audit_of(result))
            for output in collected.read(result, draft.now):
                draft.decide(_with_scope_key(output, keys.get(id(result))) if keys else output)
        # A closure would make the draft part of a cycle.
        draft.done.append(partial(self._services.performer.consumed, run_id, len(arrived)))

    def _audit_of(self, result: Result) -> AuditRow:
        audit, run_id, data = self._draft.audit, result.run_id, result.data
        match result.type:
            case "state.updated":
                where = f"{data['scope']}/{data['key']}"
                return audit("state.updated", run_id, "in the grant", result="allowed", resource=where)
            case "state.refused":
                return audit("state.updated", run_id, str(data["reason"]), result=str(data["code"]))
            case "artifact.created":
                kept = str(data.get("artifact_id"))
                return audit("artifact.created", run_id, "kept", result="allowed", resource=kept)
            case str() if result.type == ARTIFACT_REFUSED:
                return audit("artifact.created", run_id, str(data["reason"]), result="refused")
            case _:
                return audit("result.ignored", run_id, f"unknown type {result.type[:64]!r}")

    # --- new runs ----------------------------------------------------------------------------------------------------

    def _take_run(self, submitted: RunSubmitted) -> None:
        new, done = submitted.new, self._draft.done
        refusal = self._refusal(new)
        if refusal is not None:
            done.append(partial(reject, submitted.answer, refusal))
            return
        known = self._memory.answers.get(new.client_run_id)
        answer = (
            self._admit(submitted) if known is None else same_answer(new, known[1], is_same=known[0] == new.body_hash)
        )
        done.append(partial(reject if isinstance(answer, HostError) else resolve, submitted.answer, answer))

    def _refusal(self, new: NewRun) -> HostError | None:
        memory, state = self._memory, self._draft.state
        if (memory.exists or memory.answers) and not new.principal.owns(memory.projection.session):
            return no_such_thread()
        if state.closed or state.closing:
            return HostError(ErrorCode.SESSION_CLOSED, "this conversation is closed; open it again to go on")
        if new.replaces is not None and (state.turn is not None or state.queue):
            text = "something is still being answered in this conversation; wait for it or cancel it first"
            return HostError(ErrorCode.CONFLICT, text, retryable=True)
        return None

    def _admit(self, submitted: RunSubmitted) -> Accepted:
        draft, memory, new, now = self._draft, self._memory, submitted.new, self._draft.now
        opens = self._is_new
        if opens:
            self._open(new.principal.workspace_id, new.principal.user_id)
            if new.thread_name is not None:
                who = new.principal
                draft.rows.append(ThreadNameRow(who.workspace_id, who.user_id, new.thread_name, memory.session_id))
        draft.rows += new.rows
        kept = salted(new.body_hash, random_bytes(SALT_BYTES))
        draft.rows.append(InboxRow(memory.session_id, new.client_run_id, kept, submitted.run_id, now, opens))
        draft.rows += _rows_of_cause(new, submitted.run_id, kept, now)
        given = RunInput(
            new.text,
            new.message,
            new.params,
            new.source,
            0,
            now,
            draft.seq > 0 or bool(new.supplied),
            new.event,
            new.attachments,
            new.door,
            new.locale,
            new.time_zone,
        )
        memory.inputs[submitted.run_id] = (given, submitted.trace_id)
        # The number of the input, or of the history before it: only the opening is recorded earlier.
        first = draft.seq + (1 if draft.state.opened else 2)
        draft.before_input = _supplied_history(submitted, now) if new.supplied else []
        draft.decide(_user_input(submitted, self._agents(new), now))
        answer = Accepted(submitted.run_id, memory.session_id, new.client_run_id, opens, first)
        memory.answers[new.client_run_id] = (new.body_hash, answer)
        if len(memory.answers) > RECENT_ANSWERS:
            memory.answers.popitem(last=False)
        return answer

    def _agents(self, new: NewRun) -> Agents:
        """The agents as configured. A steering policy counts only where the live turn's runner takes part in it, and
        no policy lets one of a platform's threads reach into another."""
        memory, turn = self._memory, self._draft.state.turn
        agents = self._services.agents.for_session(memory.projection.session.workspace_id)
        policy = agents.while_busy.get(turn.agent_id) if turn is not None else None
        if turn is None or policy not in {"steer", "interrupt"}:
            return agents
        run = memory.projection.runs.get(turn.turn_id)
        here = new.event.subthread_id if new.event is not None else None
        apart = run is not None and run.subthread_id != here
        if not apart and (policy == "interrupt" or self._services.performer.steers(turn.turn_id)):
            return agents
        return replace(agents, while_busy={**agents.while_busy, turn.agent_id: "queue"})


def _with_scope_key(output: OutputReceived | RunFailed, scope_key: str | None) -> OutputReceived | RunFailed:
    if scope_key is None or isinstance(output, RunFailed):
        return output
    return replace(output, metadata={**output.metadata, "scope_key": scope_key})


def _user_input(submitted: RunSubmitted, agents: Agents, now: float) -> UserInput:
    new = submitted.new
    about: dict[str, Any] = {
        "client_run_id": new.client_run_id,
        "workspace_id": new.principal.workspace_id,
        "user_id": new.principal.user_id,
        "source": new.source,
        "door": new.door,
    }
    if (new.event, new.locale, new.time_zone, new.replaces, new.supplied) != _NOTHING_MORE or new.attachments:
        about |= _optional_fields(new)
    return UserInput(
        turn_id=submitted.run_id,
        trace_id=submitted.trace_id,
        user_id=new.principal.user_id,
        payload={"message": new.message, "text": new.text, "params": new.params, "run": about},
        metadata={},
        agents=agents,
        agent_id=new.agent_id,
        at=now,
    )


def _optional_fields(new: NewRun) -> Mapping[str, Any]:
    more = {
        "attachments": list(new.attachments),
        "locale": new.locale,
        "time_zone": new.time_zone,
        "replaces": new.replaces,
        "came_along": len(new.supplied),
    }
    return {**to_payload(new.event), **{name: value for name, value in more.items() if value}}


def _rows_of_cause(new: NewRun, run_id: str, body_hash: bytes, now: float) -> tuple[Row, ...]:
    match cause := new.cause:
        case Arrived():
            came = PlatformEventRow(cause.platform, cause.event_id, new.session_id, run_id, body_hash, now)
            return (came, PlatformConversationRow(new.session_id, cause.platform, cause.reply_target, now))
        case Firing():
            return (TickRow(cause.job_id, cause.tick, cause.result, now, run_id, next_at=cause.next_at),)
        case None:
            return ()


def _supplied_history(submitted: RunSubmitted, now: float) -> list[Fact]:
    """Facts for the history a client brought along, marked as the client's own words about the past."""
    user = f"user:{submitted.new.principal.user_id}"
    event = submitted.new.event
    where = {SUBTHREAD: event.subthread_id} if event is not None and event.subthread_id is not None else {}
    return [
        Fact(
            Event.EVENT,
            SUPPLIED,
            Target.FRONTEND,
            sender=user,
            turn_id=submitted.run_id,
            trace_id=submitted.trace_id,
            payload=given.payload,
            metadata={"message_id": given.message_id, "client_supplied": True, **where},
            time=now,
        )
        for given in submitted.new.supplied
    ]


def _handover(result: Result, agent_id: str, agents: Agents, now: float) -> HandoverRequested:
    """An agent's wish that another one goes on: the payload says who, why, and what is known so far."""
    payload = as_object(result.data.get("payload"))
    return HandoverRequested(
        tx_id=new_id(),
        turn_id=result.run_id,
        agent_id=agent_id,
        target_agent_id=str(payload.get("target_agent_id") or "")[:256],
        known=frozenset(agents.while_busy),
        reason=str(payload.get("reason") or "")[:MAX_REASON],
        summary=str(payload.get("summary") or "")[:MAX_SUMMARY],
        at=now,
        default_agent_id=agents.default_agent_id,
    )
