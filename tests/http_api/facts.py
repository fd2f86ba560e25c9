"""Facts as the session records them, made by hand; frames taken apart again."""

import json
from typing import Any

from paddock.http_api.ag_ui.events import AgUiPeer
from paddock.rules.log.chain import SALTS_BYTES, Head, StoredFact, seal
from paddock.rules.log.payloads import a_delta
from paddock.rules.session.facts import Event, Fact, Target

THREAD = "550e8400-e29b-41d4-a716-446655440000"
TURN = "turn-1"
NEW = AgUiPeer("1", THREAD, "run-001", "1")
OLD = AgUiPeer("0", THREAD, "run-001", "0")


def fact(kind: str, payload: Any = None, metadata: dict[str, Any] | None = None, target: str = "FRONTEND") -> Fact:
    event, _, subtype = kind.partition(":")
    return Fact(Event(event), subtype, Target(target), turn_id=TURN, payload=payload, metadata=metadata or {}, time=1.5)


def output(kind: str, data: dict[str, Any], metadata: dict[str, Any] | None = None) -> Fact:
    return fact("AGENT_OUTPUT:MESSAGE", {"type": kind, "data": data}, metadata)


def delta(message_id: str, text: str, *, opens: bool) -> Fact:
    return fact("AGENT_OUTPUT:CHUNK", a_delta(text), {"message_id": message_id} | ({"opens": True} if opens else {}))


def message(message_id: str, content: Any, **metadata: Any) -> Fact:
    data = {"message": {"role": "assistant", "content": content}}
    return output("message.completed", data, {"message_id": message_id, **metadata})


def user_input(door: str = "native", message: dict[str, Any] | None = None, **params: Any) -> Fact:
    payload = {
        "message": message or {"id": "m1", "content": "hi"},
        "text": "hi",
        "params": params,
        "run": {"client_run_id": "run-001", "door": door},
    }
    return fact("USER_INPUT", payload, target="SYSTEM")


def stored(*facts: Fact, after: int = 0) -> list[StoredFact]:
    return seal(Head(after), facts, bytes(SALTS_BYTES * len(facts)))[0]


def parse(frames: list[bytes]) -> list[tuple[str, dict[str, Any]]]:
    """(cursor, event) of each frame; checks the framing byte by byte."""
    out: list[tuple[str, dict[str, Any]]] = []
    for frame in frames:
        head, body, *rest = frame.split(b"\n")
        assert rest == [b"", b""]
        assert head.startswith(b"id: ")
        assert body.startswith(b"data: ")
        out.append((head[4:].decode(), json.loads(body[6:])))
    return out


def events_of(frames: list[bytes]) -> list[dict[str, Any]]:
    return [event for _, event in parse(frames)]
