"""Open streams, transfers and attached runners. Each ends soon after the credential it came with.

Every host checks for itself, so it does not matter where a key was revoked. The streams of a user, and of a workspace,
are counted and limited at each host. Runs go on when the stream of their reader ends.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any, TypeVar

import anyio
import structlog

from paddock.host.people.principals import Principal
from paddock.ports import ApiKeys
from paddock.rules.access.signatures import Credential, why_over
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.values import Value

log = structlog.get_logger(__name__)

LOOK_SECONDS = 2.0
"""With what a host remembers of a key (five seconds) and a slow look this stays below ten seconds."""
RETRY_SECONDS = 5.0
ASKED_AT_ONCE = 500
LET_IN = "paddock.let_in"

Name = TypeVar("Name", bound=Hashable)


class StreamLimits(Value, frozen=True):
    """How many streams may be open at one host at once; 0 lifts a limit."""

    of_user: int = 500
    of_workspace: int = 2000


class OpenStream:
    """One open stream, transfer or connection of an attached runner."""

    __slots__ = ("_end", "_streams", "counted", "credential", "holder", "over")

    def __init__(
        self,
        streams: "OpenStreams",
        credential: Credential,
        counted: tuple[str, str] | None,
        holder: tuple[str, str] | None = None,
    ) -> None:
        self._streams = streams
        self._end: Callable[[], None] | None = None
        self.credential = credential
        self.counted = counted
        """The workspace and the user in whose count it is, if it is counted."""
        self.holder = holder or counted
        """The workspace and the user who read it, where that is known."""
        self.over = ""
        """Why it has to end; empty while it need not."""

    def when_over(self, end: Callable[[], None]) -> None:
        """Call this when it has to end; at once when that is so already."""
        self._end = end
        if self.over:
            end()

    def end(self, why: str) -> None:
        if not self.over:
            self.over = why
            if self._end is not None:
                self._end()

    def leave(self) -> None:
        """Stop counting it: it is not open any more."""
        streams = self._streams
        if self not in streams.open:
            return
        streams.open.discard(self)
        if self.counted is not None:
            _one_less(streams.of_user, self.counted)
            _one_less(streams.of_workspace, self.counted[0])


class OpenStreams:
    def __init__(
        self, keys: ApiKeys, *, clock: Callable[[], float] = time.time, limits: StreamLimits | None = None
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._limits = limits or StreamLimits()
        self.open: set[OpenStream] = set()
        self.of_user: Counter[tuple[str, str]] = Counter()
        self.of_workspace: Counter[str] = Counter()

    # --- holding ------------------------------------------------------------------------------------------------------

    def stream(self, principal: Principal) -> OpenStream:
        """Count one more stream. Raises RATE_LIMITED; operators have no limit."""
        user = (principal.workspace_id, principal.user_id)
        if principal.operator:
            return self.hold(principal.credential, holder=user)
        _check(self.of_user[user], self._limits.of_user, "a user", "streams_per_user")
        _check(self.of_workspace[user[0]], self._limits.of_workspace, "a workspace", "streams_per_workspace")
        self.of_user[user] += 1
        self.of_workspace[user[0]] += 1
        return self.hold(principal.credential, user)

    def hold(
        self, credential: Credential, counted: tuple[str, str] | None = None, *, holder: tuple[str, str] | None = None
    ) -> OpenStream:
        stream = OpenStream(self, credential, counted, holder)
        self.open.add(stream)
        return stream

    @contextmanager
    def held(self, credential: Credential) -> Generator[None]:
        """Cancel what is awaited within when the credential ends. Raises UNAUTHENTICATED then."""
        stream = self.hold(credential)
        try:
            with anyio.CancelScope() as scope:
                stream.when_over(scope.cancel)
                yield
            if stream.over:
                raise HostError(ErrorCode.UNAUTHENTICATED, stream.over)
        finally:
            stream.leave()

    def guard(self, scope: MutableMapping[str, Any], credential: Credential) -> None:
        """Note the credential of a request for `while_let_in`."""
        scope[LET_IN] = (self, credential)

    async def counts(self, credential: Credential) -> bool:
        """Tell if a credential would be accepted now."""
        return await self._judged([credential]) == {}

    async def look_at(self, stream: OpenStream) -> None:
        """End one at once if its credential is not valid any more: it may have ended since it was handed on."""
        with suppress(StorageUnavailableError):  # nobody is cut while the store is away
            if why := (await self._judged([stream.credential])).get(stream.credential):
                stream.end(why)

    # --- ending ------------------------------------------------------------------------------------------------------

    async def keep_looking(self) -> None:
        """End refused streams again and again, for as long as the host runs."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.end_refused()
            except StorageUnavailableError:
                pass  # nobody gets anything new while the store is away; it is checked again when that is back
            except Exception:
                log.exception("looking after open streams failed", action="open_streams.look")

    async def end_refused(self) -> None:
        """End what was opened with a credential that is not valid any more."""
        streams = tuple(self.open)
        over = await self._judged({stream.credential for stream in streams})
        for stream in streams:
            if why := over.get(stream.credential):
                stream.end(why)

    def key_revoked(self, key_id: str) -> None:
        """End what was opened with a key that was revoked at this host."""
        credential = Credential("key", key_id)
        why = why_over(credential, now=self._clock(), live_keys=(), keyless=False)
        for stream in tuple(self.open):
            if stream.credential == credential and why:
                stream.end(why)

    def end_of(self, holder: tuple[str, str], why: str) -> None:
        """End the streams of one user of one workspace. The user may open again those that are still allowed."""
        for stream in tuple(self.open):
            if stream.holder == holder:
                stream.end(why)

    async def _judged(self, credentials: Iterable[Credential]) -> dict[Credential, str]:
        """Return those that are not valid any more, with the reason."""
        given = tuple(credentials)
        named = [one.key_id for one in given if one.kind == "key"]
        live: set[str] = set()
        for start in range(0, len(named), ASKED_AT_ONCE):
            live.update(await self._keys.live_keys(named[start : start + ASKED_AT_ONCE]))
        keyless = any(one.kind == "keyless" for one in given) and not await self._keys.any_key()
        now = self._clock()
        judged = ((one, why_over(one, now=now, live_keys=live, keyless=keyless)) for one in given)
        return {one: why for one, why in judged if why is not None}


def while_let_in(scope: Mapping[str, Any]) -> AbstractContextManager[None]:
    """Cancel what is awaited within when the credential of this request ends. Raises UNAUTHENTICATED then."""
    found: tuple[OpenStreams, Credential] | None = scope.get(LET_IN)
    return nullcontext() if found is None else found[0].held(found[1])


def _check(held: int, most: int, whose: str, setting: str) -> None:
    if 0 < most <= held:
        text = f"{held} streams are open, as many as {whose} may hold at one host; close one, or raise `{setting}`"
        raise HostError(ErrorCode.RATE_LIMITED, text, retryable=True, details={"retry_after": RETRY_SECONDS})


def _one_less(counted: "Counter[Name]", name: Name) -> None:
    counted[name] -= 1
    if counted[name] <= 0:
        del counted[name]
