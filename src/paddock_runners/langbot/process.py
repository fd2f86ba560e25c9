"""One LangBot plugin process: started in the plugin's own environment, registered, initialised, ended for certain.

It is a child of this program, which is itself a child of the host's warden: nothing outlives the host.
"""

import asyncio
import logging
import os
import signal
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from paddock_runners.langbot.frames import LINE_BYTES
from paddock_runners.langbot.peer import Answer, Data, Peer, PeerError
from paddock_runners.langbot.refusal import RefusedError
from paddock_runners.toolkit.values import listing, mapping

log = logging.getLogger("paddock.langbot")

START_SECONDS = 30.0
Rung = tuple[signal.Signals | None, float]
LADDER: Sequence[Rung] = ((None, 0.5), (signal.SIGTERM, 0.5), (signal.SIGKILL, 1.0))
"""What is demanded, and how long we wait for the end: its input ends first."""
FILES_VARIABLE = "LANGBOT_PLUGIN_FILE_STORAGE_DIR"


class StartError(Exception):
    """The plugin did not come up; the text says why."""


class LangBotProcess:
    """A live, or just ended, plugin process. `answer` is asked about its calls once it is registered."""

    def __init__(self, child: asyncio.subprocess.Process, answer: Answer) -> None:
        assert child.stdin is not None
        assert child.stdout is not None
        self._child, self._answer = child, answer
        self._registered = asyncio.Event()
        self.peer = Peer(child.stdout, child.stdin, self._asked)
        self._reading = asyncio.create_task(self.peer.run())
        self._ending: asyncio.Task[None] | None = None
        self.offered: dict[str, str] = {}
        """Its runners by name, and the kind of component each is."""

    @classmethod
    async def start(
        cls, command: Sequence[str], settings: Mapping[str, Any], answer: Answer, *, cwd: Path | None = None
    ) -> "LangBotProcess":
        """Raises StartError; then nothing of it is left."""
        pipe = asyncio.subprocess.PIPE
        try:
            child = await asyncio.create_subprocess_exec(
                *command, stdin=pipe, stdout=pipe, cwd=cwd, env=_environment(), limit=LINE_BYTES, start_new_session=True
            )
        except OSError as problem:
            raise StartError(f"{command[0]} cannot be started: {problem.strerror}") from problem
        process = cls(child, answer)
        try:
            await process._introduce(settings)
        except BaseException:
            await process.end()
            raise
        return process

    @property
    def pid(self) -> int:
        return self._child.pid

    @property
    def alive(self) -> bool:
        return not self.peer.broken and self._ending is None

    async def _introduce(self, settings: Mapping[str, Any]) -> None:
        """It says who it is, is given its settings, and says what it has become."""
        try:
            async with asyncio.timeout(START_SECONDS):
                await self._first_word()
                given = {"enabled": True, "priority": 0, "plugin_config": dict(settings)}
                await self.peer.request("initialize_plugin", {"plugin_settings": given})
                self.offered = _runners_in(await self.peer.request("get_plugin_container", {}))
        except TimeoutError:
            raise StartError(f"it was not ready within {START_SECONDS:.0f} seconds") from None
        except PeerError as problem:
            raise StartError(str(problem)) from problem

    async def _first_word(self) -> None:
        hello, silence = asyncio.create_task(self._registered.wait()), self._reading
        done, _ = await asyncio.wait({hello, silence}, return_when=asyncio.FIRST_COMPLETED)
        if hello not in done:
            hello.cancel()
            raise StartError(f"{self.peer.broken or 'it ended'} before it said who it is; its log tells more")

    def _asked(self, action: str, data: Data) -> Any:
        if action == "register_plugin":
            return self._register()
        if not self._registered.is_set():
            raise RefusedError("unauthorized", "say register_plugin first")
        return self._answer(action, data)

    async def _register(self) -> Data:
        self._registered.set()
        return {}

    async def end(self, *, at_once: bool = False) -> None:
        """Its input ends, then TERM, then KILL, to its whole group. Finishes even when the caller is cancelled."""
        if self._ending is None:
            self._ending = asyncio.create_task(self._end(LADDER[-1:] if at_once else LADDER))
        await asyncio.shield(self._ending)

    async def _end(self, ladder: Sequence[Rung]) -> None:
        assert self._child.stdin is not None
        self._child.stdin.close()
        for demand, seconds in ladder:
            if demand is not None:
                with suppress(ProcessLookupError):
                    os.killpg(self._child.pid, demand)
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._child.wait()
                    break
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)  # what it started and left behind in its group
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)


def _environment() -> dict[str, str]:
    """Ours, which the host has cut down already. Files on their way go to the plugin's home, not among its code."""
    files = Path(os.environ.get("HOME", "/nonexistent")) / "langbot-files"
    return {**os.environ, FILES_VARIABLE: str(files), "PYTHONUNBUFFERED": "1"}


def _runners_in(container: Mapping[str, Any]) -> dict[str, str]:
    """The runner components of a plugin's container, whichever dialect names them."""
    found: dict[str, str] = {}
    for component in map(mapping, listing(container.get("components"))):
        manifest = mapping(component.get("manifest"))
        inner = mapping(manifest.get("manifest")) or manifest
        name = mapping(inner.get("metadata")).get("name")
        if inner.get("kind") in ACTIONS and isinstance(name, str):
            found[name] = str(inner["kind"])
    return found


ACTIONS: Mapping[str, str] = {"Runner": "run_runner", "AgentRunner": "run_agent"}
"""What a kind of component is asked to run by: the released dialect, and that of the development branch."""
