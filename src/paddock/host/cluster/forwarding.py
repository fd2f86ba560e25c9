"""Doing something with a session, wherever it is worked on: here, or by asking the host that has it.

What is asked is on record before that host is woken, and so is its answer; a ring that is lost costs time. When
the host that was asked is gone, the session is anybody's, and the asking host goes on with it itself.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar, cast, get_args
from uuid import uuid4

import msgspec
import structlog

from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import NewRun
from paddock.host.streams.live import Live
from paddock.ports.bus import Bus, Subscription
from paddock.ports.hosts import ASKED_SECONDS, Errand, Hosts
from paddock.rules.access.credentials import HOST, Credential
from paddock.rules.errors import ErrorCode, HostError, OwnedElsewhereError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow, Row, SessionRow
from paddock.rules.values import Value, nothing

log = structlog.get_logger("paddock.owners")

PATIENCE_SECONDS = ASKED_SECONDS
"""How long a caller waits for the host that has its session; after that it is told to try again."""
WORK_SECONDS = 8.0
AT_ONCE = 64
LOOK_SECONDS = 1.0
"""How often a host looks for errands nobody rang for, and an asking one for its answer; oftener without a bus."""
LOOK_OFTEN = 0.1
MOVED_SECONDS = 0.02

Result = TypeVar("Result")
_encode = msgspec.json.Encoder().encode


class AcceptRun(Value, frozen=True):
    """A new run. Rows that are written with it are of many types, so it travels in a form of its own."""

    new: NewRun


class CancelTheRun(Value, frozen=True, tag="cancel"):
    run_id: str
    principal: Principal
    reason: str = "user"


class Control(Value, frozen=True, tag="control"):
    principal: Principal
    thread_id: str
    subtype: str
    payload: Mapping[str, Any]
    tx_id: str | None
    turn_id: str | None


class LetIn(Value, frozen=True, tag="let_in"):
    """A runner may attach with the token of this hash, as it may at the host that made it."""

    digest: bytes
    workspace: str
    author: str
    name: str
    permissions: Any = None
    by: Credential = HOST
    """Who made the token was let in with it."""


class ForgetFiles(Value, frozen=True, tag="forget_files"):
    """A conversation is being forgotten: what this host keeps of it on its own disk goes too."""

    workspace_id: str
    conversation_id: str


class ForgetThread(Value, frozen=True, tag="forget_thread"):
    """A conversation that rests at this host is to be forgotten, with the row about who decided it, if somebody did."""

    session: SessionRow
    audit: AuditRow | None = None
    buried_at: float | None = None
    silent_since: float | None = None


class MoveThread(Value, frozen=True, tag="move_thread"):
    """A conversation that rests at this host is to belong to another user, with the row about who decided it."""

    session: SessionRow
    user: str
    audit: AuditRow


class Moved(Value, frozen=True):
    """Whether it does; else something goes on in it."""

    it_is: bool


class NothingToTell(Value, frozen=True):
    """It is done."""


class Forgotten(Value, frozen=True):
    """Whether it is; else something goes on in it."""

    it_is: bool


def _as_carried(field: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    """What may be left out of a run may be left out on its way: a host of the release before does not know it."""
    if field.required:
        return field.name, field.type
    default: Any = cast("Any", msgspec.field)(default=field.default, default_factory=field.default_factory)
    return field.name, field.type, default


_CARRIED = [field for field in msgspec.structs.fields(NewRun) if field.name != "rows"]
_ROWS: Mapping[str, type[Any]] = {kind.__name__: kind for kind in get_args(Row)}
_NewRun: Any = msgspec.defstruct("_NewRun", [_as_carried(field) for field in _CARRIED])


class _Carried(Value, frozen=True, tag="accept"):
    new: msgspec.Raw
    rows: list[tuple[str, msgspec.Raw]] = msgspec.field(default_factory=list[tuple[str, msgspec.Raw]])

    @classmethod
    def of(cls, new: NewRun) -> "_Carried":
        rows = [(type(row).__name__, msgspec.Raw(_encode(row))) for row in new.rows]
        return cls(msgspec.Raw(_encode(_NewRun(*(getattr(new, field.name) for field in _CARRIED)))), rows)

    def unpacked(self) -> AcceptRun:
        rows = tuple(msgspec.json.decode(row, type=_ROWS[kind]) for kind, row in self.rows)
        new = msgspec.json.decode(self.new, type=_NewRun)
        given = {field.name: _as_made(getattr(new, field.name)) for field in _CARRIED}
        return AcceptRun(NewRun(**given, rows=rows))


Deed = AcceptRun | CancelTheRun | Control | LetIn | ForgetFiles | ForgetThread | MoveThread
ToSend = Callable[[], Awaitable[Deed]]
"""Makes what is asked, when it takes something to make it."""
Do = Callable[[Any], Awaitable[Any]]


class _Told(Value, frozen=True):
    """An answer on its way back: what it is, or why not."""

    body: msgspec.Raw = msgspec.Raw(b"null")
    code: str | None = None
    message: str = ""
    retryable: bool = False
    details: Mapping[str, Any] = nothing
    moved: bool = False


_decode_deed = msgspec.json.Decoder(
    _Carried | CancelTheRun | Control | LetIn | ForgetFiles | ForgetThread | MoveThread
).decode
_decode_told = msgspec.json.Decoder(_Told).decode


class Owners:
    """Asks other hosts, and answers them. Without `hosts` there is only this one."""

    def __init__(self, hosts: Hosts | None = None, bus: Bus | None = None, live: Live | None = None) -> None:
        self._hosts = hosts
        self._bus = bus
        self._live = live
        self._does: dict[type[Any], Do] = {}
        self._waiting: dict[str, asyncio.Event] = {}
        self._busy: dict[str, asyncio.Task[None]] = {}
        self._bell = asyncio.Event()
        self._heard: list[Subscription] = []

    def serve(self, deeds: Mapping[type[Any], Do]) -> None:
        """How this host does what others ask; it may raise OwnedElsewhereError, and must not pass it on."""
        self._does.update(deeds)

    async def do(self, here: Callable[[], Awaitable[Result]], deed: Deed | ToSend, answer: type[Result]) -> Result:
        """Do it here, or have it done where the session is. Raises HostError."""
        end: float | None = None
        pause = 0.0  # often it was only our memory that was old, and one look tells
        while True:
            try:
                return await here()
            except OwnedElsewhereError as elsewhere:
                now = asyncio.get_running_loop().time()
                end = now + PATIENCE_SECONDS if end is None else end
                if now >= end:
                    raise
                told = await self._send(elsewhere.boot, deed, end) if elsewhere.boot else None
            if told is not None:
                return msgspec.json.decode(told, type=answer)
            await asyncio.sleep(pause)
            pause = MOVED_SECONDS

    async def ask(self, boot: int, deed: Deed, *, seconds: float) -> bool:
        """Have one host do something that is about no session; False: it did not. Raises nothing for its refusal."""
        try:
            return await self._ask(boot, deed, asyncio.get_running_loop().time() + seconds) is not None
        except (HostError, StorageUnavailableError) as error:
            log.warning("another host did not do what it was asked", action="owners.ask", boot=boot, reason=str(error))
            return False

    # --- asking

    async def _send(self, boot: int, deed: Deed | ToSend, end: float) -> bytes | None:
        return await self._ask(boot, await deed() if callable(deed) else deed, end)

    async def _ask(self, boot: int, deed: Deed, end: float) -> bytes | None:
        """The answer; None when the session is not there any more, or that host is gone."""
        if self._hosts is None or self._live is None or self._bus is None:
            return None
        errand_id, rung = uuid4().hex, asyncio.Event()
        self._waiting[errand_id] = rung
        try:
            await self._hosts.ask(boot, Errand(errand_id, packed(deed)))
            self._bus.publish(self._live.subject("errands", str(boot)), b"")
            told = await self._answer_to(errand_id, rung, end)
        finally:
            del self._waiting[errand_id]
        if told is None or told.moved:
            return None
        if told.code is not None:
            raise HostError(ErrorCode(told.code), told.message, retryable=told.retryable, details=told.details)
        return bytes(told.body)

    async def _answer_to(self, errand_id: str, rung: asyncio.Event, end: float) -> _Told | None:
        assert self._hosts is not None
        while True:
            answer, there = await self._hosts.answered(errand_id)
            if answer is not None:
                return _decode_told(answer)
            if not there:
                return None
            left = end - asyncio.get_running_loop().time()
            if left <= 0:
                text = "the host that has this conversation does not answer; try again shortly"
                raise HostError(ErrorCode.UNAVAILABLE, text, retryable=True)
            await _rung_within(rung, min(left, self._look_seconds()))

    def _look_seconds(self) -> float:
        return LOOK_SECONDS if self._bus is not None and self._bus.healthy() else LOOK_OFTEN

    # --- answering

    async def listen(self) -> None:
        """Hear the bell of this host's number; again whenever it has another."""
        await self.stop_listening()
        if self._hosts is None or self._live is None or self._bus is None:
            return
        boot = str(self._hosts.boot)
        self._heard = [
            await self._bus.subscribe(self._live.subject("errands", boot), lambda _: self._bell.set()),
            await self._bus.subscribe(self._live.subject("answers"), self._answered),
        ]

    async def stop_listening(self) -> None:
        heard, self._heard = self._heard, []
        for subscription in heard:
            await subscription.stop()

    def _answered(self, errand_id: bytes) -> None:
        if (waiting := self._waiting.get(errand_id.decode())) is not None:
            waiting.set()

    async def keep_answering(self) -> None:
        """Do what others ask, for as long as the house stands."""
        assert self._hosts is not None
        while True:
            try:
                for errand in await self._hosts.asked(limit=AT_ONCE):
                    if errand.errand_id not in self._busy and len(self._busy) < AT_ONCE:
                        self._start(errand)
            except StorageUnavailableError:
                await asyncio.sleep(LOOK_SECONDS)
            except Exception:  # whatever it was, others still wait for answers
                log.exception("errands could not be looked for", action="owners.answering")
                await asyncio.sleep(LOOK_SECONDS)
            await _rung_within(self._bell, self._look_seconds())

    def _start(self, errand: Errand) -> None:
        task = asyncio.get_running_loop().create_task(self._answer(errand))
        self._busy[errand.errand_id] = task
        task.add_done_callback(lambda _: self._free(errand.errand_id))

    def _free(self, errand_id: str) -> None:
        if len(self._busy) >= AT_ONCE:  # more may wait than there was room for, and nobody rings for it again
            self._bell.set()
        self._busy.pop(errand_id, None)

    async def _answer(self, errand: Errand) -> None:
        assert self._hosts is not None
        assert self._bus is not None
        assert self._live is not None
        told = await self._done(errand)
        try:
            await self._hosts.answer(errand.errand_id, _encode(told))
        except StorageUnavailableError as error:
            log.warning("an answer could not be recorded", action="owners.answer", reason=str(error))
        self._bus.publish(self._live.subject("answers"), errand.errand_id.encode())

    async def _done(self, errand: Errand) -> _Told:
        try:
            deed = unpacked(errand.body)
        except (msgspec.MsgspecError, KeyError):
            log.warning("an errand cannot be read", action="owners.done", errand=errand.errand_id)
            text = "the host that has this conversation is of another release and does not know this; try again shortly"
            return _Told(code=str(ErrorCode.UNAVAILABLE), message=text, retryable=True)
        try:
            async with asyncio.timeout(WORK_SECONDS):
                done = await self._does[type(deed)](deed)
            return _Told(msgspec.Raw(_encode(done)))
        except OwnedElsewhereError:
            return _Told(moved=True)
        except HostError as error:
            return _refusal(error)
        except (StorageUnavailableError, TimeoutError):
            return _Told(code=str(ErrorCode.UNAVAILABLE), message="the store cannot write now", retryable=True)
        except Exception:
            log.exception("an errand failed", action="owners.done")
            return _Told(code=str(ErrorCode.RUNTIME_ERROR), message="the host made a mistake; its log has the details")

    async def stop(self) -> None:
        busy = list(self._busy.values())
        for task in busy:
            task.cancel()
        await asyncio.gather(*busy, return_exceptions=True)
        await self.stop_listening()


def _as_made(value: Any) -> Any:
    """Sequences are tuples in the house."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def packed(deed: Deed) -> bytes:
    return _encode(_Carried.of(deed.new) if isinstance(deed, AcceptRun) else deed)


def unpacked(body: bytes) -> Deed:
    deed = _decode_deed(body)
    return deed.unpacked() if isinstance(deed, _Carried) else deed


def _refusal(error: HostError) -> _Told:
    return _Told(code=str(error.code), message=error.message, retryable=error.retryable, details=error.details)


async def _rung_within(bell: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await bell.wait()
    except TimeoutError:
        return
    finally:
        bell.clear()
