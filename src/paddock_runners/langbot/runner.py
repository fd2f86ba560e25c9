"""One runner of a LangBot plugin as a runner of ours: what the host says goes over, what the plugin says comes back."""

import asyncio
import time
from collections.abc import Iterable
from typing import Any, ClassVar

from paddock_runners.langbot.about import About, AboutRunner
from paddock_runners.langbot.callbacks import Asking
from paddock_runners.langbot.context import langbot_context
from paddock_runners.langbot.peer import PeerError, Stream
from paddock_runners.langbot.process import ACTIONS, StartError
from paddock_runners.langbot.processes import Processes, Served
from paddock_runners.langbot.results import Translation
from paddock_runners.toolkit.attachments import data_url, is_picture, name_of, read_attachment
from paddock_runners.toolkit.values import mapping
from paddock_sdk import AgentRunner, HostApi, Result, Results, RunContext, failed
from paddock_sdk.protocol.results import TERMINAL_TYPES

STOP_SECONDS = 1.5
"""For a cancelled run to stop over there; a host waits one second longer than this."""
WAITING = 64
"""Results that may wait for the host; then the plugin waits."""
FILE_BYTES = 2 * 1024 * 1024
"""All attached files of one input: they travel in its context."""


class LangBotRunner(AgentRunner):
    about: ClassVar[AboutRunner]
    own_settings: ClassVar[dict[str, Any]]
    processes: ClassVar[Processes]

    async def run(self, ctx: RunContext, api: HostApi) -> Results:
        try:
            served = await self.processes.ready(self._settings(ctx))
            action = self._action(served)
        except StartError as problem:
            yield failed("langbot.not_started", f"the LangBot plugin does not start: {problem}")
            return
        turn = Turn(ctx, api, served)
        try:
            files, left = await _files(ctx, api), api.seconds_left()
            context = langbot_context(ctx, files, seconds_left=left, steers=self._steers())
            async for result in turn.results(action, {"runner_name": self.name, "context": context}):
                yield result
        finally:
            await asyncio.shield(turn.leave())

    def _settings(self, ctx: RunContext) -> dict[str, Any]:
        return {name: ctx.config.get(name, default) for name, default in self.own_settings.items()}

    def _action(self, served: Served) -> str:
        """How it is asked to run. What the process says of itself counts, not what the files said."""
        kind = served.process.offered.get(self.name)
        if kind is None:
            wanted = self.about.kind
            raise StartError(
                f"the SDK in its environment does not know its {wanted} {self.name!r}; "
                "docs/guides/langbot.md says which SDK has which kind"
            )
        return ACTIONS[kind]

    def _steers(self) -> bool:
        return bool(mapping(self.capabilities).get("steering"))


def runners_of(about: About, processes: Processes) -> list[AgentRunner]:
    """One runner object for each runner of the plugin; they share its processes."""
    return [_runner(one, about, processes)() for one in about.runners]


def _runner(one: AboutRunner, about: About, processes: Processes) -> type[LangBotRunner]:
    told = {"name": one.name, "about": one, "own_settings": dict(about.settings), "processes": processes}
    return type("LangBotRunner", (LangBotRunner,), {**one.manifest, **told})


class Turn:
    """One run in a plugin's process: its results in order, what it replies in between, and its end."""

    def __init__(self, ctx: RunContext, api: HostApi, served: Served) -> None:
        self._run_id, self._served = ctx.run_id, served
        self._said: asyncio.Queue[Result | None] = asyncio.Queue(WAITING)
        keys = {scope: set(mapping(kept)) for scope, kept in ctx.state.to_wire().items()}
        self._asking = Asking(ctx, api, self._put, keys)
        self._stream: Stream | None = None
        self._pump: asyncio.Task[None] | None = None
        served.desk.runs[ctx.run_id] = self._asking

    async def results(self, action: str, data: dict[str, Any]) -> Results:
        self._pump = asyncio.create_task(self._read(action, data))
        while (result := await self._said.get()) is not None:
            yield result
            if result.type in TERMINAL_TYPES:
                return

    async def _read(self, action: str, data: dict[str, Any]) -> None:
        peer, translation = self._served.process.peer, Translation()
        try:
            self._stream = await peer.open(action, data)
            async for piece in peer.pieces(self._stream):
                await self._put(translation.read(piece))
            await self._put(translation.end())
        except PeerError as problem:
            await self._put([failed("langbot.process_ended", f"the LangBot plugin: {problem}", retryable=True)])
        except ValueError as problem:
            await self._put([failed("payload_too_large", str(problem))])
        await self._said.put(None)

    async def _put(self, results: Iterable[Result]) -> None:
        for result in results:
            await self._said.put(result)

    async def leave(self) -> None:
        """Whatever happened: nothing of this run goes on over there, and its calls are refused from now on."""
        if self._pump is not None:
            self._pump.cancel()
        stopped = await self._stop()
        await self._served.leave(self._run_id, stopped=stopped)

    async def _stop(self) -> bool:
        stream = self._stream
        if stream is None or stream.ended.is_set():
            return True
        self._asking.cancel_requested_at = int(time.time())
        try:
            return await self._served.process.peer.cancel(stream, STOP_SECONDS)
        finally:
            self._served.process.peer.forget(stream)


async def _files(ctx: RunContext, api: HostApi) -> list[dict[str, Any]]:
    """Attached files as content elements, while there is room; their names are among the attachments in any case."""
    shown: list[dict[str, Any]] = []
    room = FILE_BYTES if ctx.context.available_apis.artifact_read else 0
    for ref in ctx.input.attachments if room else ():
        content = await read_attachment(api, ref, room)
        if isinstance(content, str):
            shown.append({"type": "text", "text": f"({name_of(ref)} is attached and cannot be read: {content})"})
            continue
        room -= len(content)
        kind = "image_base64" if is_picture(ref) else "file_base64"
        shown.append(
            {"type": kind, kind: data_url(ref, content), **({} if is_picture(ref) else {"file_name": name_of(ref)})}
        )
    return shown
