"""A question that an agent asks in the middle of its work, answered by its user in the next request."""

import uuid
from typing import Any

import pytest

from walk.hosts import Event, HostProcess, events_in, text_of

AGENTS = """
default_agent: careful
agents:
  careful: {runner: "plugin:paddock/local-agent/default", config: {model: demo, approve: [calculate]}}
"""


def sent(host: HostProcess, thread: str, **more: Any) -> list[Event]:
    body = {"threadId": thread, "runId": uuid.uuid4().hex, "messages": [], **more}
    with host.client() as client, client.stream("POST", "/api/v1/agent/ag-ui/careful", json=body) as answer:
        assert answer.status_code == 200, answer.read()
        return list(events_in(answer.iter_lines()))


@pytest.mark.parametrize(("approved", "says"), [(True, "calculate: 42"), (False, "calculate failed")])
def test_what_an_agent_asks_is_answered_and_it_goes_on(new_host: Any, approved: bool, says: str) -> None:
    host, thread = new_host(agents=AGENTS).start(), str(uuid.uuid4())
    asked = sent(
        host, thread, messages=[{"id": "1", "role": "user", "content": 'call calculate {"expression": "6*7"}'}]
    )
    [question] = asked[-1].data["outcome"]["interrupts"]
    answer = {"interruptId": question["id"], "status": "resolved", "payload": {"approved": approved}}
    assert text_of(sent(host, thread, resume=[answer])).startswith(says)


def test_a_word_that_is_neither_yes_nor_no_leaves_the_question_open(new_host: Any) -> None:
    host, thread = new_host(agents=AGENTS).start(), str(uuid.uuid4())

    def said(words: str) -> list[Event]:
        return sent(host, thread, messages=[{"id": uuid.uuid4().hex, "role": "user", "content": words}])

    first, again = said('call calculate {"expression": "6*7"}'), said("yes but only 3")
    assert again[-1].data["outcome"] == first[-1].data["outcome"]
    assert "calculate" in text_of(again)
    assert text_of(said("yes please")).startswith("calculate: 42")
