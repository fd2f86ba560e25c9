"""One turn of a harness: prepare, start, ask, tell what it says, end it. What runs it is in `runner`."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from paddock_runners.harness import permissions
from paddock_runners.harness.attachments import Brought, bring
from paddock_runners.harness.config import Config
from paddock_runners.harness.heard import (
    Gone,
    HarnessError,
    Heard,
    LostSessionError,
    Over,
    Permission,
    Question,
    Session,
    ToolBegan,
    ToolEnded,
    Unreachable,
    Used,
)
from paddock_runners.harness.memory import Memory
from paddock_runners.harness.narration import Narration
from paddock_runners.harness.place import Place, prepare
from paddock_runners.harness.process import HarnessProcess
from paddock_runners.harness.wire import Wire
from paddock_runners.toolkit.speakers import is_group, speaker_of, spoken_by
from paddock_runners.toolkit.transcript import shortened
from paddock_sdk import (
    HostApi,
    HostCallError,
    Result,
    Results,
    RunContext,
    completed,
    failed,
    message,
)
from paddock_sdk.endpoint import RunEndpoint
from paddock_sdk.protocol.errors import DEADLINE_EXCEEDED
from paddock_sdk.protocol.run_context import AgentInput

if TYPE_CHECKING:
    from paddock_runners.harness.runner import HarnessRunner


MAX_EVENT = 4000


ATTACHED = "Attached files, in the working directory (the host's tool artifact_read reads them too, by id):"


def prompt_of(ctx: RunContext, files: Sequence[str] = ()) -> str:
    """Never empty: a harness that is asked nothing does nothing, or fails."""
    text = spoken_by(speaker_of(ctx.actor, group=is_group(ctx)), ctx.text)
    return with_files(text, files) or _event(ctx)


def with_files(words: str, files: Sequence[str]) -> str:
    return "\n".join(part for part in (words, *([ATTACHED, *files] if files else [])) if part)


def _event(ctx: RunContext) -> str:
    about = shortened(json.dumps(ctx.event.data, ensure_ascii=False), MAX_EVENT) if ctx.event.data else ""
    return f"This happened: {ctx.event.event_type}\n{about}".rstrip()


LAST_SECONDS = 1.5
"""Kept back of the run's time, so that the end can still be told."""
STEERING_SECONDS = 5.0


class Turn:
    """One run of one harness."""

    def __init__(self, runner: "HarnessRunner", ctx: RunContext, api: HostApi, config: Config) -> None:
        self._runner, self._ctx, self._api, self._config = runner, ctx, api, config
        self._title = runner.title_of(config)
        self._memory, self._told = Memory(ctx, api), Narration()
        self._usage: dict[str, float] = {}
        self._used = Used()
        self._waiting: list[permissions.Waiting] = []
        self._question: Question | None = None
        self._unreachable: set[str] = set()
        self._inputs, self._brought = 0, list[str]()
        self._keeping: asyncio.Future[Any] | None = None
        """Where it works, then its session, on their way to the host: its words do not wait for that."""
        self._handing = asyncio.Lock()
        """Held while words are on their way from the host to the harness: what was pulled must not be lost."""

    async def results(self, endpoint: RunEndpoint | None) -> Results:
        place = prepare(self._ctx, self._config, endpoint, self._runner.harness_of(self._config))
        try:
            async for result in self._with(place):
                yield result
        finally:
            self._tidy(place)

    def _tidy(self, place: Place) -> None:
        """Before the end is told: the next turn may begin at once. Twice is as good as once."""
        if self._config.afterwards == "remove":
            place.files.remove(self._brought)

    async def _with(self, place: Place) -> Results:
        decided = await permissions.decided(self._ctx, self._api)
        self._policy = permissions.Policy(self._config, decided.approved, can_ask=permissions.can_ask(self._ctx))
        session = self._memory.session(place.directory)
        if session is None and self._memory.has_session:
            yield message(f"({self._title} worked in another directory before; this is a new session.)")
            await self._memory.forget_session()
        brought = await self._bring(self._ctx.input, place)
        wire = await self._started(place, session)
        self._keeping = self._memory.keep_directory(place.directory)
        try:
            try:
                await wire.open(session)
            except LostSessionError:
                await wire.close()
                yield message(f"({self._title} no longer knows our earlier session; this is a new one.)")
                await self._memory.forget_session()
                session, wire = None, await self._started(place, None)
                await wire.open(None)
            await self._ask(
                wire, place, decided.told(prompt_of(self._ctx, brought.lines)), brought, new=session is None
            )
            async for result in self._spoken(wire, place):
                yield result
        finally:
            self._keeping.add_done_callback(_seen)
            self._keeping.cancel()
            await wire.close()

    async def _ask(self, wire: Wire, place: Place, words: str, brought: Brought, *, new: bool) -> None:
        """Begin the turn; a session that has no other way to know its page is told it, and again when it changed."""
        page = "" if wire.knows_page or (self._memory.knows_page(place.context) and not new) else place.context
        await wire.ask(f"{page}\n---\n\n{words}" if page else words, brought.pictures)
        if page:
            await self._memory.keep_page(page)

    async def _bring(self, given: AgentInput, place: Place) -> Brought:
        """Lay out the files of an input; a directory for each, so that equal names do not meet."""
        self._inputs += 1
        folder = f"attachments/{self._ctx.run_id[-12:]}-{self._inputs}"
        brought = await bring(self._api, given.attachments, place.files, folder) if given.attachments else Brought()
        self._brought += brought.files
        return brought

    async def _started(self, place: Place, session: str | None) -> Wire:
        argv, env = self._runner.command(self._config, place, session)
        process = await HarnessProcess.start(argv, cwd=place.directory, env={**place.env, **env})
        return self._runner.wire(process, self._config, place)

    # --- while it speaks ------------------------------------------------------------------------------------

    async def _spoken(self, wire: Wire, place: Place) -> Results:
        steering = asyncio.create_task(self._steer(wire, place)) if wire.steers else None
        try:
            while True:
                heard = await self._next(wire)
                if isinstance(heard, Over | Gone) and await self._is_last(heard, wire):
                    await self._kept()
                    break
                async for result in self._tell(heard, wire, place):
                    yield result
        finally:
            if steering is not None:
                steering.cancel()
        for result in self._told.end():
            yield result
        usage, news, _ = await asyncio.gather(
            self._counted(), self._memory.keep_unreachable(self._unreachable), wire.close()
        )
        self._tidy(place)
        if news:
            yield message(self._without_servers())
        for result in await self._ended(heard, usage):
            yield result

    def _without_servers(self) -> str:
        servers = ", ".join(sorted(self._unreachable))
        return f"({self._title} could not reach the MCP server {servers}; what it offers was missing in this turn.)"

    async def _kept(self) -> None:
        """The session is kept. Raises HostCallError."""
        if self._keeping is not None:
            await self._keeping

    async def _is_last(self, heard: Over | Gone, wire: Wire) -> bool:
        """True when the run ends here; False when late words have begun another turn."""
        if isinstance(heard, Gone) or heard.code is not None or self._waiting or self._question:
            return True
        async with self._handing:
            return wire.is_over

    async def _next(self, wire: Wire) -> Heard:
        try:
            return await wire.next(self._api.seconds_left() - LAST_SECONDS)
        except TimeoutError:
            return Over(DEADLINE_EXCEEDED, "the run's time is up; the harness was stopped")

    async def _tell(self, heard: Heard, wire: Wire, place: Place) -> Results:
        match heard:
            case Session(session_id):
                earlier = [] if self._keeping is None else [self._keeping]
                self._keeping = asyncio.gather(*earlier, self._memory.keep_session(session_id, place.directory))
                await asyncio.sleep(0)  # asked for before anything is said
            case Used():
                self._used = self._used.joined(heard)
            case Unreachable(server):
                self._unreachable.add(server)
            case Question() | Permission():
                for result in await self._answered(heard, wire):
                    yield result
            case ToolEnded(call_id=call_id) if any(call.call_id == call_id for call in self._waiting):
                return  # told when the person was asked
            case Over() | Gone():
                return
            case _:
                for result in self._told.tell(heard):
                    yield result

    async def _answered(self, heard: Question | Permission, wire: Wire) -> list[Result]:
        return await (self._asked(heard, wire) if isinstance(heard, Question) else self._judged(heard, wire))

    async def _judged(self, asked: Permission, wire: Wire) -> list[Result]:
        """Answer the harness; what is not allowed is told here, because not every harness says so itself."""
        verdict, why = self._policy.judge(asked)
        await wire.answer(asked, verdict == "allow", why, stop=verdict == "ask")
        if verdict == "allow":
            return list(self._told.tell(ToolBegan(asked.call_id, asked.name, asked.parameters)))
        if verdict == "ask":
            self._waiting.append(permissions.Waiting.of(asked))
        told = [*self._told.tell(ToolBegan(asked.call_id, asked.name, asked.parameters))]
        return [*told, *self._told.tell(ToolEnded(asked.call_id, asked.name, error=f"not done: {why}"))]

    async def _asked(self, question: Question, wire: Wire) -> list[Result]:
        """The person is shown it when the turn has ended, and answers with the next words like with any others."""
        asked, able = question.asked, permissions.can_ask(self._ctx)
        await wire.answer(asked, allowed=False, why=permissions.NOBODY_TO_TELL, stop=able)
        self._question = question if able else None
        told = [*self._told.tell(ToolBegan(asked.call_id, asked.name, asked.parameters))]
        said = permissions.SHOWN if able else permissions.NOBODY_TO_TELL
        return [*told, *self._told.tell(ToolEnded(asked.call_id, asked.name, result=said))]

    async def _steer(self, wire: Wire, place: Place) -> None:
        """Hand on what arrives meanwhile. What is not taken in gets a run of its own."""
        with suppress(HostCallError, HarnessError):
            while True:
                if await self._api.steering.wait(STEERING_SECONDS) and not wire.is_over:
                    async with self._handing:
                        for item in await self._api.steering.pull():
                            brought = await self._bring(item.input, place)
                            await self._hand(wire, with_files(item.input.text or "", brought.lines))

    async def _hand(self, wire: Wire, text: str) -> None:
        if not text:
            return
        if wire.is_over:
            wire.begin_turn()
            await wire.ask(text)
        else:
            await wire.steer(text)

    # --- how it ended ---------------------------------------------------------------------------------------

    async def _ended(self, heard: Heard, usage: Mapping[str, Any]) -> list[Result]:
        if self._waiting:
            return await permissions.ask(self._ctx, self._api, self._waiting, usage)
        if self._question is not None:
            return await permissions.put(self._api, self._question, usage)
        if isinstance(heard, Gone):
            said = f"{self._title} ended in the middle of the turn: {heard.how}"
            return [failed("harness.ended", said, retryable=True)]
        assert isinstance(heard, Over)
        if heard.code is not None:
            return [failed(heard.code, f"{self._title}: {heard.message}", heard.retryable)]
        return [completed(usage=usage)]

    async def _counted(self) -> dict[str, Any]:
        usage = {**self._used.turn, **await self._memory.since_last_turn(self._used.totals)}
        if "prompt_tokens" in usage and "completion_tokens" in usage:
            usage.setdefault("total_tokens", usage["prompt_tokens"] + usage["completion_tokens"])
        return usage


def _seen(kept: "asyncio.Future[Any]") -> None:
    """Drop output that was still under way when the turn was cut; it is no mistake of the program."""
    if not kept.cancelled():
        kept.exception()
