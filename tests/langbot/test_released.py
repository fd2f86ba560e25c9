"""An unmodified plugin, written against LangBot's published SDK, in a whole host: installed, used, stopped."""

import uuid
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

from langbot.installed import a_data_directory
from walk.hosts import Event, HostProcess, alive, text_of, wait_until

TALKER = {"runner": "plugin:acme/talker/default", "tools": ["calculate"], "models": ["demo"]}
pytestmark = pytest.mark.timeout(600)
"""The first of them may have to build the plugin's environment."""

AGENTS = {
    "talker": {**TALKER, "instructions": "Be brief.", "config": {"tone": "loud", "api-key": "k-1"}},
    "other": {**TALKER, "config": {"greeting": "ahoy"}},
    "bare": {"runner": "plugin:acme/talker/default", "tools": [], "models": []},
}


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HostProcess]:
    data = a_data_directory(tmp_path_factory.mktemp("langbot") / "data")
    host = HostProcess(data, agents=yaml.safe_dump({"default_agent": "talker", "agents": AGENTS}))
    try:
        yield host.start()
    finally:
        host.stop()


def answered(host: HostProcess, text: str, *, thread: str | None = None, agent: str = "talker") -> list[Event]:
    return host.events(host.post(text, thread=thread, agent=agent).json()["taskId"])


def said(host: HostProcess, text: str, **more: str) -> str:
    events = answered(host, text, **more)
    assert events[-1].type == "RUN_FINISHED", events[-1].data
    return text_of(events)


def test_its_words_are_streamed_and_stated_once(host: HostProcess) -> None:
    events = answered(host, "good morning everybody")
    assert text_of(events) == "good morning everybody"
    assert sum(event.type == "TEXT_MESSAGE_END" for event in events) == 1
    assert host.run(events[0].data["runId"])["status"] == "completed"


def test_it_asks_the_models_it_was_granted(host: HostProcess) -> None:
    streamed, once, counted = said(host, "model say hello").split(" / ")
    assert (streamed, counted) == (once, "True")
    assert once == "You said: say hello"


def test_it_uses_the_tools_it_was_granted_and_people_see_it(host: HostProcess) -> None:
    events = answered(host, "tool 6*7")
    assert text_of(events) == "calculate says {'result': 42}"
    assert [event.data["toolCallName"] for event in events if event.type == "TOOL_CALL_START"] == ["calculate"]


def test_it_remembers_from_turn_to_turn(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    assert said(host, "count", thread=thread) == "turn 1, keys ['turns'], told []"
    again = said(host, "count", thread=thread)
    assert again == "turn 2, keys ['external.session_id', 'turns'], told ['external.session_id', 'turns']"
    assert said(host, "count").startswith("turn 1")


def test_it_reads_its_conversation_and_no_other(host: HostProcess) -> None:
    thread = str(uuid.uuid4())
    said(host, "the oolong is ready", thread=thread)
    assert said(host, "history oolong", thread=thread).endswith("3 message.received")
    assert "oolong is" not in said(host, "history nothing")


def test_it_keeps_bytes_in_its_storage(host: HostProcess) -> None:
    assert said(host, "keep a note") == "a note ['note'] not_found"


def test_settings_of_the_plugin_and_of_the_runner_both_reach_it(host: HostProcess) -> None:
    assert said(host, "settings").startswith("hello loud k-1 [{'role': 'system', 'content': 'Be brief.'}]")
    assert said(host, "settings", agent="other").startswith("ahoy calm None []")


def test_what_is_not_offered_or_not_its_own_is_refused_politely(host: HostProcess) -> None:
    codes = said(host, "refused")
    assert codes == "invalid_argument invalid_argument unauthorized invalid_argument unauthorized unauthorized"


def test_what_the_agent_was_not_given_it_cannot_have(host: HostProcess) -> None:
    end = answered(host, "tool 6*7", agent="bare")[-1]
    assert end.type == "RUN_ERROR"
    assert "'calculate' is not authorized" in end.data["message"]


def test_explicit_replies_are_messages(host: HostProcess) -> None:
    assert said(host, "reply hello you") == "hello you"
    assert said(host, "type one two three") == "one two three"
    assert said(host, "ask") == "Say yes."


def test_long_words_pass_in_pieces(host: HostProcess) -> None:
    assert said(host, "long 100000") == "长" * 100_000


def test_a_flood_is_slowed_down_and_nothing_is_lost(host: HostProcess) -> None:
    assert said(host, "flood 600").split() == [str(number) for number in range(600)]


def test_an_exception_over_there_fails_the_run_with_its_words(host: HostProcess) -> None:
    end = answered(host, "boom")[-1]
    assert (end.type, end.data["code"]) == ("RUN_ERROR", "runner.exception")
    assert "it broke" in end.data["message"]


def test_a_cancelled_run_stops_over_there_and_its_neighbours_go_on(host: HostProcess, tmp_path: Path) -> None:
    note = tmp_path / "note"
    task = host.post(f"wait {note}").json()["taskId"]
    host.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    before = processes(host)
    _cancel(host, task)
    assert host.finished(task)["status"] == "cancelled"
    wait_until(note.exists, 20, "its clean-up")
    assert said(host, "still there") == "still there"
    assert processes(host) == before


def test_one_that_will_not_stop_loses_its_process_and_the_next_run_gets_another(host: HostProcess) -> None:
    task = host.post("stubborn").json()["taskId"]
    first = host.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")[-1]
    pid = int(first.data["delta"].removeprefix("pid "))
    _cancel(host, task)
    assert host.finished(task)["status"] == "cancelled"
    wait_until(lambda: not alive(pid), 20, "the end of its process")
    assert said(host, "and again") == "and again"


def test_a_process_that_dies_fails_its_run_and_the_next_one_works(host: HostProcess) -> None:
    end = answered(host, "exit")[-1]
    assert (end.type, end.data["code"]) == ("RUN_ERROR", "langbot.process_ended")
    assert said(host, "back again") == "back again"


def test_nothing_of_it_outlives_the_host(tmp_path: Path) -> None:
    data = a_data_directory(tmp_path / "data")
    host = HostProcess(data, agents=yaml.safe_dump({"default_agent": "talker", "agents": AGENTS})).start()
    assert said(host, "hello") == "hello"
    pids = processes(host)
    assert pids
    host.kill()
    wait_until(lambda: not any(map(alive, pids)), 20, "the end of its processes")


def _cancel(host: HostProcess, task: str) -> None:
    with host.client() as client:
        client.post(f"/api/v1/agent/runs/{task}/cancel")


def processes(host: HostProcess) -> set[int]:
    """LangBot processes below this host."""
    assert host.process is not None
    below = psutil.Process(host.process.pid).children(recursive=True)
    return {one.pid for one in below if "langbot_plugin.cli" in " ".join(one.cmdline())}
