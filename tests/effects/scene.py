"""A host with every kind of effect under way at once, something that strikes, and what is left of each afterwards."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from effects import table
from effects.stub import Stub
from loopback import free_port
from paddock.rules.access.signatures import webhook_headers
from patience import at_most
from postgres_server import Server, database_of
from walk.hosts import HostProcess, wait_until

HERE = Path(__file__).parent
SECRET = "a-secret-of-the-chat-platform"
PATIENT = 60.0
SETTLED_SECONDS = 10.0
"""How long after the store is back the record may take to say what became of everything."""
FULL_MB = 24


@dataclass
class Seen:
    """What was seen of one kind of call."""

    effects: int = 0
    told: list[str] = field(default_factory=list[str])
    record: list[str] = field(default_factory=list[str])
    problems: list[str] = field(default_factory=list[str])
    """Of writes: what was told of one and is not so."""


class Scene:
    """Hosts, the stub they have their effects at, and the runs that are under way."""

    def __init__(
        self, home: Path, stub: Stub, server: Server | None = None, hosts: int = 1, disk: Path | None = None
    ) -> None:
        self.home, self.stub, self.disk = home, stub, disk or home
        self.server, self.store = server, server.new_database() if server else ""
        self.http_port = free_port()
        self.hosts = [self._host(f"host-{number}", hosts) for number in range(hosts)]
        self.host = self.hosts[0]
        self.tasks: dict[str, str] = {}
        self.round = 0
        self._mcp: subprocess.Popen[bytes] | None = None
        self._approving: list[threading.Thread] = []

    # --- set up

    def _host(self, name: str, hosts: int) -> HostProcess:
        data = self.disk / name
        data.mkdir(parents=True)
        hook = f"http://{self.stub.address}/hook"
        chat = f'secret = "env:CHAT_SECRET"\nwebhook = "{hook}"\nuser = "dev"\nactions = ["message.edit"]\n'
        (data / "paddock.toml").write_text(f"[platforms.chat]\n{chat}")
        shutil.copy(HERE / "own_tools.py", self.disk / f"{name}_own_tools.py")
        env = {
            "CHAT_SECRET": SECRET,
            "EFFECTS_STUB": self.stub.address,
            "PADDOCK_HOST_CALL_RATE": "0",
            "PADDOCK_CALLS_PER_SECOND": "0",
            "PADDOCK_DISCOVER_MODELS": "false",
        }
        if self.store:
            env["PADDOCK_STORE"] = self.store
        agents = self._agents(f"{name}_own_tools.py")
        return HostProcess(data, agents=json.dumps(agents), plugins=(HERE / "caller",), env=env)

    def _agents(self, tools: str) -> Mapping[str, Any]:
        caller = {
            "runner": "plugin:test/caller/default",
            "tools": "all",
            "models": {"real": ["invoke", "stream"]},
            "platform_actions": ["message.edit"],
        }
        server = str(HERE / "mcp_tools.py")
        begun = at_most(1.0)
        return {
            "default_agent": "caller",
            "agents": {"caller": caller, "hasty": {**caller, "deadline_seconds": begun}},
            "models": {"real": {"provider": "openai", "base_url": f"http://{self.stub.address}/v1", "retries": 0}},
            "tools": [tools],
            "mcp_servers": {
                "over_stdio": {"command": sys.executable, "args": [server, self.stub.address, "over_stdio__book"]},
                "over_http": {"url": f"http://127.0.0.1:{self.http_port}/mcp"},
            },
        }

    def start(self) -> None:
        arguments = [str(HERE / "mcp_tools.py"), self.stub.address, "over_http__book", str(self.http_port)]
        self._mcp = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for host in self.hosts:
            self.start_host(host)

    def start_host(self, host: HostProcess) -> None:
        before = len(host.output)
        host.start()

        def up(name: str) -> bool:
            return any("an MCP server is up" in line and name in line for line in host.output[before:])

        wait_until(lambda: up("over_stdio") and up("over_http"), PATIENT, "the MCP servers")

    def close(self) -> None:
        self.stub.release()
        for host in self.hosts:
            if host.process is not None and host.process.poll() is None:
                with suppress(ProcessLookupError):
                    os.kill(host.process.pid, signal.SIGCONT)
            host.end()
        if self._mcp is not None:
            self._mcp.kill()
            self._mcp.wait()

    # --- what is under way

    def begin(self, agent: str = "caller") -> None:
        """Everything at once; back when each effect has begun and is held."""
        self.stub.begin_anew()
        self.round += 1
        self.tasks = {}
        for kind in (*table.TOOLS, *table.MODELS, *table.WRITES):
            answer = self.host.post(self._asked(kind), agent=agent)
            assert answer.status_code == 202, answer.text
            self.tasks[kind] = answer.json()["taskId"]
        for kind in table.OUTSIDE:
            self.tasks[kind] = self._chat(self._asked(kind))
        wait_until(self._asked_for_approval, PATIENT, "the platform action being asked for")
        self._approving.append(threading.Thread(target=self._approve, daemon=True))
        self._approving[-1].start()
        held = {*table.KINDS} - {*table.WRITES}
        wait_until(lambda: held <= {*self.stub.count}, PATIENT, f"all effects beginning, now {self.stub.count}")
        wait_until(lambda: all(len(self.told(kind)) > 3 for kind in table.WRITES), PATIENT, "writes")

    def _asked(self, kind: str) -> str:
        asked = {"kind": kind, "log": str(self._log(kind)), "enough": str(self._enough), "pid": str(self.home / "pid")}
        return json.dumps(asked)

    @property
    def _enough(self) -> Path:
        return self.home / f"enough-{self.round}"

    def _log(self, kind: str) -> Path:
        return self.home / f"{kind.replace(' ', '-')}-{self.round}.log"

    def _chat(self, text: str) -> str:
        told = {"event_id": uuid.uuid4().hex, "event_type": "message.received", "conversation_id": uuid.uuid4().hex}
        body = json.dumps({**told, "actor": {"actor_id": "u-1"}, "input": {"text": text}}).encode()
        headers = {"Content-Type": "application/json"}
        headers |= webhook_headers(SECRET.encode(), told["event_id"], time.time(), body)
        with self.host.client() as client:
            answer = client.post("/api/v1/events?platform=chat", content=body, headers=headers)
        assert answer.status_code == 202, answer.text
        return answer.json()["taskId"]

    def _asked_for_approval(self) -> str | None:
        with self.host.client() as client:
            found = client.get("/api/v1/approvals").json()["approvals"]
        mine = (one["approvalId"] for one in found if one["taskId"] == self.tasks["a platform action"])
        return next(mine, None)

    def _approve(self) -> None:
        with suppress(httpx.HTTPError), self.host.client() as client:
            client.post(f"/api/v1/approvals/{self._asked_for_approval()}", json={"decision": "grant"})

    def told(self, kind: str) -> list[dict[str, Any]]:
        log = self._log(kind)
        lines = log.read_text().splitlines() if log.exists() else []
        return [json.loads(line) for line in lines if line.endswith("}")]

    def finish(self) -> None:
        """Let everything end that still goes on."""
        self._enough.touch()
        self.stub.release()

    def runs_end(self, kinds: Iterable[str] = (*table.TOOLS, *table.MODELS, *table.WRITES)) -> None:
        for kind in kinds:
            self.host.finished(self.tasks[kind], PATIENT)

    # --- what is on record

    def rows(self, sql: str) -> list[list[str]]:
        if self.server is not None:
            found = self.server.sql(sql, database_of(self.store))
            return [line.split("|") for line in found.splitlines()]
        with closing(sqlite3.connect(f"file:{self.host.data / 'paddock.db'}?mode=ro", uri=True)) as database:
            return [[str(value) for value in row] for row in database.execute(sql)]

    def record(self, kind: str) -> list[str]:
        run = self.tasks[kind]
        if kind in table.TOOLS:
            sql = f"select status from tool_calls where run_id = '{run}'"
        elif kind in table.MODELS:
            sql = f"select result from model_usage where run_id = '{run}'"
        elif kind == "a platform action":
            mine = f"select approval_id from approvals where run_id = '{run}'"
            sql = f"select result from approval_steps where step = 'done' and approval_id in ({mine})"
        else:
            sql = f"select status from deliveries where run_id = '{run}'"
        return [row[0] for row in self.rows(sql)]

    def settles(self, kinds: Iterable[str], seconds: float = SETTLED_SECONDS) -> None:
        """Nothing of these is open any more, soon."""
        began = time.monotonic()
        for kind in kinds:
            while not self._is_settled(kind) and time.monotonic() < began + at_most(seconds):
                time.sleep(0.05)
        print(f"settled within {time.monotonic() - began:.1f} s")

    def _is_settled(self, kind: str) -> bool:
        found = self.record(kind)
        return bool(found) and not {"started", "pending"} & {*found}

    def seen(self) -> dict[str, Seen]:
        found = {kind: self._seen(kind) for kind in table.KINDS if kind not in table.WRITES}
        return found | {kind: self._seen_of_writes(kind) for kind in table.WRITES}

    def _seen(self, kind: str) -> Seen:
        effects = len(self.stub.ids) if kind == "a message" else self.stub.count[kind]
        return Seen(effects, [one["told"] for one in self.told(kind)], self.record(kind))

    def _seen_of_writes(self, kind: str) -> Seen:
        run = self.tasks[kind]
        if kind == "artifacts.create":
            written = Counter(row[0] for row in self.rows(f"select name from artifacts where run_id = '{run}'"))
        else:
            sql = f"select resource from audit where run_id = '{run}' and action = '{kind}' and result = 'allowed'"
            written = Counter(row[0] for row in self.rows(sql))
        last = {f"n{one['number']}": one["told"] for one in self.told(kind)}
        problems = [f"{key} was done {times} times" for key, times in written.items() if times > 1]
        for key, told in last.items():
            if (told == "ok" and key not in written) or (told == "retryable" and key in written):
                problems.append(f"{key}: told {told}, done {written[key]} times")
        return Seen(max(written.values(), default=0), sorted({*last.values()}), [], problems)


@contextmanager
def a_small_disk(place: Path) -> Generator[Path]:
    place.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={FULL_MB}m", "tmpfs", str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)


@contextmanager
def full(place: Path, is_full: Callable[[], bool]) -> Generator[None]:
    """While inside, nothing more can be written there."""
    filler = place / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"x" * 4096)
    wait_until(is_full, PATIENT, "the host noticing")
    try:
        yield
    finally:
        filler.unlink()


@contextmanager
def a_scene(home: Path, server: Server | None = None, hosts: int = 1, disk: Path | None = None) -> Generator[Scene]:
    with ExitStack() as stack:
        stub = Stub()
        stack.callback(stub.close)
        scene = Scene(home, stub, server, hosts, disk)
        stack.callback(scene.close)
        scene.start()
        yield scene
