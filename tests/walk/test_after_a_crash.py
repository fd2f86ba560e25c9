"""kill -9 at any moment: what was accepted is there, what was running has failed visibly, and streams go on."""

import os
import random
import subprocess
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

import loopback
import warm
from needs import not_run
from walk.conftest import alone
from walk.hosts import NASTY, Event, HostProcess, events_in, text_of, wait_until

AGENTS = 'default_agent: slow\nagents:\n  slow: {runner: "plugin:test/slow/default"}\n'


@pytest.fixture
def host(new_host: Callable[..., HostProcess]) -> HostProcess:
    return new_host(agents=AGENTS, plugins=(NASTY,)).start()


def test_an_interrupted_run_fails_visibly_and_its_stream_goes_on_where_it_was(host: HostProcess) -> None:
    task = host.post("count 1000 0.02").json()["taskId"]
    seen: list[Event] = []

    with host.client() as client, client.stream("GET", f"/api/v1/agent/runs/{task}/events") as answer:
        for event in events_in(answer.iter_lines()):
            seen.append(event)
            if sum(one.type == "TEXT_MESSAGE_CONTENT" for one in seen) >= 5:
                break
        host.kill()
    host.start()
    run = host.finished(task, 30)
    assert (run["status"], run["code"]) == ("failed", "host_restarted")
    rest = host.events(task, after=seen[-1].id)
    whole = host.events(task)
    assert [(one.id, one.data) for one in seen + rest] == [(one.id, one.data) for one in whole]
    assert [event.type for event in whole].count("RUN_ERROR") == 1
    assert text_of(whole).startswith("0 1 2 3 4")
    with host.client() as client:
        asked, cut = client.get("/api/v1/agent/history", params={"threadId": run["threadId"]}).json()["messages"]
    assert (cut["content"], cut["partial"]) == (text_of(whole), True)
    assert "partial" not in asked


@pytest.mark.timeout(300)
def test_random_kills_lose_nothing_that_was_accepted(host: HostProcess) -> None:
    """Submit all the time, kill at random moments; afterwards every accepted run is there and has ended once."""
    seed = int(os.environ.get("PADDOCK_TEST_SEED") or random.randrange(1 << 30))
    chance = random.Random(seed)
    accepted: list[str] = []
    done = threading.Event()

    def submit() -> None:
        while not done.is_set():
            try:
                answer = host.post(chance.choice(["hello", "count 5 0.01"]), run=uuid.uuid4().hex)
            except httpx.HTTPError:
                done.wait(0.05)  # whoever asks without a pause keeps the host from coming back
                continue
            if answer.status_code == 202:
                accepted.append(answer.json()["taskId"])

    submitters = [threading.Thread(target=submit) for _ in range(4)]
    for thread in submitters:
        thread.start()
    try:
        for _ in range(int(os.environ.get("PADDOCK_TEST_KILLS", "4"))):
            before = len(accepted)
            wait_until(
                lambda before=before: len(accepted) > before + chance.randrange(1, 30), 60, "some runs being accepted"
            )
            host.kill()
            host.start()
    finally:
        done.set()
        for thread in submitters:
            thread.join()
    assert accepted, f"seed {seed}"
    for task in accepted:
        run = host.finished(task, 30)
        assert run["status"] in {"completed", "failed"}, f"seed {seed}: {run}"
        assert run["status"] == "completed" or run["code"] == "host_restarted", f"seed {seed}: {run}"
    for task in accepted[-20:]:
        kinds = [event.type for event in host.events(task)]
        assert sum(kind in {"RUN_FINISHED", "RUN_ERROR"} for kind in kinds) == 1, f"seed {seed}: {kinds}"


@alone
def test_a_second_host_on_the_same_directory_is_refused_with_a_sentence(host: HostProcess) -> None:
    second = warm.run(["serve", "--data", host.data, "--port", "0"], env=os.environ)
    assert second.returncode == 2
    assert str(host.pid) in second.stderr
    assert "Traceback" not in second.stderr


@alone
def test_a_full_disk_refuses_with_503_and_accepts_again_when_there_is_room(
    new_host: Callable[..., HostProcess], tmp_path: Path
) -> None:
    if os.geteuid() != 0:
        not_run("a full disk under a running host, because mounting a small one needs root")
    small = tmp_path / "small"
    small.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "tmpfs", str(small)], check=True)
    host = new_host("small/data", agents=None)
    try:
        host.start()
        assert host.events(host.post("before").json()["taskId"])[-1].type == "RUN_FINISHED"
        filler = small / "filler"
        with filler.open("wb") as file:
            try:
                while True:
                    file.write(b"x" * 65536)
                    file.flush()
            except OSError:
                pass
        refused = [host.post("x" * 9000).status_code for _ in range(40)]
        assert 503 in refused
        answer = host.post("x" * 9000)
        assert answer.status_code == 503
        assert "Retry-After" in answer.headers
        assert answer.headers["content-type"].startswith("application/problem+json")
        assert loopback.get(f"{host.url}/readyz").status_code == 503
        filler.unlink()
        wait_until(lambda: host.post("after").status_code == 202, 30, "accepting again")
        assert host.stop() == 0
    finally:
        host.end()
        subprocess.run(["umount", str(small)], check=True)
