"""A plugin at L1 tries every way out that we know, as root's host and as a normal user's, and gets out by none.

The ways are in runners/fixtures/escapes.py, one function each. What it sees is exactly what the host's own list says.
"""

import errno
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from needs import install, not_run
from paddock.confinement.sandbox import DEVICES, READ_ONLY_OF_PROCESSES, active_level
from safety.escaping_ways import CONTROL
from safety.normal_user import NOBODY, as_normal_user

pytestmark = pytest.mark.xdist_group("escapes")  # both hosts of it have the same piece of shared memory
PROGRAM = Path(__file__).with_name("escaping.py")
PLACES = ("many", "one")
WRITES = {"read": "ro", "covered": "ro", "write": "rw", "empty": "rw", "processes": "rw", "devices": "ro"}
USUAL = {"HOME", "LANG", "LC_ALL", "PADDOCK_MARK", "PADDOCK_PLUGIN", "PATH", "PYTHONUNBUFFERED", "TZ"}

STREAMS = dict.fromkeys("012", "pipe")

Record = Callable[[str, object], None]


@pytest.fixture(scope="module", params=["root", "a normal user"])
def attack(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """What became of all attempts against the host of one user."""
    if install("bubblewrap", "bwrap"):
        active_level.cache_clear()
    if active_level().level != "L1":
        not_run(f"the ways out of isolation L1 ({active_level().why})")
    as_root = request.param == "root"
    if as_root and os.geteuid() != 0:
        not_run("the ways out of a host that root started, which needs root")
    base = Path(tempfile.mkdtemp(dir="/var/tmp"))
    try:
        yield attacked(base, as_root=as_root)
    finally:
        shutil.rmtree(base, ignore_errors=True)


def attacked(base: Path, *, as_root: bool) -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), str(base)]
    if not as_root:
        command = as_normal_user(command)
        if os.geteuid() == 0:
            os.chown(base, NOBODY, NOBODY)
    env = {**os.environ, "ESCAPE_WORD": "the-word-of-the-host"}
    done = subprocess.run(command, capture_output=True, env=env, cwd="/", text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert (found["as"] == 0) == as_root
    return found


def test_a_plugin_at_l1_gets_out_by_no_way(attack: dict[str, Any], record_property: Record) -> None:
    assert len(attack["one"]["tried"]) >= 40
    record_property("attempts", sum(len(attack[place]["tried"]) for place in PLACES))
    assert {place: attack[place]["got_out"] for place in PLACES} == {"many": {}, "one": {}}
    assert attack["noticed"] == []


@pytest.mark.parametrize("place", ["wired", "wired_alone"])
def test_a_plugin_at_l1_with_network_reaches_the_network_and_nothing_else(
    attack: dict[str, Any], place: str, record_property: Record
) -> None:
    record_property("attempts", len(attack[place]["tried"]))
    assert len(attack[place]["tried"]) >= 40
    assert set(attack[place]["got_out"]) <= {"connect_to_the_hosts_port", "connect_to_another_machine"}
    assert "connect_to_the_hosts_port" in attack[place]["got_out"], "else the attempt would prove nothing"
    assert all("127.0.0.1" in sign for sign in attack["visited"]), attack["visited"]


SOCKETS = """
import ctypes, socket, struct
from paddock.confinement.limits import call_filter
calls = call_filter(unix=False)
program = ctypes.create_string_buffer(calls, len(calls))
libc = ctypes.CDLL(None)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("@HP", len(calls) // 8, ctypes.addressof(program)), 0, 0) == 0
socket.socketpair()
socket.socket(socket.AF_INET)
try:
    socket.socket(socket.AF_UNIX)
except OSError as error:
    print(error.errno)
"""


def test_where_the_kernel_cannot_scope_them_a_process_with_network_has_no_unix_sockets_but_pairs() -> None:
    done = subprocess.run([sys.executable, "-c", SOCKETS], capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) == errno.EAFNOSUPPORT


def test_the_ways_lead_out_where_nothing_holds_the_plugin(attack: dict[str, Any]) -> None:
    """At L0 those that are harmless are tried as well: were they held there, the others would prove nothing."""
    assert set(attack["control"]["got_out"]) == set(CONTROL)


@pytest.mark.parametrize("place", PLACES)
def test_what_a_run_at_l1_sees_is_what_the_host_lists(attack: dict[str, Any], place: str) -> None:
    listed = dict(attack["lists"][PLACES.index(place)])
    seen = attack[place]["seen"]
    inside = {f"/dev/{name}" for name in DEVICES} | {f"/proc/{name}" for name in READ_ONLY_OF_PROCESSES}
    mounts = {path: how for path, how in seen["mounts"].items() if path not in inside or path in listed}
    assert mounts == {"/": "ro"} | {path: WRITES[kind] for path, kind in listed.items() if kind != "link"}
    on_the_way = {str(parent) for path in listed for parent in Path(path).parents} - {"/"}
    assert {path for path in seen["paths"] if not path.startswith("/dev/")} == {
        path for path in {*listed, *on_the_way} if not path.startswith("/dev/")
    }
    assert set(seen["devices"]) <= {*DEVICES, "stdin", "stdout", "stderr"}
    assert set(seen["environment"]) == USUAL
    assert {number: name.partition(":")[0] for number, name in seen["open_files"].items()} == dict.fromkeys(
        "012", "pipe"
    )
    assert seen["hostname"] == "runner"
