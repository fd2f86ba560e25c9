"""The page on agents that exist already is run as it stands: an AG-UI service, an agents file, a conversation."""

import json
import re
import subprocess
import sys
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from loopback import free_port
from walk.hosts import HostProcess, wait_until
from walk.test_official_runners import said

PAGE = (Path(__file__).parents[2] / "docs/guides/existing-agents.md").read_text(encoding="utf-8")


def shown(language: str) -> str:
    [block] = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
    return str(block)


def is_open(port: int) -> bool:
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/").close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


@contextmanager
def a_service(place: Path, **changes: tuple[str, str]) -> Generator[int]:
    port = free_port()
    source = shown("python").replace("9000", str(port))
    for before, after in changes.values():
        source = source.replace(before, after)
    file = place / "my_service.py"
    file.write_text(source)
    process = subprocess.Popen([sys.executable, str(file)])
    try:
        wait_until(lambda: is_open(port))
        yield port
    finally:
        process.terminate()
        process.wait(30)


def agents(port: int, **config: Any) -> str:
    more = "".join(f"      {name}: {json.dumps(value)}\n" for name, value in config.items())
    return shown("yaml").replace("9000", str(port)) + more


def test_the_page_works_as_it_stands(new_host: Callable[..., HostProcess], tmp_path: Path) -> None:
    with a_service(tmp_path) as port:
        host, thread = new_host(agents=agents(port)).start(), str(uuid.uuid4())
        assert said(host, "hello", thread, "mine")[0] == shown("text").strip()
        assert said(host, "again", thread, "mine")[0] == "3 messages so far"


TELLS = ("text = f\"{len(asked['messages'])} messages so far\"", "text = json.dumps(asked['messages'])")


def heard(host: HostProcess, text: str, thread: str) -> Mapping[str, str]:
    """What the service was sent: the words of each message, by its id."""
    return {one["id"]: one["content"] for one in json.loads(said(host, text, thread, "mine")[0])}


def test_a_message_has_the_same_id_whenever_it_is_sent_along(
    new_host: Callable[..., HostProcess], tmp_path: Path
) -> None:
    """Adapters that remember a thread know by it what they have seen."""
    with a_service(tmp_path, tells=TELLS) as port:
        host, thread = new_host(agents=agents(port)).start(), str(uuid.uuid4())
        first = heard(host, "hello", thread)
        second = heard(host, "again", thread)
        third = heard(host, "and again", thread)
    assert list(first.values()) == ["hello"]
    assert [*second.values()][0::2] == ["hello", "again"]
    assert first.items() <= second.items() <= third.items()


def test_an_agent_that_keeps_the_conversation_is_told_what_is_new(
    new_host: Callable[..., HostProcess], tmp_path: Path
) -> None:
    with a_service(tmp_path, tells=TELLS) as port:
        host, thread = new_host(agents=agents(port, history=0)).start(), str(uuid.uuid4())
        assert list(heard(host, "hello", thread).values()) == ["hello"]
        assert list(heard(host, "again", thread).values()) == ["again"]
