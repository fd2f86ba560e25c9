"""How a run is asked for at each door: the floor's, the host's AG-UI door, the host's POST + GET pair. Bytes only."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from uuid import uuid4

Ask = Callable[[str, str], bytes]
"""(thread, text) -> the bytes of a request."""


@dataclass(frozen=True, slots=True)
class Door:
    """`ask` starts a run; where the answer only names the run, `follow` asks for its stream."""

    ask: Ask
    follow: Callable[[bytes], bytes] | None = None


def _post(path: str, body: object) -> bytes:
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
    return f"{head}accept: text/event-stream\r\ncontent-length: {len(content)}\r\n\r\n".encode() + content


ONLY_NEW: dict[str, object] = {"paddock": {"unseen": "keep"}}
"""What an AG-UI client says that sends only what is new."""


def _ask_floor(thread: str, text: str) -> bytes:
    return _post("/run", {"threadId": thread, "text": text})


def _run_input(thread: str, text: str, forwarded: dict[str, object]) -> dict[str, object]:
    return {
        "threadId": thread,
        "runId": str(uuid4()),
        "messages": [{"id": str(uuid4()), "role": "user", "content": text}],
        "tools": [],
        "context": [],
        "state": {},
        "forwardedProps": forwarded,
    }


def _ask_ag_ui(thread: str, text: str) -> bytes:
    return _post("/api/v1/agent/ag-ui/bench", _run_input(thread, text, ONLY_NEW))


def native_request(path: str, thread: str, text: str) -> bytes:
    """A run handed in at a door that reads the published shape."""
    return _post(path, _run_input(thread, text, {"runtime_mode": "chat"}))


def _ask_native(thread: str, text: str) -> bytes:
    return native_request("/api/v1/agent/runs", thread, text)


def _follow_native(accepted: bytes) -> bytes:
    task = json.loads(accepted)["taskId"]
    return f"GET /api/v1/agent/runs/{task}/events HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n".encode()


DOORS: dict[str, Door] = {
    "floor": Door(_ask_floor),
    "bare": Door(_ask_floor),
    "ag-ui": Door(_ask_ag_ui),
    "pair": Door(_ask_native, _follow_native),
}
