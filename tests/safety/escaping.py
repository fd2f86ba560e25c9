"""A host with a hostile plugin at L1, in a program of its own: what the plugin saw and how it got out, as JSON.

    python escaping.py DIRECTORY

The directory is empty and belongs to the user who calls. The plugin tries everything twice: in a process that serves
many runs and has the whole home of its plugin, and in one that serves a single run with a working directory.
"""

import asyncio
import ctypes
import json
import os
import signal
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

sys.path.insert(0, str(Path(__file__).parent.parent))

import paddock_sdk
from paddock.ports import ANYWHERE, Placement
from paddock.runners.installed.plugins import Plugin, ProcessPlace
from paddock.runners.processes.isolation import PIDS, Confinement, sandbox_of
from runners.house import FIXTURES, PYTHON, House, News, house, plugin
from safety.escaping_ways import CONTROL

MINE, OTHER = "a" * 32, "b" * 32
SHARED = 0x5EC2E7


class World:
    """What there is around the plugin, and what of it would notice a visitor."""

    def __init__(self, base: Path, stack: ExitStack) -> None:
        self.data, self.work = base / "data", base / "work"
        self.signals = 0
        self._word = os.environ["ESCAPE_WORD"]
        self._make(base)
        self._listeners = [stack.enter_context(one) for one in self._listen(base)]
        signal.signal(signal.SIGUSR1, self._count)
        libc = ctypes.CDLL(None)
        segment = libc.shmget(SHARED, 16, 0o1666)
        stack.callback(libc.shmctl, segment, 0, None)  # 0: remove it, which nobody else would ever do
        self._base = base

    def _make(self, base: Path) -> None:
        plugins = [self.data / "runners" / "test" / name for name in ("other", "open")]
        conversation = self.data / "conversations" / "one" / "test" / "nasty" / OTHER
        for folder in (self.work, base / "other_plugin", conversation, *plugins):
            folder.mkdir(parents=True)
            (folder / "file").write_text(self._word)
        self.data.chmod(0o700)
        (self.data / "paddock.db").write_text(self._word)
        (base / "plugin").mkdir()
        for name in ("escapes.py", "wire.py"):
            (base / "plugin" / name).write_text((FIXTURES / name).read_text())

    def _listen(self, base: Path) -> list[socket.socket]:
        loopback = socket.create_server(("127.0.0.1", 0))
        abstract, named = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
        abstract.bind(f"\0paddock-{os.getpid()}")
        named.bind(str(base / "socket"))
        for one in (abstract, named):
            one.listen()
        return [loopback, abstract, named]

    def _count(self, *_about: object) -> None:
        self.signals += 1

    def targets(self, **more: Any) -> str:
        told = {
            "secret": str(self.data / "paddock.db"),
            "data": str(self.data),
            "word": self._word,
            "pid": os.getpid(),
            "program": Path(__file__).name,
            "port": self._listeners[0].getsockname()[1],
            "abstract": f"paddock-{os.getpid()}",
            "socket": str(self._base / "socket"),
            "shared": SHARED,
            "other_plugin": str(self._base / "other_plugin"),
            "other_home": str(self.data / "runners" / "test" / "other"),
            "other_conversation": str(self.data / "conversations" / "one" / "test" / "nasty" / OTHER),
            "sdk": str(Path(paddock_sdk.__file__).parent),
            "as_root": os.geteuid() == 0,
            "memory_mb": 2048,
            "pids": PIDS,
            "skipped": [],
            "fresh": ["/tmp", "/dev/shm"],
        }
        return json.dumps(told | more)

    def noticed(self) -> list[str]:
        """Signs that somebody was outside who had no business there."""
        found = ["a signal"] * self.signals
        for listener in self._listeners:
            listener.setblocking(False)
            try:
                found += [f"a visitor at {listener.accept()}"]
            except BlockingIOError:
                continue
        for path in (self.data / "paddock.db", self._base / "other_plugin" / "file"):
            if path.read_text() != self._word or path.stat().st_nlink != 1 or path.stat().st_uid != os.geteuid():
                found.append(f"{path} was changed")
        return found


async def asked(here: House, text: str, name: str = "nasty", placement: Placement = ANYWHERE) -> dict[str, Any]:
    news, run_id = News(), str(uuid4())
    context = {"run_id": run_id, "input": {"text": text}}
    await here.gateway.start_run(f"plugin:test/{name}/default", run_id, context, news, placement)
    await news.over(120)
    assert not news.losses, news.losses
    return dict(news.results[-1].data)


def seen_by(hostile: Plugin, data: Path, place: ProcessPlace) -> list[tuple[str, str]]:
    """The list of what such a process sees, as the host has it."""
    command = (PYTHON, *hostile.command[1:])
    ground = Confinement(data / "runners", "escaping", data)
    return [(one.path, one.kind) for one in sandbox_of(hostile, command, ground, place).seen()]


async def main(base: Path) -> dict[str, Any]:
    with ExitStack() as stack:
        world = World(base, stack)
        command = ("python", str(base / "plugin" / "escapes.py"))
        hostile = plugin(isolation="L1", directory=base / "plugin", command=command)
        harmless = plugin("open", directory=base / "plugin", command=command)
        networked = plugin("networked", isolation="L1", network=True, directory=base / "plugin", command=command)
        home = world.data / "runners" / "test" / "nasty"
        alone = Placement(isolation="L1", directory=str(world.work), directory_is_ours=True, conversation=MINE)
        place = ProcessPlace("L1", world.work, directory_is_ours=True, conversation=MINE)
        async with house(world.data, [hostile, harmless, networked], data=world.data) as here:
            many = await asked(here, world.targets(writable=str(home)))
            one = await asked(here, world.targets(writable=str(world.work)), placement=alone)
            noticed = world.noticed()
            home = world.data / "runners" / "test" / "networked"
            wired = await asked(here, world.targets(writable=str(home)), "networked")
            wired_alone = await asked(here, world.targets(writable=str(world.work)), "networked", alone)
            visited = world.noticed()
            skipped = sorted(set(many["tried"]) - set(CONTROL))
            control = await asked(here, world.targets(writable=str(world.work), skipped=skipped), "open")
            lists = [seen_by(hostile, world.data, each) for each in (ProcessPlace("L1"), place)]
        return {"wired": wired, "wired_alone": wired_alone, "visited": visited} | {
            "many": many,
            "one": one,
            "noticed": noticed,
            "control": control,
            "lists": lists,
            "as": os.geteuid(),
        }


print(json.dumps(asyncio.run(main(Path(sys.argv[1])))))
