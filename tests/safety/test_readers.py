"""A decoder of pictures or documents that was taken over gets at nothing: no network, no data, no new program.

With bubblewrap and without it, on a host of root's and on a normal user's: its place is taken by lines that try.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from needs import install, not_run
from paddock.confinement.limits import landlock_version
from paddock.images import child as of_pictures
from paddock.knowledge import child as of_documents
from safety.normal_user import NOBODY, as_normal_user

HOST = """
import asyncio, os, sys
os.environ["PATH"] = os.environ["PATH_OF_READERS"]
from paddock.confinement.readers import read_apart

said = asyncio.run(read_apart(("-c", sys.argv[1], *sys.argv[2:]), b"x", seconds=30, most_bytes=100_000))
sys.stdout.buffer.write(said.output)
"""
TAKEN_OVER = """
import json, os, resource, signal, socket, sys
from paddock.confinement.limits import hold_still

secret, port, pid, limited = sys.argv[1:]
if limited == "limited":
    hold_still(memory_bytes=1 << 29, cpu_seconds=20)

def connected():
    with socket.create_connection(("127.0.0.1", int(port)), timeout=5):
        return "connected"

def started():
    if (child := os.fork()) == 0:
        os._exit(0)
    return os.waitpid(child, 0)[0]

WAYS = {
    "read the host's data": lambda: open(secret).read(),
    "list the host's data": lambda: os.listdir(os.path.dirname(secret)),
    "read the host's environment": lambda: open(f"/proc/{pid}/environ", "rb").read()[:9].decode(),
    "signal the host": lambda: os.kill(int(pid), 0) or "sent",
    "write a file": lambda: open("/tmp/of-a-reader", "w").write("x"),
    "connect": connected,
    "open a socket": lambda: socket.socket(socket.AF_UNIX).fileno(),
    "start a process": started,
    "become another program": lambda: os.execv("/bin/true", ["true"]),
    "take more memory": lambda: len(bytearray(1 << 30)),
    "raise its limits": lambda: resource.setrlimit(resource.RLIMIT_AS, (-1, -1)) or "raised",
}
found = {}
for name, way in WAYS.items():
    if name == "become another program" and limited != "limited":
        continue
    try:
        found[name] = way()
    except (OSError, MemoryError, ValueError):
        continue
print(json.dumps({"got": found, "codec": "x".encode("big5").decode(), "tried": len(WAYS)}))
"""
MORE_WITHOUT = {"signal the host"}
"""What older kernels let a reader do that no sandbox is around."""

Record = Callable[[str, object], None]


@pytest.fixture
def world() -> Iterator[tuple[Path, socket.socket]]:
    base = Path(tempfile.mkdtemp(dir="/var/tmp"))
    base.chmod(0o755)
    (base / "secret").write_text("of the host")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield base, listener
    shutil.rmtree(base)


def taken_over(world: tuple[Path, socket.socket], *, bubblewrap: bool, as_root: bool, limited: bool) -> dict[str, Any]:
    base, listener = world
    (base / "empty").mkdir()
    env = {**os.environ, "PATH_OF_READERS": os.environ["PATH"] if bubblewrap else str(base / "empty")}
    told = [str(base / "secret"), str(listener.getsockname()[1]), str(os.getpid())]
    command = [sys.executable, "-c", HOST, TAKEN_OVER, *told, "limited" if limited else "open"]
    if not as_root:
        command = as_normal_user(command)
        if os.geteuid() == 0:
            os.chown(base, NOBODY, NOBODY)
            os.chown(base / "secret", NOBODY, NOBODY)
    done = subprocess.run(command, capture_output=True, env=env, cwd="/", text=True, timeout=120, check=False)
    assert done.stdout, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("bubblewrap", [True, False], ids=["with bubblewrap", "without"])
@pytest.mark.parametrize("as_root", [True, False], ids=["root", "a normal user"])
def test_a_reader_that_was_taken_over_gets_at_nothing(
    world: tuple[Path, socket.socket], bubblewrap: bool, as_root: bool, record_property: Record
) -> None:
    if bubblewrap and not install("bubblewrap", "bwrap"):
        not_run("readers in a sandbox, because bubblewrap cannot be installed here")
    if not bubblewrap and landlock_version() < 1:
        not_run("readers without a sandbox, because this kernel has no Landlock")
    if as_root and os.geteuid() != 0:
        not_run("readers of a host that root started, which needs root")
    found = taken_over(world, bubblewrap=bubblewrap, as_root=as_root, limited=True)
    record_property("attempts", found["tried"])
    assert set(found["got"]) <= (set() if bubblewrap else MORE_WITHOUT), "with bubblewrap nothing"
    assert found["codec"] == "x", "what it needs to read files is still there"


def test_the_ways_are_open_to_a_reader_that_keeps_everything(world: tuple[Path, socket.socket]) -> None:
    found = taken_over(world, bubblewrap=False, as_root=os.geteuid() == 0, limited=False)
    assert set(found["got"]) >= {"read the host's data", "connect", "open a socket", "start a process", "write a file"}
    Path("/tmp/of-a-reader").unlink()


def test_both_readers_hold_still_before_they_look_at_a_byte() -> None:
    for module in (of_pictures, of_documents):
        lines = Path(str(module.__file__)).read_text().partition("def main(")[2].splitlines()
        first = next(line.strip() for line in lines[1:] if line.strip())
        assert first.startswith("hold_still(memory_bytes=MEMORY_BYTES, cpu_seconds=CPU_SECONDS)"), module
