"""Requests as large as a door takes them hold up nobody: the host's own watch says whether they did."""

import json
from typing import Any

import pytest

from walk.hosts import HostProcess

MOST = 8 * 1024 * 1024


def a_run(**more: Any) -> bytes:
    whole = {"threadId": "t", "runId": "r", "state": {}, "tools": [], "context": [], "forwardedProps": {}}
    return json.dumps(
        {**whole, "messages": [{"id": "m", "role": "user", "content": "hi"}], **more}, separators=(",", ":")
    ).encode()


BODIES = {
    "parts of a message": a_run(
        messages=[{"id": "m", "role": "user", "content": [{"type": "text", "text": "x"}] * (MOST // 31)}]
    ),
    "lists in the state": a_run(state={"a": [[]] * (MOST // 4)}),
    "tools": a_run(tools=[{"name": f"t{i}", "description": "", "parameters": {}} for i in range(MOST // 60)]),
}


@pytest.mark.parametrize("what", BODIES)
def test_the_largest_request_of_an_ag_ui_client_is_read_beside_the_event_loop(host: HostProcess, what: str) -> None:
    """That the watch stays silent is looked at after every test here."""
    with host.client() as client:
        headers = {"Content-Type": "application/json"}
        answer = client.post("/api/v1/agent/ag-ui/connect", content=BODIES[what], headers=headers)
        assert answer.status_code in {200, 404}, answer.text
        assert client.get("/readyz").status_code == 200
