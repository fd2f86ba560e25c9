"""The rows that follow from facts: runs, transcript, state. Pure, so that tables can be made anew from the log.

Runs and transcript follow from facts alone, so they can be compared with the log and put right by it. State does not:
runners also write it by host calls, which leave an audit row and no fact.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from paddock.rules.errors import EndCode, RunCode, RunnersOwn
from paddock.rules.log.chain import SUPPLIED, StoredFact, recalled
from paddock.rules.log.payloads import CONTINUED, MESSAGE, as_object, is_message, text_of
from paddock.rules.rows.rows import LeftBehindRow, Row, RunRow, SessionDetailsRow, SessionRow, StateRow, TranscriptRow
from paddock.rules.session.facts import Event, Fact, Target
from paddock.rules.values import Value, replace

_encode = msgspec.json.Encoder().encode
STEERED_INTO: RunCode = "steered_into"
SUBTHREAD = "subthread_id"
"""Where the metadata of a fact say in which of a platform's threads it happened, when no input of its run does."""
PARTIAL = b'{"partial":true}'


class RunProjection:
    """The runs of one session that have not ended, as the facts so far made them."""

    __slots__ = ("runs", "session")

    def __init__(self, session: SessionRow, runs: dict[str, RunRow]) -> None:
        self.session = session
        self.runs = runs

    def rows(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        """The rows that one fact, recorded under this number, makes or changes."""
        follow = _FOLLOWS.get((fact.event, fact.subtype))
        return follow(self, seq, fact) if follow is not None else ()

    def _keep(self, run: RunRow) -> RunRow:
        self.runs[run.run_id] = run
        return run

    def input(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        if fact.target is Target.AGENT:
            return self._dispatched(seq, fact)
        about: Mapping[str, Any] = fact.payload["run"]
        run = self._keep(self._accepted(seq - int(about.get("came_along") or 0), fact))
        if as_object(about.get("event")).get("event_type") == CONTINUED:  # nobody said anything
            return run, *self._left_behind(seq, fact)
        return run, self._user_item(seq, fact), *self._left_behind(seq, fact)

    def _accepted(self, seq: int, fact: Fact) -> RunRow:
        about: Mapping[str, Any] = fact.payload["run"]
        event: Mapping[str, Any] = about.get("event") or {}
        return RunRow(
            run_id=str(fact.turn_id),
            session_id=self.session.session_id,
            workspace_id=self.session.workspace_id,
            user_id=self.session.user_id,  # whose the conversation is now: it may have been taken over since
            client_run_id=about["client_run_id"],
            agent_id=about.get("agent_id") or "",
            runner_id="",
            status="queued",
            code=None,
            message=None,
            created_at=fact.time,
            started_at=None,
            ended_at=None,
            deadline_at=None,
            first_seq=seq,
            last_seq=seq,
            grant=b"",
            usage=b"",
            subthread_id=event.get("thread_id"),
        )

    def _user_item(self, seq: int, fact: Fact) -> TranscriptRow:
        message: Mapping[str, Any] = fact.payload["message"]
        event: Mapping[str, Any] = fact.payload["run"].get("event") or {}
        if not is_message(event.get("event_type", MESSAGE)):
            return self._event_item(seq, fact, event)
        plain = isinstance(message.get("content"), str)
        return TranscriptRow(
            session_id=self.session.session_id,
            seq=seq,
            item_id=f"{fact.turn_id}.0",
            run_id=fact.turn_id,
            role="user",
            item_type="message",
            agent_id=None,
            content=fact.payload["text"],
            content_json=b"" if plain else _encode(message),
            created_at=fact.time,
            metadata=_encode({"message_id": message.get("id"), **_speaker(event), **_erased(message)}),
            subthread_id=event.get("thread_id"),
        )

    def _left_behind(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        """An input that takes the place of an earlier one moves the head there: nothing is rewritten."""
        replaces = fact.payload["run"].get("replaces")
        last = seq - 1 - int(fact.payload["run"].get("came_along") or 0)
        return (LeftBehindRow(self.session.session_id, int(replaces), last),) if replaces else ()

    def _event_item(self, seq: int, fact: Fact, event: Mapping[str, Any]) -> TranscriptRow:
        text = str(fact.payload["text"] or event["event_type"])
        return self._item(seq, fact, "system", "system", text, _encode(event), f"{fact.turn_id}.0")

    def opened(self, _seq: int, fact: Fact) -> tuple[Row, ...]:
        """A first input opens a session without a word about it; only a closed one has to be told apart again."""
        if fact.payload.get("implicit"):
            return ()
        return (SessionDetailsRow(self.session.session_id, closed=False),)

    def closed(self, _seq: int, _fact: Fact) -> tuple[Row, ...]:
        return (SessionDetailsRow(self.session.session_id, closed=True),)

    def queued(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        run = self.runs.get(fact.turn_id or "")
        if run is None:
            return ()
        return (self._keep(replace(run, agent_id=str(fact.payload["agent_id"]), last_seq=seq)),)

    def _dispatched(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        run = self.runs.get(fact.turn_id or "")
        if run is None:
            return ()
        started = replace(run, agent_id=fact.target_id or "", status="running", started_at=fact.time, begun_seq=seq)
        return (self._keep(_with_grant(started, seq, fact.metadata)),)

    def granted(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        run = self.runs.get(fact.turn_id or "")
        return () if run is None else (self._keep(_with_grant(run, seq, fact.metadata)),)

    def handed_over(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        """A run nobody typed an input for: it begins and is dispatched at once, for the session's own user."""
        if fact.target is not Target.AGENT:
            return ()
        accepted = self._accepted(seq, replace(fact, payload={"run": {"client_run_id": ""}}))
        self._keep(replace(accepted, subthread_id=fact.metadata.get(SUBTHREAD)))
        return self._dispatched(seq, fact)

    def message(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        follow = _SAID.get(fact.payload["type"])
        return follow(self, seq, fact, fact.payload["data"]) if follow is not None else ()

    def spoken(self, seq: int, fact: Fact, data: Mapping[str, Any]) -> tuple[Row, ...]:
        message: Mapping[str, Any] = data.get("message") or {}
        content = message.get("content")
        plain = isinstance(content, str) and message.keys() <= {"role", "content"}
        whole = b"" if plain else _encode(message)
        item = self._item(seq, fact, "assistant", "message", text_of(content), whole, fact.metadata["message_id"])
        return (replace(item, metadata=_shown(fact, data)) if "ui_schema" in data else item,)

    def tool_started(self, seq: int, fact: Fact, data: Mapping[str, Any]) -> tuple[Row, ...]:
        name = str(data.get("tool_name"))
        return (self._item(seq, fact, "assistant", "tool_call", name, _encode(data), f"{fact.turn_id}.{seq}"),)

    def tool_completed(self, seq: int, fact: Fact, data: Mapping[str, Any]) -> tuple[Row, ...]:
        result = data.get("error") or data.get("result")
        text = result if isinstance(result, str) else _encode(result).decode()
        return (self._item(seq, fact, "tool", "tool_result", text, _encode(data), f"{fact.turn_id}.{seq}"),)

    def supplied(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        """Make the item of a message that a client brought along, under its own id."""
        lost = _erased(as_object(fact.payload.get("data")))
        marks = _encode({"message_id": fact.metadata.get("message_id"), "client_supplied": True, **lost})
        items = self.message(seq, fact)
        return tuple(
            replace(
                row,
                item_id=f"{fact.turn_id}.c{seq}",
                role=_role_in(fact, row.role),
                agent_id=None,
                metadata=marks,
                subthread_id=fact.metadata.get(SUBTHREAD),
            )
            for row in items
            if isinstance(row, TranscriptRow)
        )

    def artifact_created(self, seq: int, fact: Fact, data: Mapping[str, Any]) -> tuple[Row, ...]:
        """A file that was made is part of what was said: an item whose text is its name."""
        text = str(data.get("name") or data.get("artifact_type"))
        whole = _encode({"role": "assistant", "content": text, "artifact": data})
        return (self._item(seq, fact, "assistant", "message", text, whole, f"{fact.turn_id}.{seq}"),)

    def state_updated(self, _seq: int, fact: Fact, data: Mapping[str, Any]) -> tuple[Row, ...]:
        if "scope_key" not in fact.metadata:
            return ()
        return (StateRow(fact.metadata["scope_key"], data["key"], _encode(data.get("value")), fact.time),)

    def _item(
        self, seq: int, fact: Fact, role: str, item_type: str, text: str, whole: bytes, item_id: str
    ) -> TranscriptRow:
        run = self.runs.get(fact.turn_id or "")
        return TranscriptRow(
            session_id=self.session.session_id,
            seq=seq,
            item_id=item_id,
            run_id=fact.turn_id,
            role=role,
            item_type=item_type,
            agent_id=run.agent_id if run else None,
            content=text,
            content_json=whole,
            created_at=fact.time,
            metadata=_marks(fact),
            subthread_id=run.subthread_id if run else None,
        )

    def completed(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        usage = fact.payload["data"].get("usage")
        return self._end(seq, fact, "completed", None, None, _encode(usage) if usage else b"")

    def steered(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        """Another run took its input in; the message says which."""
        return self._end(seq, fact, "completed", STEERED_INTO, str(fact.payload["steered_into"]))

    def failed(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        payload: Mapping[str, Any] = fact.payload or {}
        return self._end(seq, fact, "failed", RunnersOwn(str(payload.get("code"))), str(payload.get("message")))

    def cancelled(self, seq: int, fact: Fact) -> tuple[Row, ...]:
        return self._end(seq, fact, "cancelled", "cancelled", None)

    def _end(
        self, seq: int, fact: Fact, status: str, code: EndCode | None, message: str | None, usage: bytes = b""
    ) -> tuple[Row, ...]:
        run = self.runs.pop(fact.turn_id or "", None)
        if run is None:
            return ()
        begun = seq if run.begun_seq is None else run.begun_seq
        ended = replace(run, status=status, code=code, message=message, ended_at=fact.time, last_seq=seq, usage=usage)
        return (ended if begun == run.begun_seq else replace(ended, begun_seq=begun),)


_FOLLOWS: Mapping[tuple[Event, str], Callable[[RunProjection, int, Fact], tuple[Row, ...]]] = {
    (Event.USER_INPUT, ""): RunProjection.input,
    (Event.USER_INPUT, "MENTION"): RunProjection.input,
    (Event.EVENT, "TURN_QUEUED"): RunProjection.queued,
    (Event.EVENT, "RUN_GRANTED"): RunProjection.granted,
    (Event.AGENT_OUTPUT, "MESSAGE"): RunProjection.message,
    (Event.AGENT_OUTPUT, "FINAL"): RunProjection.completed,
    (Event.ERROR, "RUN_FAILED"): RunProjection.failed,
    (Event.ERROR, "ROUTE_TIMEOUT"): RunProjection.failed,
    (Event.ERROR, "AGENT_NOT_IN_SESSION"): RunProjection.failed,
    (Event.EVENT, "CANCELED"): RunProjection.cancelled,
    (Event.EVENT, "TURN_STEERED"): RunProjection.steered,
    (Event.EVENT, SUPPLIED): RunProjection.supplied,
    (Event.CONTROL, "HANDOVER_CONTEXT"): RunProjection.handed_over,
    (Event.CONTROL, "SESSION_OPENED"): RunProjection.opened,
    (Event.CONTROL, "SESSION_CLOSED"): RunProjection.closed,
}
"""What each kind of fact leads to; the others lead to nothing."""

_SAID: Mapping[str, Callable[[RunProjection, int, Fact, Mapping[str, Any]], tuple[Row, ...]]] = {
    "message.completed": RunProjection.spoken,
    "tool.call.started": RunProjection.tool_started,
    "tool.call.completed": RunProjection.tool_completed,
    "artifact.created": RunProjection.artifact_created,
    "state.updated": RunProjection.state_updated,
}


def _with_grant(run: RunRow, seq: int, given: Mapping[str, Any]) -> RunRow:
    return replace(
        run,
        runner_id=str(given.get("runner_id") or ""),
        deadline_at=given.get("deadline_at"),
        grant=_encode(given["grant"]) if "grant" in given else b"",
        last_seq=seq,
    )


def _speaker(event: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the actor of a platform's event: a group has more than one person."""
    actor = as_object(event.get("actor"))
    told = {name: actor[name] for name in ("actor_type", "actor_id", "actor_name") if actor.get(name) is not None}
    return {"actor": told} if told else {}


def _role_in(fact: Fact, otherwise: str) -> str:
    message = as_object(as_object(fact.payload.get("data")).get("message"))
    return str(message.get("role") or otherwise)


def _marks(fact: Fact) -> bytes:
    payload = as_object(fact.payload)
    if lost := _erased(as_object(payload.get("data"))) or _erased(as_object(payload.get("message"))):
        return _encode(({"partial": True} if fact.metadata.get("partial") else {}) | lost)
    return PARTIAL if fact.metadata.get("partial") else b""


def _erased(said: Mapping[str, Any]) -> dict[str, bool]:
    return {"erased": True} if said.get("erased") is True else {}


def _shown(fact: Fact, data: Mapping[str, Any]) -> bytes:
    partial = {"partial": True} if fact.metadata.get("partial") else {}
    return _encode({**partial, "ui_schema": data["ui_schema"], "ui_compiler": data.get("ui_compiler")})


def settled(rows: list[Row]) -> list[Row]:
    """Of several versions of one run only the last need be written."""
    runs = [row for row in rows if type(row) is RunRow]
    if len(runs) < 2:
        return rows
    last = {run.run_id: run for run in runs}
    if len(last) == len(runs):
        return rows
    return [row for row in rows if type(row) is not RunRow or last[row.run_id] is row]


Key = TypeVar("Key")
Kept = TypeVar("Kept")


class Tables(Value, frozen=True):
    """The rows of one session in the tables beside its log."""

    items: Mapping[int, TranscriptRow]
    runs: Mapping[str, RunRow]


class Difference(Value, frozen=True):
    """A row that is not what the log says. `stored` None: it is missing; `told` None: the log knows nothing of it."""

    session_id: str
    stored: TranscriptRow | RunRow | None
    told: TranscriptRow | RunRow | None

    @property
    def sentence(self) -> str:
        row = self.told or self.stored
        what = f"run {row.run_id}" if isinstance(row, RunRow) else f"item {row.seq if row else 0}"
        how = "is missing" if self.stored is None else "is not in the log" if self.told is None else "differs"
        return f"conversation {self.session_id}: {what} {how}"


def tables_of(session: SessionRow, facts: Iterable[StoredFact]) -> Tables:
    """The rows that follow from these facts, which are in order of number; deltas lead to none."""
    projection = RunProjection(session, {})
    items: dict[int, TranscriptRow] = {}
    runs: dict[str, RunRow] = {}
    for stored in facts:
        if stored.is_delta:
            continue
        for row in projection.rows(stored.seq, recalled(stored)):
            if isinstance(row, TranscriptRow):
                items[row.seq] = row
            elif isinstance(row, RunRow):
                runs[row.run_id] = row
    return Tables(items, runs)


def differences(session_id: str, stored: Tables, told: Tables) -> list[Difference]:
    """Compare stored rows with those made from the log, byte for byte."""
    return [
        *(Difference(session_id, *pair) for pair in _unequal(stored.items, told.items)),
        *(Difference(session_id, *pair) for pair in _unequal(stored.runs, told.runs)),
    ]


def _unequal(stored: Mapping[Key, Kept], told: Mapping[Key, Kept]) -> Iterable[tuple[Kept | None, Kept | None]]:
    for key in dict.fromkeys((*stored, *told)):
        if stored.get(key) != told.get(key):
            yield stored.get(key), told.get(key)
