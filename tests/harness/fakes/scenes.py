"""What the fake harnesses do for a prompt. Each fake says it on its own wire; standard library only."""

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path
from typing import Any

CALL = {"command": "rm x"}
OPTIONS = [{"label": "Tea", "description": "green"}, {"label": "Coffee", "description": "black"}]
QUESTION = {"questions": [{"question": "What will you drink?", "header": "Drink", "options": OPTIONS}]}


class Fake:
    """One side of a wire: what a scene needs to be said and heard."""

    home = Path()

    def piece(self, text: str) -> None: ...
    def whole(self, text: str) -> None: ...
    def tool(self, call_id: str, name: str, parameters: dict[str, Any]) -> None: ...
    def tool_end(self, call_id: str, text: str, *, failed: bool = False) -> None: ...
    def ask(self, call_id: str, name: str, parameters: dict[str, Any]) -> str:
        """allow, deny or stop."""
        return "deny"

    def over(self) -> None: ...
    def fail(self, text: str) -> None: ...
    def interrupted(self) -> None: ...
    def until_interrupted(self) -> None: ...
    def steered(self) -> str:
        """The words that came in the middle of the turn."""
        return ""

    def late(self) -> None:
        """Words that come when the turn is over already."""

    # --- shared ---------------------------------------------------------------------------------------------------

    def write(self, value: object) -> None:
        print(json.dumps(value), flush=True)

    def read(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            sys.exit(0)
        return json.loads(line)

    def say(self, text: str) -> None:
        for word in text.split(" "):
            self.piece(word + " ")
        self.whole("".join(word + " " for word in text.split(" ")))

    def begin(self, session: str | None) -> str:
        """A session is a file; a new one is told from one that is gone on with."""
        self.home.mkdir(parents=True, exist_ok=True)
        self.session = session or str(uuid.uuid4())
        self.file = self.home / f"fake-{self.session}"
        if session is None:
            self.file.write_text("0")
        note = {"argv": sys.argv, "env": dict(os.environ), "session": session, "pid": os.getpid()}
        with Path("started.jsonl").open("a") as file:
            file.write(json.dumps(note) + "\n")
        return self.session

    def known(self, session: str) -> bool:
        return (self.home / f"fake-{session}").exists()

    def turn(self) -> int:
        number = int(self.file.read_text()) + 1
        self.file.write_text(str(number))
        return number


def dead_servers() -> list[str]:
    """Further MCP servers that it was told not to reach."""
    return [word.partition("=")[2] for word in sys.argv if word.startswith("--dead=")]


def play(fake: Fake, said: Any) -> None:
    """What was said is text, or a list of blocks that begins with text; the other blocks are pictures."""
    number, [first, *pictures] = fake.turn(), said if isinstance(said, list) else [{"text": said}]
    page, _, text = str(first["text"]).rpartition("\n---\n\n")
    with Path("pages.jsonl").open("a") as file:
        file.write(json.dumps(page) + "\n")
    with Path("pictures.jsonl").open("a") as file:
        file.write("".join(json.dumps(picture) + "\n" for picture in pictures))
    with Path("prompts.jsonl").open("a") as file:
        file.write(json.dumps(text) + "\n")
    match text.split("\n", maxsplit=1)[0].split(" ", maxsplit=1)[0]:
        case "hello":
            fake.say(f"hi from turn {number}")
        case "tool":
            fake.say("Let me look.")
            fake.tool("t1", "Look", {"path": "."})
            fake.tool_end("t1", "a.txt")
            fake.tool("t2", "Look", {"path": "b"})
            fake.tool_end("t2", "no such file", failed=True)
            fake.say("One file.")
        case "ask" | "The" if "did not approve" not in text:
            verdict = fake.ask("t1", "Remove", CALL)
            if verdict == "stop":
                fake.interrupted()
                return
            if verdict == "allow":
                fake.tool("t1", "Remove", CALL)
                fake.tool_end("t1", "gone")
            fake.say("Removed." if verdict == "allow" else "Then not.")
        case "drinks":
            verdict = fake.ask("q1", "AskUserQuestion", QUESTION)
            if verdict == "stop":
                fake.interrupted()
                return
            fake.say("I choose myself.")
        case "hang":
            fake.piece("Wait")
            fake.until_interrupted()
            fake.interrupted()
            return
        case "deaf":
            deaf(fake)
        case "die":
            fake.piece("half a w")
            print("something broke inside", file=sys.stderr, flush=True)
            sys.exit(0)
        case "big":
            fake.tool("t1", "Read", {"path": "big"})
            fake.tool_end("t1", "line\n" * 600_000)
            fake.say("Read it.")
        case "noise":
            print("Welcome!\n[1]\n\n{broken", flush=True)
            fake.write({"type": "unknown", "method": "unknown/thing", "params": {}})
            fake.say("clear")
        case "fail":
            fake.fail("the model is overloaded")
            return
        case "steer":
            fake.piece("So far. ")
            fake.whole("So far. ")
            fake.say(f"You added: {fake.steered()}")
        case "late":
            fake.say("Before.")
            fake.late()
            return
        case "stamp":
            for _ in range(20):
                fake.piece(f"{time.time():.6f} ")
                time.sleep(0.005)
            fake.whole("stamped")
        case _:
            fake.say(f"you said {text}")
    fake.over()


def deaf(fake: Fake) -> None:
    """Hears nothing, ends for nothing but a kill, and has a child in a session of its own."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "300"], start_new_session=True)
    Path("escaped.pid").write_text(str(child.pid))
    fake.piece("deaf")
    while True:
        time.sleep(10)
