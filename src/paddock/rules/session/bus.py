"""The session as the bus sees it: one way in for every message, found by its (event, subtype). Pure.

`MessageItem` is what travels; `read` makes of it the message the rules speak of; `on_message` is `step` for the bus.
Messages to everybody are for watching, never for deciding, and an unknown pair changes nothing.
"""

from collections.abc import Callable, Mapping
from typing import Any, cast, get_args

from paddock.rules.errors import EndCode, RunnersOwn
from paddock.rules.session import messages
from paddock.rules.session.decide import step
from paddock.rules.session.decision import Decision, ignored
from paddock.rules.session.facts import Event, ManagerAnswer, OutputKind, Target
from paddock.rules.session.messages import Agents, Message
from paddock.rules.session.state import SessionState
from paddock.rules.values import Value, nothing


class MessageItem(Value, frozen=True):
    """One message to the session. Ids and time are the host's, and so is the sender: it is never what a frame says.

    `turn_id` and `tx_id` name what a message is about, or, in one that begins something, what is to be begun.
    """

    event: Event
    subtype: str = ""
    sender: str = ""
    target: Target = Target.SYSTEM
    turn_id: str | None = None
    trace_id: str | None = None
    tx_id: str | None = None
    payload: Any = None
    metadata: Mapping[str, Any] = nothing
    time: float = 0.0
    id: str = ""
    session_id: str = ""


def on_message(state: SessionState, item: MessageItem, agents: Agents) -> tuple[SessionState, Decision]:
    if item.target is not Target.SYSTEM:
        return state, ignored("message_ignored", item.turn_id, "not_for_the_session")
    message = read(item, agents)
    if message is None:
        return state, ignored("message_ignored", item.turn_id, "unknown_word")
    return step(state, message)


def read(item: MessageItem, agents: Agents) -> Message | None:
    """The message in the rules' own words; None for a pair the session does not listen to."""
    reader = _READERS.get((item.event, item.subtype))
    return reader(item, agents) if reader is not None else None


def _payload(item: MessageItem) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", item.payload) if isinstance(item.payload, dict) else {}


def _who(item: MessageItem) -> str:
    return item.sender.partition(":")[2]


def _agent(item: MessageItem) -> str:
    return str(_payload(item).get("agent_id") or "")


def mentioned(item: MessageItem) -> str | None:
    """The agent that an input asks for in so many fields: in its payload, or in metadata of subtype MENTION."""
    asked = _payload(item).get("mentioned_agent_id")
    if asked is None and (item.subtype == "MENTION" or item.metadata.get("subtype") == "MENTION"):
        asked = item.metadata.get("mentioned_agent_id")
    return None if asked is None else str(asked)


def _input(item: MessageItem, agents: Agents) -> Message:
    return messages.UserInput(
        turn_id=item.turn_id or "",
        trace_id=item.trace_id or "",
        user_id=_who(item),
        payload=item.payload,
        metadata=item.metadata,
        agents=agents,
        agent_id=mentioned(item),
        at=item.time,
    )


def _cancel(item: MessageItem, _agents: Agents) -> Message:
    return messages.CancelRequested(item.turn_id, _who(item), str(_payload(item).get("reason") or "user"), item.time)


def _invite(item: MessageItem, _agents: Agents) -> Message:
    activate = _payload(item).get("activate") is True
    return messages.InviteRequested(item.tx_id or "", _agent(item), _who(item), activate, item.time)


def _remove(item: MessageItem, agents: Agents) -> Message:
    reason = str(_payload(item).get("reason") or "user")
    return messages.RemoveRequested(
        item.tx_id or "", _agent(item), _who(item), agents.default_agent_id, reason, item.time
    )


def _answer(item: MessageItem, _agents: Agents) -> Message:
    confirmed = item.subtype == "HANDOVER_CONFIRM"
    return messages.HandoverAnswered(item.tx_id, _who(item), confirmed, item.turn_id or "", item.time)


def _close(item: MessageItem, _agents: Agents) -> Message:
    return messages.CloseRequested(item.tx_id or "", _who(item), str(_payload(item).get("reason") or "user"), item.time)


def _acknowledged(item: MessageItem, _agents: Agents) -> Message:
    return messages.InputAcknowledged(item.turn_id or "", item.time)


def _stopped(item: MessageItem, _agents: Agents) -> Message:
    return messages.CancelAcknowledged(item.turn_id or "", item.time)


def _output(item: MessageItem, _agents: Agents) -> Message:
    kind: Any = item.subtype
    return messages.OutputReceived(item.turn_id or "", _who(item), kind, item.payload, item.metadata, item.time)


def _failed(item: MessageItem, _agents: Agents) -> Message:
    error = _payload(item)
    code: EndCode = RunnersOwn(str(error["code"])) if error.get("code") else "runner.error"
    text = str(error.get("message") or "the agent failed")
    return messages.RunFailed(item.turn_id or "", code, text, bool(error.get("retryable")), item.time)


def _handover(item: MessageItem, agents: Agents) -> Message:
    asked = _payload(item)
    return messages.HandoverRequested(
        tx_id=item.tx_id or "",
        turn_id=item.turn_id or "",
        agent_id=_who(item),
        target_agent_id=str(asked.get("target_agent_id") or ""),
        known=frozenset(agents.while_busy),
        reason=str(asked.get("reason") or ""),
        summary=str(asked.get("summary") or ""),
        at=item.time,
        default_agent_id=agents.default_agent_id,
    )


def _replied(item: MessageItem, _agents: Agents) -> Message:
    answer: Any = item.subtype
    return messages.ManagerReplied(item.tx_id or "", answer, _payload(item), item.time)


Reader = Callable[[MessageItem, Agents], Message]

FROM_PEOPLE: Mapping[str, Reader] = {
    "CANCEL": _cancel,
    "INTERRUPT": _cancel,
    "SWITCH_AGENT": lambda item, _: messages.SwitchRequested(_agent(item), _who(item), item.time),
    "INVITE_AGENT": _invite,
    "REMOVE_AGENT": _remove,
    "HANDOVER_CONFIRM": _answer,
    "HANDOVER_REJECT": _answer,
    "SESSION_OPEN": lambda item, _: messages.OpenRequested(item.tx_id or "", _who(item), item.time),
    "SESSION_CLOSE": _close,
}
"""Every CONTROL that a front end may send."""

_FROM_OTHERS: Mapping[str, Reader] = {
    **dict.fromkeys(("INPUT_ACK", "HANDOVER_ACCEPTED"), _acknowledged),
    "CANCEL_ACK": _stopped,
    "HANDOVER_REQUEST": _handover,
    **dict.fromkeys(get_args(ManagerAnswer), _replied),
}

_READERS: Mapping[tuple[Event, str], Reader] = {
    (Event.USER_INPUT, ""): _input,
    (Event.USER_INPUT, "MENTION"): _input,
    **dict.fromkeys(((Event.AGENT_OUTPUT, kind) for kind in get_args(OutputKind)), _output),
    (Event.EVENT, "STREAM_STOPPED"): _stopped,
    (Event.ERROR, ""): _failed,
    **{(Event.CONTROL, subtype): reader for subtype, reader in {**FROM_PEOPLE, **_FROM_OTHERS}.items()},
}
