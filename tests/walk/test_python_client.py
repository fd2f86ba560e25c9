"""The Python client of the SDK against a real host: ask, follow, resume, cancel, read back, change course."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from paddock_sdk.client import Client, GoneError, RefusedError
from walk.hosts import HostProcess

GUIDE = Path(__file__).parents[2] / "docs" / "guides" / "history.md"


def test_a_conversation_by_the_python_client(host: HostProcess) -> None:
    client = Client(host.url)
    accepted = client.send("hello", agent="echo", run_id="r1")
    assert accepted == client.send("hello", thread_id=accepted.thread_id, agent="echo", run_id="r1")
    assert "".join(client.answer(accepted.task_id)) == "hello"
    assert client.ask("again", thread_id=accepted.thread_id, agent="echo") == "again"
    run = client.cancel(accepted.task_id)
    assert (run.status, run.ended, run.agent_id) == ("completed", True, "echo")
    client.rename(accepted.thread_id, "A talk")
    assert [(one.thread_id, one.title) for one in client.sessions()] == [(accepted.thread_id, "A talk")]
    while not client.search("aga").complete:  # each waits a moment; a busy machine may need several
        pass
    [found] = client.search("aga").sessions
    assert (found.session.thread_id, found.in_title, found.snippet) == (accepted.thread_id, False, "again")
    assert found.pieces == [("aga", True), ("in", False)]
    assert client.search("talk", limit=1).sessions[0].in_title
    assert client.set_me(timezone="Asia/Tokyo").timezone == "Asia/Tokyo"
    assert (client.me().locale, client.me().timezone) == (None, "Asia/Tokyo")
    [day] = client.days(accepted.thread_id)
    assert [message.content for message in day.messages] == ["hello", "hello", "again", "again"]
    client.rate(accepted.thread_id, day.messages[1].id, "up")
    edited = client.edit(accepted.thread_id, str(day.messages[2].more["itemId"]), "otherwise")
    assert "".join(client.answer(edited.task_id)) == "otherwise"
    told = [message.content for message in client.history(accepted.thread_id).messages]
    assert told == ["hello", "hello", "otherwise", "otherwise"]


def test_everything_on_the_page_about_python_works(host: HostProcess, capsys: pytest.CaptureFixture[str]) -> None:
    page = (GUIDE.parent / "python.md").read_text(encoding="utf-8")
    shown = "\n".join(re.findall(r"^```py\n(.*?)^```", page, re.DOTALL | re.MULTILINE))
    exec(shown.replace("http://127.0.0.1:8484", host.url), {})
    told = capsys.readouterr().out.splitlines()
    assert told[:3] == [
        "Hello. I am the demo model; say help to see what I can do.",
        "I will remember that your name is Ann.",
        "Your name is Ann.",
    ]
    assert told[3:5] == ["cancelled", "cancelled"]
    assert told[5].endswith(" user my name is Ann")
    assert any(line == f"{line.split()[0]} my name is Ann" for line in told), "the conversation is called by its words"
    assert told[-3].endswith("I cannot look at the image you sent.")
    assert told[-2].startswith("404 there is no agent 'nobody'; known are: ")
    assert "'assistant'" in told[-1]


def test_the_guide_finds_a_conversation_again(host: HostProcess, capsys: pytest.CaptureFixture[str]) -> None:
    client = Client(host.url)
    client.rename(client.send("这是今年的预算表", agent="echo", run_id="r1").thread_id, "Money")
    while not client.search("预算表").complete:
        pass
    [example] = re.findall(r"```py\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    exec(example.replace("http://127.0.0.1:8484", host.url), {})
    assert capsys.readouterr().out == "Money | 这是今年的预算表\n"


def test_what_goes_wrong_is_told_in_the_hosts_words(host: HostProcess) -> None:
    with pytest.raises(RefusedError, match="there is no agent 'nobody'") as refused:
        Client(host.url).ask("hi", agent="nobody")
    assert (refused.value.status, refused.value.code) == (404, "not_found")
    with pytest.raises(RefusedError, match="not known"):
        Client(host.url, "wrong").me()
    host.stop()
    with pytest.raises(GoneError, match=f"No host answers at {host.url}.*. Start one with: paddock serve"):
        Client(host.url).me()
    with pytest.raises(ValueError, match="no address of a host"):
        Client("localhost:8484")


def test_the_client_loads_without_anything_but_the_standard_library() -> None:
    code = "import sys, paddock_sdk.client; print(sorted({'pydantic', 'anyio', 'httpx'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
