"""Buttons and forms of cards: their action is looked up in the log and becomes an input of the user.

An action belongs to the conversation's owner, is valid for a day, and works once: its run is named after it, so the
rule for repeated requests holds. Buttons only speak for the person who presses them; approvals of the host are never
given here.
"""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Any

import msgspec

from paddock.host.conversations.inbox import Inbox
from paddock.host.people.principals import Principal
from paddock.host.runs.stored_results import ACTIONS, DOCUMENT
from paddock.host.session.arrivals import Accepted, NewRun
from paddock.ports import ConversationRecords, EventLog
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.log.chain import StoredFact, is_salted
from paddock.rules.log.payloads import as_object
from paddock.rules.rows.rows import AuditRow, RunRow
from paddock.rules.ui_schema.actions import InvalidAnswerError, as_text, filled_in, label_of, node_of
from paddock.rules.values import Value, replace
from paddock_sdk.protocol.run_context import TriggerSource

SECONDS = 86_400.0
"""Seconds that a button is valid."""
PAGES, PAGE = 40, 256
_canonical = msgspec.json.Encoder(order="sorted").encode


class Action(Value, frozen=True):
    """An action of a card, the node it is in, and when it was shown."""

    stands_for: Mapping[str, Any]
    node: Mapping[str, Any]
    shown_at: float


class UiActions:
    def __init__(
        self, *, inbox: Inbox, log: EventLog, records: ConversationRecords, clock: Callable[[], float]
    ) -> None:
        self._inbox = inbox
        self._log = log
        self._records = records
        self._clock = clock

    async def use(
        self, principal: Principal, action_id: str, values: Mapping[str, Any], source: TriggerSource = "api"
    ) -> Accepted:
        """Perform the action of a button. Raises NOT_FOUND, CONFLICT for an expired or used one, INVALID_ARGUMENT."""
        run = await self._records.run(action_id.partition(".")[0])
        if run is None or not principal.owns(run):
            raise _unknown()
        action = await self._find(run, action_id)
        try:
            answers = filled_in(action.node, values)
        except InvalidAnswerError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        new = self._asked(principal, run, action_id, action, values, answers)
        await self._check_unused(new, action)
        return await self._inbox.accept(replace(new, source=source))

    async def _find(self, run: RunRow, action_id: str) -> Action:
        after = run.first_seq - 1
        for _ in range(PAGES):
            facts = await self._log.read(run.session_id, after=after, run_id=run.run_id, limit=PAGE)
            for fact in facts:
                if ACTIONS.encode() in fact.payload and (action := _action_in(fact, action_id)) is not None:
                    return action
            if len(facts) < PAGE:
                break
            after = facts[-1].position
        raise _unknown()

    async def _check_unused(self, new: NewRun, action: Action) -> None:
        """Refuse a second use of an action, unless it is the same request again."""
        known = await self._records.inbox(new.session_id, new.client_run_id)
        if known is not None and not is_salted(known.body_hash, new.body_hash):
            raise HostError(ErrorCode.CONFLICT, "this was answered already, and differently; it counts once")
        if known is None and self._clock() >= action.shown_at + SECONDS:
            raise HostError(ErrorCode.CONFLICT, "this button does not count any more; say what you want instead")

    def _asked(
        self,
        principal: Principal,
        run: RunRow,
        action_id: str,
        action: Action,
        values: Mapping[str, Any],
        answers: list[tuple[str, Any]],
    ) -> NewRun:
        stands_for, label = action.stands_for, label_of(action.node)
        text = as_text(str(stands_for.get("text") or label), answers)
        params: dict[str, Any] = {"ui_action": {"kind": stands_for["kind"], "label": label, "values": dict(values)}}
        if stands_for["kind"] == "answer":
            answer = {"interruptId": stands_for["interrupt_id"], "status": "resolved"}
            params["resume"] = [{**answer, "payload": {**stands_for["payload"], **values}}]
        return NewRun(
            principal=principal,
            session_id=run.session_id,
            client_run_id=f"ui-action:{action_id}",
            body_hash=sha256(_canonical((action_id, values))).digest(),
            message={"id": f"ui-action:{action_id}", "content": text},
            text=text,
            params=params,
            agent_id=run.agent_id or None,
            door="ui",
            rows=[self._decided(principal, run, action_id, str(stands_for["kind"]))],
        )

    def _decided(self, principal: Principal, run: RunRow, action_id: str, kind: str) -> AuditRow:
        session_id = run.session_id
        return principal.audit(
            "ui.action", action_id, at=self._clock(), scope=session_id, reason=kind, session_id=session_id
        )


def _action_in(fact: StoredFact, action_id: str) -> Action | None:
    data = as_object(as_object(fact.read_payload()).get("data"))
    stands_for = as_object(as_object(data.get(ACTIONS)).get(action_id))
    node = node_of(as_object(data.get(DOCUMENT)), action_id) if stands_for else None
    return Action(stands_for, node, fact.time) if node is not None else None


def _unknown() -> HostError:
    return HostError(ErrorCode.NOT_FOUND, "there is no such button in a conversation of yours")
