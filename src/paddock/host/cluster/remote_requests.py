"""Requests between hosts and their replies, as they travel through the store."""

from collections.abc import Mapping
from typing import Any, cast, get_args

import msgspec
from msgspec import field

from paddock.host.people.principals import Principal
from paddock.host.session.arrivals import NewRun
from paddock.rules.access.signatures import HOST, Credential
from paddock.rules.rows.rows import AuditRow, Row, SessionRow
from paddock.rules.values import Value, nothing

_encode = msgspec.json.Encoder().encode


class AcceptRun(Value, frozen=True):
    """Accept a new run. It is sent as `_Carried`, because the rows written with it are of many types."""

    new: NewRun


class CancelTheRun(Value, frozen=True, tag="cancel"):
    run_id: str
    principal: Principal
    reason: str = "user"


class Control(Value, frozen=True, tag="control"):
    principal: Principal
    session_id: str = field(name="thread_id")
    subtype: str
    payload: Mapping[str, Any]
    tx_id: str | None
    run_id: str | None = field(name="turn_id")


class LetIn(Value, frozen=True, tag="let_in"):
    """Let a runner attach with the token of this hash, made at another host."""

    digest: bytes
    workspace: str
    author: str
    name: str
    permissions: Any = None
    by: Credential = HOST
    """The credential with which the token was made."""


class ForgetFiles(Value, frozen=True, tag="forget_files"):
    """Remove the files of a deleted conversation from the disk of the host that is asked."""

    workspace_id: str
    session_id: str = field(name="conversation_id")


class ForgetThread(Value, frozen=True, tag="forget_thread"):
    """Delete a conversation at rest, together with the audit row of the person who asked for it, if one did."""

    session: SessionRow
    audit: AuditRow | None = None
    buried_at: float | None = None
    silent_since: float | None = None


class MoveThread(Value, frozen=True, tag="move_thread"):
    """Give a conversation at rest to another user, together with the audit row of the decision."""

    session: SessionRow
    user: str
    audit: AuditRow


class Done(Value, frozen=True):
    """The reply to a request without a result of its own: done, or not because the conversation is in use."""

    done: bool = field(name="it_is", default=True)


def _as_carried(field: msgspec.structs.FieldInfo) -> tuple[str, Any, Any]:
    """Keep optional fields optional: a host of an older release does not send them."""
    make = cast("Any", msgspec.field)
    carried = make(name=field.encode_name, default=field.default, default_factory=field.default_factory)
    return field.name, field.type, carried


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
    """The answer to a request: its encoded result, or an error."""

    body: msgspec.Raw = msgspec.Raw(b"null")
    code: str | None = None
    message: str = ""
    retryable: bool = False
    details: Mapping[str, Any] = nothing
    moved: bool = False
    """The conversation is no longer at the host that was asked."""


_decode_request = msgspec.json.Decoder(
    _Carried | CancelTheRun | Control | LetIn | ForgetFiles | ForgetThread | MoveThread
).decode
decode_reply = msgspec.json.Decoder(Reply).decode


def _as_made(value: Any) -> Any:
    """Decoded sequences are tuples inside the host."""
    return tuple(cast("list[Any]", value)) if isinstance(value, list) else value


def packed(request: RemoteRequest) -> bytes:
    return _encode(_Carried.of(request.new) if isinstance(request, AcceptRun) else request)


def unpacked(body: bytes) -> RemoteRequest:
    request = _decode_request(body)
    return request.unpacked() if isinstance(request, _Carried) else request
