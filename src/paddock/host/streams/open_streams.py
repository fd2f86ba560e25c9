"""Open streams, transfers and attached runners. Each ends soon after the credential it came with.

Every host looks for itself, so it does not matter where a key was revoked. Streams are counted as well: a user, and a
workspace, may hold so many open at one host. Runs are not touched: they go on, and only their reader is cut.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, MutableMapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, TypeVar

import anyio
import structlog

from paddock.host.people.principals import Principal
from paddock.ports import ApiKeys
from paddock.rules.access.credentials import Credential, why_over
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


class Place:
    """One thing that somebody holds open."""

    __slots__ = ("_end", "_streams", "credential", "holder", "over", "who")

    def __init__(
        self,
        streams: "OpenStreams",
        credential: Credential,
        who: tuple[str, str] | None,
        holder: tuple[str, str] | None = None,
    ) -> None:
        self._streams = streams
        self.holder = holder or who
        """Who reads it, where that is known."""
        self._end: Callable[[], None] | None = None
        self.credential = credential
        self.who = who
        """Whose count it is part of, if it is counted."""
        self.over = ""
        """Why it has to end; empty while it need not."""

    def when_over(self, end: Callable[[], None]) -> None:
        """Call this when it has to end: at once, when that is so already."""
        self._end = end
        if self.over:
            end()

    def end(self, why: str) -> None:
        if not self.over:
            self.over = why
            if self._end is not None:
                self._end()

    def leave(self) -> None:
        """It is not held open any more."""
        self._streams.left(self)


class OpenStreams:
    def __init__(
        self, keys: ApiKeys, *, clock: Callable[[], float] = time.time, limits: StreamLimits | None = None
    ) -> None:
        self._keys = keys
        self._clock = clock
        self._limits = limits or StreamLimits()
        self._places: set[Place] = set()
        self._of_user: Counter[tuple[str, str]] = Counter()
        self._of_workspace: Counter[str] = Counter()

    @property
    def held_open(self) -> int:
        """How many things are held open, streams and others."""
        return len(self._places)

    # --- holding ------------------------------------------------------------------------------------------------------

    def stream(self, principal: Principal) -> Place:
        """A place for one more stream. Raises RATE_LIMITED; whoever runs the host has no limit."""
        if principal.operator:
            return self.hold(principal.credential, holder=(principal.workspace_id, principal.user_id))
        who = (principal.workspace_id, principal.user_id)
        _check(self._of_user[who], self._limits.of_user, "a user", "streams_per_user")
        _check(self._of_workspace[who[0]], self._limits.of_workspace, "a workspace", "streams_per_workspace")
        self._of_user[who] += 1
        self._of_workspace[who[0]] += 1
        return self.hold(principal.credential, who)

    def hold(
        self, credential: Credential, who: tuple[str, str] | None = None, *, holder: tuple[str, str] | None = None
    ) -> Place:
        place = Place(self, credential, who, holder)
        self._places.add(place)
        return place

    def left(self, place: Place) -> None:
        if place not in self._places:
            return
        self._places.discard(place)
        if place.who is not None:
            _one_less(self._of_user, place.who)
            _one_less(self._of_workspace, place.who[0])

    @contextmanager
    def held(self, credential: Credential) -> Generator[None]:
        """Whatever is awaited within is broken off when the credential ends. Raises UNAUTHENTICATED then."""
        place = self.hold(credential)
        try:
            with anyio.CancelScope() as scope:
                place.when_over(scope.cancel)
                yield
            if place.over:
                raise HostError(ErrorCode.UNAUTHENTICATED, place.over)
        finally:
            place.leave()

    def guard(self, scope: MutableMapping[str, Any], credential: Credential) -> None:
        """Let `while_let_in` know what a request was let in with."""
        scope[LET_IN] = (self, credential)

    async def counts(self, credential: Credential) -> bool:
        """Tell if a credential would be accepted now."""
        return await self._judged([credential]) == {}

    # --- looking ------------------------------------------------------------------------------------------------------

    async def keep_looking(self) -> None:
        """For as long as the host runs."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                await self.end_refused()
            except StorageUnavailableError:
                pass  # who cannot be asked about is told nothing new either, and is judged when the store is back
            except Exception:
                log.exception("looking after open streams failed", action="open_streams.look")

    async def end_refused(self) -> None:
        """End what is held open with a credential that does not count any more."""
        places = tuple(self._places)
        over = await self._judged({place.credential for place in places})
        for place in places:
            if why := over.get(place.credential):
                place.end(why)

    def key_revoked(self, key_id: str) -> None:
        """Here it was revoked just now: nobody waits for the next look."""
        self._end_at_once(Credential("key", key_id))

    def end_of(self, holder: tuple[str, str], why: str) -> None:
        """End the streams of one user of one workspace; what they still may read they open again."""
        for place in tuple(self._places):
            if place.holder == holder:
                place.end(why)

    def _end_at_once(self, credential: Credential) -> None:
        why = why_over(credential, now=self._clock(), live_keys=(), keyless=False)
        for place in tuple(self._places):
            if place.credential == credential and why:
                place.end(why)

    async def _judged(self, credentials: Iterable[Credential]) -> dict[Credential, str]:
        """Those that do not count any more, and why."""
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
    """Break off what is awaited within when what let this request in ends. Raises UNAUTHENTICATED then."""
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
