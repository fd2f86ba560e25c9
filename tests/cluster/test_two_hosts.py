"""Two hosts on one PostgreSQL and one NATS. The client always talks to the one that does not own the conversation."""

import os
import signal
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import warm
from cluster.conftest import Hosts, heard
from loopback import free_port
from walk.hosts import Event, HostProcess, events_in, start_together, text_of, wait_until


@pytest.fixture(scope="module")
def two(new_host: Hosts) -> tuple[HostProcess, HostProcess]:
    hosts = new_host("here"), new_host("there")
    start_together(hosts)
    return hosts


@pytest.fixture
def here(two: tuple[HostProcess, HostProcess]) -> HostProcess:
    """Owns what is going on."""
    return two[0]


@pytest.fixture
def there(two: tuple[HostProcess, HostProcess]) -> HostProcess:
    """Whom the client talks to."""
    return two[1]


@pytest.fixture
def busy(here: HostProcess) -> Iterator[tuple[str, str]]:
    """A conversation in which a run goes on: its thread and the run."""
    thread = str(uuid.uuid4())
    task = here.post("count 2000 0.01", thread=thread, agent="slow").json()["taskId"]
    here.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    yield thread, task
    with here.client() as client:
        client.post(f"/api/v1/agent/runs/{task}/cancel")


def test_a_conversation_goes_on_at_whichever_host_is_asked(here: HostProcess, there: HostProcess) -> None:
    thread = str(uuid.uuid4())
    for host, other in [(here, there), (there, here), (here, there)]:
        task = host.post("hello", thread=thread).json()["taskId"]
        assert "hello" in text_of(other.events(task))
        assert [(one.id, one.data) for one in host.events(task)] == [(one.id, one.data) for one in other.events(task)]
    with here.client() as client:
        audit = client.get("/api/v1/audit", params={"threadId": thread}).json()["decisions"]
    assert [row["result"] for row in audit if row["action"] == "run.start"] == ["allowed"] * 3
    assert "session.append" not in [row["action"] for row in audit]  # it rested: nobody was refused


def test_hosts_that_keep_files_for_themselves_say_that_others_cannot_read_them(
    here: HostProcess, there: HostProcess
) -> None:
    assert here.says("other hosts cannot read them")
    assert there.says("other hosts cannot read them")


@pytest.mark.parametrize(
    ("bus", "says"),
    [(f"nats://127.0.0.1:{free_port()}", "the bus does not answer"), ("embedded", "set bus to nats://")],
    ids=["that does not answer", "that is not set"],
)
def test_a_host_without_a_bus_to_the_others_says_so_when_it_starts(
    here: HostProcess, new_host: Hosts, bus: str, says: str
) -> None:
    apart = new_host(f"apart-{says[:3]}", env={"PADDOCK_BUS": bus}).start()
    assert apart.says("warning", says)
    assert not any(says in line for line in here.output)
    apart.stop()


def test_a_run_is_read_live_at_the_other_host(there: HostProcess, busy: tuple[str, str]) -> None:
    before, pieces = heard(there), list[Event]()

    def enough(event: Event) -> bool:
        pieces.append(event)
        return len(pieces) % 25 == 0 and heard(there) > before + 40

    there.events(busy[1], stop_when=enough)  # or to the end of the run, if all of it came out of the log
    assert heard(there) > before + 40
    assert text_of(pieces).startswith("0 1 2 3 ")


def test_a_run_is_cancelled_at_the_other_host(here: HostProcess, there: HostProcess, busy: tuple[str, str]) -> None:
    with there.client() as client:
        answer = client.post(f"/api/v1/agent/runs/{busy[1]}/cancel")
    assert answer.status_code in {200, 202}, answer.text
    assert there.finished(busy[1], 30)["status"] == "cancelled"
    assert here.run(busy[1])["status"] == "cancelled"


def test_a_message_to_a_busy_conversation_waits_in_line_wherever_it_was_sent(
    here: HostProcess, there: HostProcess, busy: tuple[str, str]
) -> None:
    thread, live = busy
    label = uuid.uuid4().hex
    first = there.post("and then this", thread=thread, run=label, agent="echo")
    again = there.post("and then this", thread=thread, run=label, agent="echo")
    other_body = there.post("something else", thread=thread, run=label, agent="echo")
    assert (first.status_code, again.status_code, other_body.status_code) == (202, 202, 409)
    assert first.json() == again.json()
    queued = first.json()["taskId"]
    assert there.run(queued)["status"] == "queued"
    with there.client() as client:
        client.post(f"/api/v1/agent/runs/{live}/cancel")
    assert there.finished(queued)["status"] == "completed"
    assert "and then this" in text_of(here.events(queued))


def test_input_in_the_middle_of_a_run_reaches_it_from_the_other_host(here: HostProcess, there: HostProcess) -> None:
    thread = str(uuid.uuid4())
    task = here.post("listen", thread=thread, agent="listener").json()["taskId"]
    here.events(task, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    steered = there.post("turn left", thread=thread, agent="listener").json()["taskId"]
    assert text_of(there.events(task)) == "listening turn left"
    assert there.finished(steered)["status"] == "completed"


def test_controls_reach_the_owner_from_the_other_host(
    here: HostProcess, there: HostProcess, busy: tuple[str, str]
) -> None:
    thread, _ = busy
    with there.client() as client:
        invited = client.post(
            f"/api/v1/agent/sessions/{thread}/control",
            json={"subtype": "INVITE_AGENT", "payload": {"agent_id": "echo"}},
        )
        assert invited.status_code in {200, 202}, invited.text
        members = lambda: client.get(f"/api/v1/agent/sessions/{thread}").json()  # noqa: E731
        wait_until(lambda: "echo" in str(members()), 30, "echo joining")
        unknown = client.post(
            f"/api/v1/agent/sessions/{thread}/control",
            json={"subtype": "SWITCH_AGENT", "payload": {"agent_id": "nobody"}},
        )
    assert unknown.status_code == 404
    with here.client() as client:
        assert "echo" in str(client.get(f"/api/v1/agent/sessions/{thread}").json())


def test_a_conversation_in_which_something_goes_on_is_not_deleted_from_elsewhere(
    there: HostProcess, busy: tuple[str, str]
) -> None:
    with there.client() as client:
        assert client.delete(f"/api/v1/agent/sessions/{busy[0]}").status_code == 409


def test_the_whole_conversation_is_streamed_at_the_other_host(here: HostProcess, there: HostProcess) -> None:
    thread = str(uuid.uuid4())
    here.post("one", thread=thread)
    connected, seen = threading.Event(), threading.Event()

    def follow() -> None:
        with there.client() as client, client.stream("GET", f"/api/v1/agent/sessions/{thread}/events") as answer:
            for line in answer.iter_lines():
                connected.set()  # it begins with a comment: from here on nothing is missed
                if line.startswith("data:") and "second words" in line:
                    seen.set()
                    return

    reader = threading.Thread(target=follow, daemon=True)
    reader.start()
    assert connected.wait(30)
    here.post("second words", thread=thread)
    assert seen.wait(30)


ONE_ADDRESS = {"http_proxy": "http://127.0.0.1:1", "ws_proxy": "http://127.0.0.1:1", "no_proxy": "localhost"}
"""Who is started with this reaches hosts by the name of this machine, and none by its number."""


@pytest.mark.parametrize("around", [{}, ONE_ADDRESS], ids=["reaching all hosts", "reaching one address only"])
def test_a_runner_attached_to_one_host_serves_both(
    here: HostProcess, there: HostProcess, tmp_path: Path, around: dict[str, str]
) -> None:
    new = warm.run(["runner", "new", "hello", "--author", "me"], env=os.environ, cwd=tmp_path)
    assert new.returncode == 0, new.stderr
    url = here.url.replace("127.0.0.1", "localhost")
    with (tmp_path / "log").open("w") as log:
        dev = ["runner", "dev", tmp_path / "hello", "--url", url]
        attached = warm.start(dev, env={**os.environ, **around}, stderr=log, stdin=warm.DEVNULL)
    try:
        for host in (here, there):
            wait_until(lambda host=host: "me/hello" in attached_to(host), 30, f"it at {host.data.name}")
            task = host.post("hi", agent="hello").json()["taskId"]
            assert text_of(host.events(task)).startswith("Hello! You said 'hi'.")
        assert (f", through {url}" in (tmp_path / "log").read_text()) == bool(around)
    finally:
        attached.send_signal(signal.SIGINT)
        attached.wait(30)
    for host in (here, there):
        wait_until(lambda host=host: "me/hello" not in attached_to(host), 30, "it being gone")


def attached_to(host: HostProcess) -> list[str]:
    with host.client() as client:
        listed = client.get("/api/v1/runners").json()["runners"]
    return [one["plugin"] for one in listed if one["state"] == "attached"]


def test_a_conversation_is_not_deleted_while_something_goes_on_in_it_at_the_other_host(
    here: HostProcess, there: HostProcess
) -> None:
    thread = str(uuid.uuid4())
    there.finished(there.post("hello", thread=thread).json()["taskId"])  # remembered there, and at rest
    live = here.post("count 2000 0.01", thread=thread, agent="slow").json()["taskId"]
    here.events(live, stop_when=lambda event: event.type == "TEXT_MESSAGE_CONTENT")
    with there.client() as client:
        assert client.delete(f"/api/v1/agent/sessions/{thread}").status_code == 409
        assert there.run(live)["status"] == "running"
        client.post(f"/api/v1/agent/runs/{live}/cancel")
    assert there.finished(live)["status"] == "cancelled"


def test_a_conversation_that_another_host_only_looked_into_is_deleted_wherever_that_is_asked(
    here: HostProcess, there: HostProcess
) -> None:
    thread, label = str(uuid.uuid4()), uuid.uuid4().hex
    first = here.post("hello", thread=thread, run=label)
    here.finished(first.json()["taskId"])
    assert there.post("hello", thread=thread, run=label).json() == first.json()
    with here.client() as client:
        answer = client.delete(f"/api/v1/agent/sessions/{thread}")
        assert answer.status_code == 204, answer.text
        audit = client.get("/api/v1/audit", params={"threadId": thread}).json()["decisions"]
    assert [row["result"] for row in audit if row["action"] == "session.delete"] == ["allowed"]
    assert there.post("hello", thread=thread).status_code == 404


@pytest.mark.spec("http/sessions-deleted-stream")
def test_readers_at_every_host_are_told_that_their_conversation_was_deleted(
    here: HostProcess, there: HostProcess
) -> None:
    thread = str(uuid.uuid4())
    here.finished(here.post("hello", thread=thread).json()["taskId"])
    open_now, told = threading.Barrier(3), dict[str, list[dict[str, Any]]]()

    def follow(host: HostProcess) -> None:
        with host.client() as client, client.stream("GET", f"/api/v1/agent/sessions/{thread}/events") as answer:
            open_now.wait(30)
            told[host.url] = [event.data for event in events_in(answer.iter_lines())]

    readers = [threading.Thread(target=follow, args=(host,)) for host in (here, there)]
    for reader in readers:
        reader.start()
    open_now.wait(30)
    with there.client() as client:
        assert client.delete(f"/api/v1/agent/sessions/{thread}").status_code == 204
    for reader in readers:
        reader.join(60)
    assert [[event["subtype"] for event in events] for events in told.values()] == [["SESSION_DELETED"]] * 2
