"""A real host in its own process, and a client that reads its streams. For tests that start, kill and restart it."""

import json
import os
import re
import signal
import subprocess
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

import stalled
import warm
from loopback import NO_TLS
from warm import PADDOCK, PIPE, STDOUT

NASTY = Path(__file__).parent / "nasty"
READY = re.compile(r"ready at (http://\S+)")
TERMINAL = {"RUN_FINISHED", "RUN_ERROR"}


def wait_until(true: Callable[[], object], seconds: float = 30.0, what: str = "it") -> None:
    """Poll until something is so; fail with a sentence when it never is."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"{what} did not happen within {seconds} s"
        time.sleep(0.01)


SHARED = {"PADDOCK_SECRET": "what all hosts of one test have alike"}


@dataclass
class Event:
    id: str
    data: dict[str, Any]

    @property
    def type(self) -> str:
        return self.data["type"]


def events_in(lines: Iterator[str]) -> Iterator[Event]:
    """The events of a server-sent stream."""
    cursor = ""
    for line in lines:
        if line.startswith("id: "):
            cursor = line[4:]
        elif line.startswith("data: "):
            yield Event(cursor, json.loads(line[6:]))


def text_of(events: list[Event]) -> str:
    return "".join(event.data["delta"] for event in events if event.type == "TEXT_MESSAGE_CONTENT")


@dataclass
class HostProcess:
    """`paddock serve` as a person would start it."""

    data: Path
    agents: str | None = None
    plugins: tuple[Path, ...] = ()
    env: dict[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    fresh: bool = False
    """Started as the program itself: where what is told of is the start."""
    process: "subprocess.Popen[str] | warm.Process | None" = None
    url: str = ""
    output: list[str] = field(default_factory=list)
    agents_file: Path = Path()

    def __post_init__(self) -> None:
        if self.agents_file == Path():
            self.agents_file = self.data.parent / f"{self.data.name}-agents.yaml"

    @property
    def at_work(self) -> "HostProcess":
        """Where the last message went."""
        return self

    def start(self, *, seconds: float = 60.0) -> "HostProcess":
        command = ["serve", "--data", str(self.data), "--port", "0", *self.extra]
        if self.agents is not None:
            self.agents_file.write_text(self.agents)
            command += ["--agents", str(self.agents_file)]
        for directory in self.plugins:
            command += ["--plugins", str(directory)]
        env = {key: value for key, value in os.environ.items() if not key.startswith("PADDOCK_")} | self.env
        if "PADDOCK_STORE" in env:
            env = SHARED | env
        if self.fresh:
            process = subprocess.Popen([PADDOCK, *command], stdout=PIPE, stderr=STDOUT, text=True, env=env)
        else:
            process = warm.start(command, stdout=PIPE, stderr=STDOUT, env=env)
        self.process, self.url = process, ""
        threading.Thread(target=self._read, args=(process,), daemon=True).start()
        wait_until(lambda: self.url or process.poll() is not None, seconds, "the host being ready")
        assert self.url, "".join(self.output)
        return self

    def _read(self, process: "subprocess.Popen[str] | warm.Process") -> None:
        assert process.stdout is not None
        for line in process.stdout:
            self.output.append(line)
            if self.fresh:
                stalled.note(line)
            if found := READY.search(line):
                self.url = found[1]

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def send_signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, seconds: float) -> int:
        """Its exit code, when it ends by itself."""
        assert self.process is not None
        return self.process.wait(seconds)

    @property
    def port(self) -> int:
        """Where it listens; while it does not, one at which nobody is."""
        return int(self.url.rpartition(":")[2] or 1)

    def says(self, *words: str) -> bool:
        """Whether one of its lines has all these words, now or soon: what it says is read on a thread of its own."""
        wait_until(lambda: any(all(word in line for word in words) for line in self.output), 30, f"it saying {words}")
        return True

    def kill(self) -> None:
        """As a power cut would, as far as a process can tell."""
        assert self.process is not None
        self.process.kill()
        self.process.wait(30)

    def end(self) -> None:
        """Whatever happened to it: it is gone now."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def stop(self) -> int:
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        return self.process.wait(60)

    def client(self, **more: Any) -> httpx.Client:
        return httpx.Client(base_url=self.url, timeout=60, verify=NO_TLS, **more)

    def post(
        self, text: str = "hello", *, thread: str | None = None, run: str | None = None, agent: str | None = None
    ) -> httpx.Response:
        body = {
            "threadId": thread or str(uuid.uuid4()),
            "runId": run or uuid.uuid4().hex,
            "messages": [{"id": "m1", "role": "user", "content": text}],
            "forwardedProps": {"runtime_mode": "chat"},
        }
        query = {"agent": agent} if agent else {}
        with self.client() as client:
            return client.post("/api/v1/agent/runs", json=body, params=query)

    def run(self, task_id: str) -> dict[str, Any]:
        with self.client() as client:
            return client.get(f"/api/v1/agent/runs/{task_id}").json()

    def events(
        self, task_id: str, *, after: str | None = None, stop_when: Callable[[Event], bool] | None = None
    ) -> list[Event]:
        """The run's events after a place, until its end or until the test has seen enough."""
        headers = {"Last-Event-ID": after} if after else {}
        seen: list[Event] = []
        with (
            self.client() as client,
            client.stream("GET", f"/api/v1/agent/runs/{task_id}/events", headers=headers) as answer,
        ):
            assert answer.status_code == 200, answer.read()
            for event in events_in(answer.iter_lines()):
                seen.append(event)
                if stop_when is not None and stop_when(event):
                    break
        return seen

    def finished(self, task_id: str, seconds: float = 30.0) -> dict[str, Any]:
        wait_until(
            lambda: self.run(task_id)["status"] in {"completed", "failed", "cancelled"}, seconds, "the run's end"
        )
        return self.run(task_id)


def start_together(hosts: Sequence[HostProcess]) -> None:
    """All at once; one that does not start says why."""
    with ThreadPoolExecutor(len(hosts)) as pool:
        for _ in pool.map(HostProcess.start, hosts):
            pass


def alive(pid: int) -> bool:
    """Whether a process runs; one that only waits to be reaped does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False
