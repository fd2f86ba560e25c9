"""Builds the inputs of sessions and runs from what a door or an agent handed in. Nothing is decided here."""

from collections.abc import Mapping
from typing import Any

from paddock.host.ids import new_id
from paddock.host.session.arrivals import Arrived, Firing, NewRun, RunSubmitted
from paddock.rules.conversations.client_history import SUPPLIED
from paddock.rules.log.events import handover_data
from paddock.rules.rows.automation import TickRow
from paddock.rules.rows.deliveries import PlatformConversationRow, PlatformEventRow
from paddock.rules.rows.projection import SUBTHREAD
from paddock.rules.rows.rows import Row
from paddock.rules.run.context import RunInput
from paddock.rules.run.events import HANDOVER, RunEvent, to_payload
from paddock.rules.run.outputs import as_object
from paddock.rules.run.results import Result
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.session.messages import Agents, HandoverRequested, UserInput

HANDOVER_ACTION = "session.handover"
MAX_REASON, MAX_SUMMARY = 1_000, 20_000
"""Characters of what an agent says about a handover; more belongs into its messages."""


_NOTHING_MORE = (None, None, None, None, ())


def user_input(order: RunSubmitted, agents: Agents, now: float) -> UserInput:
    new = order.new
    about = {
        "client_run_id": new.client_run_id,
        "workspace_id": new.principal.workspace_id,
        "user_id": new.principal.user_id,
        "source": new.source,
        "door": new.door,
        **_more_about(new),
    }
    return UserInput(
        turn_id=order.task_id,
        trace_id=order.trace_id,
        user_id=new.principal.user_id,
        payload={"message": new.message, "text": new.text, "params": new.params, "run": about},
        metadata={},
        agents=agents,
        agent_id=new.agent_id,
        at=now,
    )


def rows_of(new: NewRun, run_id: str, body_hash: bytes, now: float) -> tuple[Row, ...]:
    """Rows stored together with a run about the event that asked for it."""
    match cause := new.cause:
        case Arrived():
            came = PlatformEventRow(cause.platform, cause.event_id, new.thread_id, run_id, body_hash, now)
            return (came, PlatformConversationRow(new.thread_id, cause.platform, cause.reply_target, now))
        case Firing():
            return (TickRow(cause.job_id, cause.tick, cause.result, now, run_id, next_at=cause.next_at),)
        case None:
            return ()


def _more_about(new: NewRun) -> Mapping[str, Any]:
    """Optional fields of an input."""
    if (new.event, new.locale, new.time_zone, new.replaces, new.supplied) == _NOTHING_MORE and not new.attachments:
        return {}
    more = {
        "attachments": list(new.attachments),
        "locale": new.locale,
        "time_zone": new.time_zone,
        "replaces": new.replaces,
        "came_along": len(new.supplied),
    }
    return {**to_payload(new.event), **{name: value for name, value in more.items() if value}}


def came_along(order: RunSubmitted, now: float) -> list[Fact]:
    """Facts for the history a client brought along, marked as the client's own words about the past."""
    user = f"user:{order.new.principal.user_id}"
    event = order.new.event
    there = {SUBTHREAD: event.subthread_id} if event is not None and event.subthread_id is not None else {}
    return [
        Fact(
            Event.EVENT,
            SUPPLIED,
            Target.FRONTEND,
            sender=user,
            turn_id=order.task_id,
            trace_id=order.trace_id,
            payload=given.payload,
            metadata={"message_id": given.message_id, "client_supplied": True, **there},
            time=now,
        )
        for given in order.new.supplied
    ]


def handover_input(fact: Fact, seq: int) -> RunInput:
    """Input of an agent that takes over; the other agent's words are looked up when the run starts."""
    payload: Mapping[str, Any] = fact.payload
    actor = {"actor_type": "agent", "actor_id": payload["from_agent_id"]}
    event = RunEvent(
        event_type=HANDOVER,
        data=handover_data(payload),
        actor=actor,
        delivery=fact.metadata.get("delivery"),
        subthread_id=fact.metadata.get(SUBTHREAD),
    )
    return RunInput("", {}, {}, "system", seq, fact.time, True, event)


def handover_wish(result: Result, agent_id: str, agents: Agents, now: float) -> HandoverRequested:
    """An agent would like another one to go on: the payload says who, why, and what is known so far."""
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
