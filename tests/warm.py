"""`paddock` without the second it takes to load: forked from a process that has loaded it, and otherwise the same.

Each command is a process of its own, with its own arguments, environment, directory and streams, ended by signals and
by its exit code as ever. What a test says of starting itself (its time, what is loaded, a terminal) needs the program;
so does an environment that Python or the C library read when they start. `PADDOCK_TEST_COLD=1` runs the program always.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import stalled

PADDOCK = Path(sys.executable).with_name("paddock")
COLD = bool(os.environ.get("PADDOCK_TEST_COLD"))
READ_AT_START = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_", "SSL_")
LEFT_OUT = {"paddock.cli.hosting.run", "paddock.cli.hosting.serve"}  # the second is loaded first, by who knows how
PIPE, DEVNULL, STDOUT = subprocess.PIPE, subprocess.DEVNULL, subprocess.STDOUT
Stream = int | IO[Any] | None


class Process:
    """As much of `subprocess.Popen` as tests use. Its streams are text."""

    def __init__(
        self, arguments: Sequence[object], *, env: Mapping[str, str], cwd: Path | str | None = None, **streams: Stream
    ) -> None:
        self.args = [str(PADDOCK), *map(str, arguments)]
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = None, None, None
        self._lock = threading.Lock()
        given = self._open(**streams)
        asked = {"argv": self.args, "env": dict(env), "cwd": str(cwd or Path.cwd())}
        self._told = _loaded().ask(asked, given)
        for number in {*given} - {0, 1, 2}:
            os.close(number)
        self.pid = int(self._told.recv(16))

    def poll(self) -> int | None:
        with suppress(subprocess.TimeoutExpired):
            return self.wait(0)
        return None

    def wait(self, timeout: float | None = None) -> int:
        with self._lock:
            if self.returncode is None:
                self._told.settimeout(timeout)
                try:
                    self.returncode = int(self._told.recv(16))
                except (TimeoutError, BlockingIOError):
                    raise subprocess.TimeoutExpired(self.args, timeout or 0) from None
                self._told.close()
            return self.returncode

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def communicate(self, input: str | None = None, timeout: float | None = None) -> tuple[str | None, str | None]:  # noqa: A002 - its name there
        """What it says, to its end; its input is small."""
        said: dict[str, str] = {}
        readers = [threading.Thread(target=_read, args=(said, name, getattr(self, name))) for name in _OUTPUTS]
        for reader in readers:
            reader.start()
        if self.stdin is not None:
            with suppress(BrokenPipeError), self.stdin:
                self.stdin.write(input or "")
        try:
            self.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        finally:
            for reader in readers:
                reader.join(timeout)
        return said.get("stdout"), said.get("stderr")

    def _open(self, stdin: Stream = None, stdout: Stream = None, stderr: Stream = None) -> list[int]:
        """What the process has for 0, 1 and 2."""
        given: list[int] = []
        for number, (name, wanted) in enumerate({"stdin": stdin, "stdout": stdout, "stderr": stderr}.items()):
            if wanted == PIPE:
                theirs, ours = os.pipe() if number == 0 else reversed(os.pipe())
                setattr(self, name, os.fdopen(ours, "w" if number == 0 else "r", encoding="utf-8"))
                given.append(theirs)
            elif wanted == DEVNULL:
                given.append(os.open(os.devnull, os.O_RDWR))
            elif wanted == STDOUT:
                given.append(given[1])
            else:
                given.append(
                    number if wanted is None else os.dup(wanted if isinstance(wanted, int) else wanted.fileno())
                )
        return given


_OUTPUTS = ("stdout", "stderr")


def _read(said: dict[str, str], name: str, stream: IO[str] | None) -> None:
    if stream is not None:
        with stream:
            said[name] = stream.read()


def start(arguments: Sequence[object], *, env: Mapping[str, str], **more: Any) -> "Process | subprocess.Popen[str]":
    """A command, running; from the program itself where the environment is one that is read at start."""
    if COLD or not hasattr(os, "pidfd_open") or _at_start(env) != _at_start(os.environ):
        return subprocess.Popen([PADDOCK, *map(str, arguments)], env=env, text=True, **more)
    return Process(arguments, env=env, **more)


def run(
    arguments: Sequence[object],
    *,
    env: Mapping[str, str],
    timeout: float = 60,
    input: str | None = None,  # noqa: A002
    **more: Any,
) -> "subprocess.CompletedProcess[str]":
    """A command, to its end."""
    if input is not None:
        more["stdin"] = PIPE
    process = start(arguments, env=env, stdout=PIPE, stderr=PIPE, **more)
    said, aside = process.communicate(input, timeout)
    return subprocess.CompletedProcess(process.args, process.wait(), said or "", aside or "")


def _at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START)}


# --- the process that has loaded everything --------------------------------------------------------------------------


class Loaded:
    """Started by the first command of a test worker, gone with it."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="paddock-warm-")
        self._address = f"{self._home.name}/socket"
        stalls = Path(self._home.name) / "stalls"
        stalled.expect_in(stalls)
        self._held = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), self._address, str(stalls)],
            stdin=PIPE,
            stdout=PIPE,
            start_new_session=True,  # Ctrl-C is for whoever started us, who ends us in order
        )
        assert self._held.stdout is not None
        assert self._held.stdout.readline() == b"ready\n", "the program could not be loaded"

    def end(self) -> None:
        assert self._held.stdin is not None
        self._held.stdin.close()
        self._held.wait(30)
        self._home.cleanup()

    def ask(self, what: dict[str, Any], streams: list[int]) -> socket.socket:
        told = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        told.connect(self._address)
        socket.send_fds(told, [json.dumps(what).encode()], streams)
        return told


_kept: list[Loaded] = []
_one = threading.Lock()


def _loaded() -> Loaded:
    with _one:
        if not _kept:
            _kept.append(Loaded())
            atexit.register(_kept[0].end)
        return _kept[0]


def _load() -> None:
    from paddock.cli.hosting.starting import load_serve

    load_serve()
    import paddock.cli

    for found in pkgutil.walk_packages(paddock.cli.__path__, "paddock.cli."):
        if found.name not in LEFT_OUT and not found.name.endswith("__main__"):
            importlib.import_module(found.name)
    gc.collect()
    gc.freeze()


def _serve(address: str) -> dict[str, Any] | None:
    """Fork for whoever asks, until nobody can ask any more. Returns in each fork, with what it is asked to be."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(address)
    listener.listen(64)
    os.write(1, b"ready\n")
    waiting = selectors.DefaultSelector()
    waiting.register(listener, selectors.EVENT_READ)
    waiting.register(0, selectors.EVENT_READ)
    children: dict[int, tuple[int, socket.socket]] = {}
    while True:
        for key, _ in waiting.select():
            if key.fd == 0:
                for pid, _ in children.values():
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)
                return None
            if key.fd == listener.fileno():
                asker, _ = listener.accept()
                said, streams, _, _ = socket.recv_fds(asker, 1 << 20, 3)
                if (pid := os.fork()) == 0:
                    for number, stream in enumerate(streams):
                        os.dup2(stream, number)
                    for held in (*streams, *children):
                        os.close(held)
                    for owned in (listener, waiting, asker, *(each for _, each in children.values())):
                        owned.close()  # by name: whoever closed only its number would close another's later
                    return json.loads(said)
                for stream in streams:
                    os.close(stream)
                asker.send(b"%d" % pid)
                watch = os.pidfd_open(pid)
                children[watch] = pid, asker
                waiting.register(watch, selectors.EVENT_READ)
            else:
                pid, asker = children.pop(key.fd)
                waiting.unregister(key.fd)
                os.close(key.fd)
                code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                with suppress(OSError), asker:
                    asker.send(b"%d" % code)


def _become(asked: dict[str, Any], stalls: str) -> None:
    from paddock.cli.main import main

    stalled.tell_in(stalls)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = asked["argv"]
    sys.path.pop(0)  # this directory: the program does not have it
    sys.exit(main())


if __name__ == "__main__":
    _load()
    if (wanted := _serve(sys.argv[1])) is not None:
        _become(wanted, sys.argv[2])
