"""A harness turn through the whole host: what is added to it, how late its words are, how soon a cancel has an end.

    python -m bench --only harness [--quick] [--dir DIRECTORY]

What the host adds is the whole turn, from the request until its last event has arrived, less what the harness itself
takes: its start until its first instruction and its exit (both measured alone), and the time between its first
instruction and its last word (it says so itself). What is left holds everything of ours: acceptance, commits, grant,
the files laid out for the run, every line carried, the search for processes it left behind. The turns are like those
of a conversation: the runner's process of the next turn is ready when it comes, as it is a second after the last one.

The harness of the turns starts and exits within milliseconds (quick_harness.sh); that of the cancels is the fake of the
tests that speaks Claude Code's wire, and can be told to hear a cancel, or to hear nothing and let a child escape.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

FAKE = Path(__file__).parents[1] / "tests" / "harness" / "fakes" / "claude.py"
QUICK = Path(__file__).with_name("quick_harness.sh")
AGENTS = """
default_agent: quick
agents:
  quick:
    runner: "plugin:paddock/claude-code/default"
    config: {{command: "{quick}"}}
  fake:
    runner: "plugin:paddock/claude-code/default"
    config: {{command: "{fake}"}}
"""
HEARD = (b'{"type":"control_request","request_id":"1"}\n', b'{"type":"user"}\n')
PATIENCE = 20.0
CONVERSATION = 5
"""Turns in each; in the first of them more has to be laid out."""


class Client:
    """Over the plainest client there is: what it takes itself is part of every figure."""

    def __init__(self, url: str) -> None:
        self._at = urlsplit(url).netloc
        self._kept = HTTPConnection(self._at, timeout=60)

    def start(self, text: str, agent: str = "quick", thread: str = "") -> tuple[str, str, float]:
        """The run, its conversation, and how long its acceptance took."""
        thread, message = thread or str(uuid.uuid4()), {"id": "m", "role": "user", "content": text}
        body = {"threadId": thread, "runId": uuid.uuid4().hex, "messages": [message]}
        begun = time.perf_counter()
        path = f"/api/v1/agent/runs?agent={agent}"
        answer = self._post(path, {**body, "forwardedProps": {"runtime_mode": "chat"}})
        return answer["taskId"], thread, time.perf_counter() - begun

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        self._kept.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        return json.loads(self._kept.getresponse().read())

    def events(self, task: str) -> Iterator[tuple[float, dict[str, Any]]]:
        """Each event, with the time it arrived on the clock the harness uses too."""
        stream = HTTPConnection(self._at, timeout=60)
        try:
            stream.request("GET", f"/api/v1/agent/runs/{task}/events")
            for line in stream.getresponse():
                if line.startswith(b"data: "):
                    yield time.time(), json.loads(line[6:])
        finally:
            stream.close()

    def until_ready(self) -> None:
        """Wait until a process is there for the next run."""
        end = time.perf_counter() + PATIENCE
        while b'state="ready"} 1' not in self._metrics() and time.perf_counter() < end:
            time.sleep(0.02)

    def _metrics(self) -> bytes:
        self._kept.request("GET", "/metrics")
        return self._kept.getresponse().read()

    def cancel(self, task: str) -> None:
        self._post(f"/api/v1/agent/runs/{task}/cancel", {})


def turn(client: Client, data: Path, thread: str = "") -> dict[str, float]:
    """One turn whose words are times."""
    client.until_ready()
    begun = time.time()
    task, thread, accepted = client.start("stamp", thread=thread)
    late: list[float] = []
    first = ended = 0.0
    for arrived, event in client.events(task):
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            first = first or arrived
            late += [arrived - float(word) for word in event["delta"].split() if "." in word]
        ended = arrived
    born, over = next(data.glob(f"workspaces/*/{thread}/*/stamps")).read_text().split()
    return {
        "whole": ended - begun,
        "harness": float(over) - float(born),
        "accept": accepted,
        "until_born": float(born) - begun,
        "until_first": first - begun,
        "first": late[0],
        "median": statistics.median(late),
        "worst": max(late),
        "end": ended - float(over),
    }


def alone() -> tuple[float, float]:
    """How long the harness of the turns takes from being started to its first instruction, and from the end of its
    input to its end, with nobody's overhead."""
    with tempfile.TemporaryDirectory() as place:
        begun = time.time()
        child = subprocess.Popen([str(QUICK)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, cwd=place)
        assert child.stdin is not None
        assert child.stdout is not None
        child.stdin.write(b"".join(HEARD))
        child.stdin.flush()
        while b'"result"' not in child.stdout.readline():
            pass
        born = float((Path(place) / "stamps").read_text().split()[0])
        ending = time.perf_counter()
        child.stdin.close()
        child.wait(PATIENCE)
        return born - begun, time.perf_counter() - ending


def commit_seconds(place: Path) -> float:
    """What the disk takes to keep a page for good: a turn waits for that three times, however quick we are."""
    file = os.open(place / "page", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    try:
        os.write(file, bytes(4096))
        begun = time.perf_counter()
        os.fdatasync(file)
        return time.perf_counter() - begun
    finally:
        os.close(file)


def cancel(client: Client, text: str, home: str) -> tuple[float, int]:
    """Seconds from the cancel until nothing of the run was left, and how many processes outlived five seconds."""
    task, _, _ = client.start(text, "fake")
    for _, event in client.events(task):
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            break
    begun = time.perf_counter()
    client.cancel(task)
    while (left := survivors(home)) and time.perf_counter() - begun < 5.0:
        time.sleep(0.005)
    return time.perf_counter() - begun, len(left)


def survivors(home: str) -> list[int]:
    """Processes that carry the mark of a harness of this bench."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                env = (entry / "environ").read_bytes()
                dead = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z"
            except OSError:
                continue
            if b"PADDOCK_HARNESS_RUN=" in env and home.encode() in env and not dead:
                found.append(int(entry.name))
    return found


@contextmanager
def a_host(place: Path) -> Generator[Client]:
    agents = place / "agents.yaml"
    agents.write_text(AGENTS.format(fake=FAKE, quick=QUICK))
    paddock = str(Path(sys.executable).with_name("paddock"))
    flags = ["--data", str(place / "data"), "--agents", str(agents), "--port", "0", "--log-level", "error"]
    host = subprocess.Popen([paddock, "serve", *flags], stdout=subprocess.PIPE, text=True)
    try:
        yield Client(_ready(host))
    finally:
        host.terminate()
        host.wait(PATIENCE)


def _ready(host: "subprocess.Popen[str]") -> str:
    assert host.stdout is not None
    for line in host.stdout:
        if "ready at http" in line:
            return "http" + line.split("ready at http", 1)[1].split()[0]
    raise SystemExit("the host did not get ready")


def measure(turns: int, cancels: int, directory: Path | None = None) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(dir=directory) as place, a_host(Path(place)) as client:
        data = Path(place) / "data"
        client.start("stamp")
        turn(client, data)
        seen, apart, kept, thread = [], [], [], ""
        for number in range(turns):  # in turns: the machine is as slow for the one as for the other
            thread = thread if number % CONVERSATION else str(uuid.uuid4())
            seen.append(turn(client, data, thread))
            apart.append(alone())
            kept.append(commit_seconds(Path(place)))
        heard = [cancel(client, "hang", place) for _ in range(cancels)]
        deaf = [cancel(client, "deaf", place) for _ in range(cancels)]
    one: Callable[[str], float] = lambda name: statistics.median(each[name] for each in seen)  # noqa: E731
    born, gone = (statistics.median(each[part] for each in apart) for part in (0, 1))
    each_turn = [each["whole"] - each["harness"] - born - gone for each in seen]
    return {
        "turns": turns,
        "accept_ms_p50": _ms(one("accept")),
        "until_harness_begins_ms_p50": _ms(one("until_born")),
        "first_delta_after_question_ms_p50": _ms(one("until_first")),
        "first_delta_late_ms_p50": _ms(one("first")),
        "first_delta_late_ms_max": _ms(max(each["first"] for each in seen)),
        "delta_late_ms_p50": _ms(one("median")),
        "end_ms_p50": _ms(one("end")),
        "harness_start_ms_p50": _ms(born),
        "harness_exit_ms_p50": _ms(gone),
        "disk_commit_ms_p50": _ms(statistics.median(kept)),
        "overhead_ms_p50": _ms(statistics.median(each_turn)),
        "overhead_of_first_turns_ms_p50": _ms(statistics.median(each_turn[::CONVERSATION])),
        "overhead_ms_lowest": _ms(min(each_turn)),
        "cancels": cancels * 2,
        "cancel_heard_ms_p50": _ms(statistics.median(each[0] for each in heard)),
        "cancel_heard_ms_max": _ms(max(each[0] for each in heard)),
        "cancel_not_heard_ms_p50": _ms(statistics.median(each[0] for each in deaf)),
        "cancel_not_heard_ms_max": _ms(max(each[0] for each in deaf)),
        "survivors": sum(each[1] for each in (*heard, *deaf)),
    }


def _ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


LINES = (
    ("overhead per turn, what the harness itself takes excluded, p50 [ms]", "overhead_ms_p50", 20.0),
    ("the same, only the first turns of conversations, p50 [ms]", "overhead_of_first_turns_ms_p50", 20.0),
    ("the same, the turn least disturbed [ms]", "overhead_ms_lowest", 20.0),
    ("beside it, for the reader: one commit of this disk alone, p50 [ms]", "disk_commit_ms_p50", None),
    (
        "first delta after the question, a harness that starts at once, p50 [ms]",
        "first_delta_after_question_ms_p50",
        None,
    ),
    ("first delta after the harness wrote it, p50 [ms]", "first_delta_late_ms_p50", 50.0),
    ("first delta after the harness wrote it, max [ms]", "first_delta_late_ms_max", 50.0),
    ("any delta after the harness wrote it, p50 [ms]", "delta_late_ms_p50", None),
    ("cancel that the harness hears, until nothing is left, max [ms]", "cancel_heard_ms_max", 1000.0),
    ("cancel that it does not hear, a child of it escaped, max [ms]", "cancel_not_heard_ms_max", 5000.0),
    ("processes left five seconds after a cancel", "survivors", 0.0),
)


def run(*, quick: bool, directory: Path | None = None) -> None:
    """Measure and print. Targets are printed, not enforced."""
    before = os.getloadavg()[0]
    found = measure(5 if quick else 30, 3 if quick else 25, directory)
    print(f"harness: {found['turns']} turns, {found['cancels']} cancels, load {before:.1f} to {os.getloadavg()[0]:.1f}")
    print("| measure | figure | target | |", "|---|---|---|---|", sep="\n")
    for words, name, target in LINES:
        verdict = "" if target is None else "met" if found[name] <= target else "MISSED"
        print(f"| {words} | {found[name]:g} | {'' if target is None else f'<= {target:g}'} | {verdict} |")
    print(json.dumps(found))
