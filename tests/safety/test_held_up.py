"""Requests as large as a door takes them hold up nobody: the host's own watch says whether they did."""

import json
import uuid
from typing import Any

import pytest

from paddock.http_api.ag_ui.input import MAX_VALUES
from walk.hosts import HostProcess

MOST = 8 * 1024 * 1024


def a_run(**more: Any) -> bytes:
    whole = {"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return json.dumps(
        {**whole, "messages": [{"id": "m", "role": "user", "content": "hi"}], **more}, separators=(",", ":")
    ).encode()


TOO_MANY = {
    "parts of a message": a_run(
        messages=[{"id": "m", "role": "user", "content": [{"type": "text", "text": "x"}] * (MOST // 31)}]
    ),
    "lists in the state": a_run(state={"a": [[]] * (MOST // 4)}),
    "numbers in the state": a_run(state={"a": [1] * (MOST // 3)}),
    "objects of the client": a_run(forwardedProps={"a": [{"k": 1}] * (MOST // 10)}),
    "tools": a_run(tools=[{"name": f"t{i}", "description": "", "parameters": {}} for i in range(MOST // 60)]),
    "things to know": a_run(context=[{"description": "a", "value": "b"}] * (MOST // 40)),
    "quotes that never end": b'{"threadId":"t","state":[' + b"[]," * 400_000 + b'"' + b'\\"' * 2_000_000,
}
JUST_FIT = {
    "parts of a message": lambda: a_run(
        messages=[{"id": "m", "role": "user", "content": [{"type": "text", "text": "x"}] * (MAX_VALUES // 3 - 20)}]
    ),
    "lists in the state": lambda: a_run(state={"a": [[]] * (MAX_VALUES // 2 - 20)}),
    "numbers in the state": lambda: a_run(state={"a": [1] * (MAX_VALUES - 20)}),
    "objects of the client": lambda: a_run(forwardedProps={"a": [{"k": 1}] * (MAX_VALUES // 2 - 20)}),
    "keys of the state": lambda: a_run(state={f"k{n}": n for n in range(MAX_VALUES - 20)}),
    "tools of one name": lambda: a_run(tools=[{"name": "t", "description": "", "parameters": {"a": [1] * 190}}] * 1000),
    "things to know": lambda: a_run(context=[{"description": "a", "value": "b" * 4000}] * 1000),
    "letters and commas": lambda: a_run(
        messages=[{"id": "m", "role": "user", "content": "a,[{" * 250_000}], state={"a": "," * (MOST - 2_000_000)}
    ),
}
JSON = {"Content-Type": "application/json", "Accept": "text/event-stream"}


@pytest.mark.parametrize("path", ["", "/connect"])
@pytest.mark.parametrize("what", TOO_MANY)
def test_a_request_of_too_many_values_is_refused_before_it_is_read(host: HostProcess, what: str, path: str) -> None:
    """That the watch stays silent is looked at after every test here."""
    with host.client() as client:
        answer = client.post(f"/api/v1/agent/ag-ui{path}", content=TOO_MANY[what], headers=JSON)
        assert answer.status_code == 422, answer.text[-300:]
        assert "at most" in answer.json()["detail"]
        assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize("what", JUST_FIT)
def test_the_largest_request_of_an_ag_ui_client_holds_up_nobody(host: HostProcess, what: str) -> None:
    """Taken in, kept, handed to a runner where it fits into a run's context, and shown to a client that joins."""
    body = JUST_FIT[what]()
    assert len(body) <= MOST
    thread = {"threadId": str(uuid.uuid4()), "runId": str(uuid.uuid4())}
    body = body.replace(b'"t"', json.dumps(thread["threadId"]).encode(), 1)
    with host.client() as client:
        answer = client.post("/api/v1/agent/ag-ui", content=body, headers=JSON)
        assert answer.status_code == 200, answer.text
        assert "RUN_FINISHED" in answer.text or "payload_too_large" in answer.text
        joined = client.post("/api/v1/agent/ag-ui/connect", content=a_run(**thread), headers=JSON)
        assert joined.status_code == 200, joined.text
        again = client.post("/api/v1/agent/ag-ui", content=a_run(**thread), headers=JSON)
        assert again.status_code == 200, again.text
        assert client.get("/readyz").status_code == 200


@pytest.mark.parametrize("value", [b"[]", b'{"k":1}', b"1"])
def test_a_document_with_too_many_values_is_refused_before_it_is_read(host: HostProcess, value: bytes) -> None:
    body = b'{"metadata":{"a":[%s]}}' % b",".join([value] * (MOST // (len(value) + 1)))
    with host.client() as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post("/api/v1/knowledge/handbook/documents", content=body, headers=headers)
        assert answer.status_code == 413, answer.text[-300:]
        assert "at most 10000 values" in answer.json()["detail"]
