"""`make walk`: send one AG-UI message through a real host and print the functions it crosses, in order.

The host runs in a process of its own, with a profile function that notes each call of our code. What the host also
calls while nobody asks for anything (heartbeats, chores) is left out. `tests/test_walked.py` compares the stops with
the table in ARCHITECTURE.md.
"""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from loopback import free_port

ROOT = Path(__file__).parent.parent
SOURCES = f"{ROOT / 'src'}{os.sep}"
IDLE_SECONDS = 3.0
WARM_UPS = 3
AGENT = "echo"
"""Runs in a process of its own, answers with two results, needs no model."""


@dataclass(frozen=True)
class Call:
    """One function that a message crossed: the module's path below `src/paddock`, and the function's name."""

    module: str
    function: str


def walk() -> list[Call]:
    """Start a host, send one message, return each call that it caused, in order."""
    with tempfile.TemporaryDirectory(prefix="paddock-walk-") as home:
        notes = Path(home) / "calls.json"
        command = [sys.executable, str(Path(__file__)), str(notes), home]
        subprocess.run(command, check=True, timeout=110, cwd=home, stdout=subprocess.DEVNULL)
        return [Call(*found) for found in json.loads(notes.read_text())]


def stops_of(calls: Sequence[Call]) -> dict[str, list[str]]:
    """The modules in the order in which the message enters them first, each with its functions in the same order."""
    stops: dict[str, list[str]] = {}
    for call in calls:
        functions = stops.setdefault(call.module, [])
        if call.function not in functions:
            functions.append(call.function)
    return stops


def table_of(page: str) -> list[list[str]]:
    """The files or folders of each row of the walk's table; a bare file name is in the folder of the one before it."""
    rows = re.findall(r"^\| \d+ \| (.+?) \|", page, re.MULTILINE)
    return [_paths(row) for row in rows]


def _paths(row: str) -> list[str]:
    paths: list[str] = []
    for path in re.findall(r"`([\w/]+(?:\.py|/))`", row):
        folder = paths[-1].rpartition("/")[0] if paths and "/" not in path else ""
        paths.append(f"{folder}/{path}" if folder else path)
    return paths


def first_missing(table: Sequence[Sequence[str]], calls: Sequence[Call]) -> str | None:
    """The first file of the table that the message does not come to after the rows before it."""
    position = 0
    for number, row in enumerate(table, 1):
        found = [_next(path, calls, position) for path in row]
        for path, index in zip(row, found, strict=True):
            if index is None:
                return f"stop {number}: {path}"
        position = min(index for index in found if index is not None)
    return None


def _next(path: str, calls: Sequence[Call], position: int) -> int | None:
    within = (lambda module: module.startswith(path)) if path.endswith("/") else (lambda module: module == path)
    return next((index for index in range(position, len(calls)) if within(calls[index].module)), None)


class Tracer:
    """Notes the calls of our own functions while it is told to. Installed for every thread of the host."""

    def __init__(self) -> None:
        self.calls: list[CodeType] = []
        self.noting = False

    def note(self, frame: FrameType, event: str, _: Any) -> None:
        if self.noting and event == "call" and frame.f_code.co_filename.startswith(SOURCES):
            self.calls.append(frame.f_code)

    def take(self) -> list[CodeType]:
        self.noting, taken, self.calls = False, self.calls, []
        return taken


def _trace(notes: Path, port: int, tracer: Tracer) -> None:
    """The client: warm the host up, listen to it while it is idle, send the message. Ends the host when it is done."""
    try:
        _wait_until_ready(port)
        for number in range(WARM_UPS):
            _ask(port, f"warm-{number}")
        tracer.noting = True
        time.sleep(IDLE_SECONDS)  # what is measured is that nothing is asked for so long
        idle = set(tracer.take())
        tracer.noting = True
        _ask(port, "walked")
        crossed = [code for code in tracer.take() if code not in idle and not code.co_name.startswith("<")]
        notes.write_text(json.dumps([_named(code) for code in crossed]))
    finally:
        os.kill(os.getpid(), signal.SIGTERM)


def _named(code: CodeType) -> tuple[str, str]:
    path = Path(code.co_filename).relative_to(SOURCES)
    return path.as_posix().removeprefix("paddock/"), code.co_qualname


def _wait_until_ready(port: int) -> None:
    end = time.monotonic() + 60
    while time.monotonic() < end:
        try:
            client = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
            client.request("GET", "/readyz")
            if client.getresponse().status == 200:
                return
        except OSError:
            pass
        time.sleep(0.05)
    raise TimeoutError("the host is not ready after 60 s")


def _ask(port: int, thread: str) -> None:
    body = {"threadId": thread, "runId": "1", "messages": [{"id": "m1", "role": "user", "content": "hello"}]}
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    client.request("POST", f"/api/v1/agent/ag-ui/{AGENT}", json.dumps(body), {"Content-Type": "application/json"})
    answer = client.getresponse()
    said = answer.read().decode()
    client.close()
    if answer.status != 200 or "RUN_FINISHED" not in said:
        raise AssertionError(f"the message was not answered: {answer.status} {said[:500]}")


def _host(notes: Path, home: Path) -> None:
    from paddock.cli.main import main

    tracer, port = Tracer(), free_port()
    sys.setprofile(tracer.note)
    threading.setprofile(tracer.note)
    threading.Thread(target=_trace, args=(notes, port, tracer), daemon=True).start()
    sys.argv = ["paddock", "serve", "--port", str(port), "--data", str(home / "data")]
    main()


def report(calls: Sequence[Call]) -> str:
    """The stops, one module a line, and the two figures."""
    stops = stops_of(calls)
    lines = [f"{number:3} {module:42} {', '.join(names)}" for number, (module, names) in enumerate(stops.items(), 1)]
    functions = sum(len(names) for names in stops.values())
    return "\n".join([*lines, f"one message crosses {len(stops)} modules, {functions} functions"])


if __name__ == "__main__":
    if len(sys.argv) > 1:
        _host(Path(sys.argv[1]), Path(sys.argv[2]))
    else:
        print(report(walk()))
