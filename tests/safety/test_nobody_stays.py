"""What a plugin at L0 starts ends with it, and keeps no host from ending, however quickly it forks."""

import platform
import struct
import sys
import time
from pathlib import Path

import pytest

from patience import at_most
from walk.hosts import HostProcess

CHAINS, LINKS, MANY = 16, 500_000, 1000
PLUGIN = """
[plugin]
author = "test"
name = "chains"
version = "1"
command = ["python", "runner.py"]
"""
RUNNER = """
import subprocess
from pathlib import Path
from paddock_sdk import AgentRunner, message, serve

class Chains(AgentRunner):
    async def run(self, ctx, api):
        for _ in range(CHAINS):
            subprocess.Popen([PROGRAM], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
        yield message("they go on")

serve(Chains())
"""


def a_chain() -> bytes:
    """A program that forks and ends, and whose child does the same, `LINKS` times: each is gone when it is looked for.

    Machine code, because an interpreter forks too slowly to get away.
    """
    forks = b"\xb8\x39\x00\x00\x00\x0f\x05\x85\xc0\x75\x05"  # fork, and end in the parent
    code = b"\x41\xbc" + struct.pack("<I", LINKS) + forks + b"\x41\xff\xcc\x75\xf0"  # in the child: once less
    code += b"\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05"  # exit(0)
    base, head = 0x400000, 64 + 56
    elf = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, base + head, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return elf + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, head + len(code), head + len(code), 0x1000) + code


@pytest.mark.skipif(sys.platform != "linux", reason="needs a child subreaper")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="the program is of that machine's code")
def test_a_plugin_that_forks_all_the_time_ends_when_its_host_does(tmp_path: Path) -> None:
    plugin, program = tmp_path / "plugins" / "chains", tmp_path / "chain"
    plugin.mkdir(parents=True)
    (plugin / "paddock-plugin.toml").write_text(PLUGIN)
    (plugin / "runner.py").write_text(RUNNER.replace("CHAINS", str(CHAINS)).replace("PROGRAM", repr(str(program))))
    program.write_bytes(a_chain())
    program.chmod(0o755)
    host = HostProcess(tmp_path / "data", plugins=(tmp_path / "plugins",)).start()
    try:
        task = host.post("begin", agent="chains").json()["taskId"]
        assert host.finished(task)["status"] == "completed"
        assert forks_a_second() > MANY, "nothing was started"
        began = time.monotonic()
        host.stop()
        assert time.monotonic() - began < at_most(5)
        assert forks_a_second() < MANY
    finally:
        host.end()


def forks_a_second() -> float:
    """On this machine: a process that is gone when it is looked for is seen by their number alone."""

    def count() -> int:
        lines = Path("/proc/stat").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("processes "))

    before = count()
    time.sleep(0.5)
    return (count() - before) / 0.5
