"""Requests between hosts and their replies, as they travel through the store."""

from collections.abc import Mapping
from typing import Any, cast, get_args

import msgspec

from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import NewRun
from paddock.rules.access.credentials import HOST, Credential
from paddock.rules.rows.rows import AuditRow, Row, SessionRow
from paddock.rules.values import Value, nothing

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
    """The credential of whoever made the token."""


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
    """The reply: it belongs to the other user now, or something goes on in it."""

    it_is: bool


class NothingToTell(Value, frozen=True):
    """It is done."""


class Forgotten(Value, frozen=True):
    """The reply: it is forgotten, or something goes on in it."""

    it_is: bool


def _as_carried(field: msgspec.structs.FieldInfo) -> tuple[str, Any] | tuple[str, Any, Any]:
    """Make fields optional on the way that are optional in a run: a host of the release before does not know them."""
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


RemoteRequest = AcceptRun | CancelTheRun | Control | LetIn | ForgetFiles | ForgetThread | MoveThread


class Reply(Value, frozen=True):
    """An answer on its way back: what it is, or why not."""

    body: msgspec.Raw = msgspec.Raw(b"null")
    code: str | None = None
    message: str = ""
    retryable: bool = False
    details: Mapping[str, Any] = nothing
    moved: bool = False


_decode_request = msgspec.json.Decoder(
    _Carried | CancelTheRun | Control | LetIn | ForgetFiles | ForgetThread | MoveThread
).decode
decode_reply = msgspec.json.Decoder(Reply).decode


def _as_made(value: Any) -> Any:
    """Sequences are tuples in the house."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def packed(request: RemoteRequest) -> bytes:
    return _encode(_Carried.of(request.new) if isinstance(request, AcceptRun) else request)


def unpacked(body: bytes) -> RemoteRequest:
    request = _decode_request(body)
    return request.unpacked() if isinstance(request, _Carried) else request
