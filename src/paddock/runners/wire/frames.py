"""One line on a runner's wire, in and out. Nothing here knows of runs, processes or who is allowed what.

Results are the hot path: a line that starts as writers usually start one is decoded in a single pass into `Result`.
Everything else, and every result that is not well formed, takes the slower general road to the same end.
"""

import re
from typing import Any, TypeGuard, cast

import msgspec

from paddock.ports import Unreadable
from paddock.rules.run.request_bodies import holds_more_values
from paddock.rules.run.results import SHAPES, Result

MAX_FRAME_BYTES = 4_194_304
MAX_VALUES = 65_536
"""In one line. Making a value, checking it and writing it down again takes far longer than a letter of text."""
RUN_CREDIT = 256
CALL_CREDIT = 64

Id = str | int


class RemoteError(msgspec.Struct, frozen=True):
    """The error of a peer's response."""

    code: int = -32000
    message: str = ""
    data: Any = None


class Frame(msgspec.Struct, frozen=True):
    """Any JSON-RPC object: a request, a notification or a response, told apart by what is set."""

    id: Id | None = None
    method: str | None = None
    params: Any = None
    result: Any = msgspec.UNSET
    error: RemoteError | None = None


class ResultFrame(msgspec.Struct, frozen=True, tag_field="method", tag="run_result"):
    """A `run_result` notification, read in one pass."""

    params: Result


class BadFrameError(Exception):
    """The line is no frame. `run_id` is set when it is a broken result that still says whose; `call` when it is a
    request that must be answered; `answer_to` when it answers one of ours."""

    def __init__(
        self, message: str, run_id: str | None = None, *, call: Frame | None = None, answer_to: int | None = None
    ) -> None:
        super().__init__(message)
        self.run_id = run_id
        self.call = call
        self.answer_to = answer_to


MAX_ID_CHARS = 128
SCANNED_BYTES = 65_536
"""How much of a broken line is looked through for its id and its method. A line this short is not counted."""
MAX_MENDED = 20_000
"""How many escapes of half a character a line may have and still be mended."""

encode = msgspec.json.Encoder().encode
_result = msgspec.json.Decoder(ResultFrame).decode
_frame = msgspec.json.Decoder(Frame).decode
_convert_result = msgspec.convert
_RESULT_START = b'{"jsonrpc":"2.0","method":"run_result"'
_RUN_ID = re.compile(rb'"run_id"\s*:\s*"([^"\\]{1,200})"')
_IS_RESULT = re.compile(rb'"method"\s*:\s*"run_result"')
_TOKEN = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"|[{}\[\]:,]|[^\s"{}\[\]:,]++', re.DOTALL)
_HALF = re.compile(
    rb"(?<!\\)((?:\\\\)*+)\\u[dD](?:[89abAB][0-9a-fA-F]{2}(?P<other>\\u[dD][c-fC-F][0-9a-fA-F]{2})?|[c-fC-F][0-9a-fA-F]{2})"
)


def decode(line: bytes) -> Result | Frame:
    """Read one line. Raises BadFrameError for whatever is no frame, however odd."""
    if len(line) > SCANNED_BYTES and holds_more_values(line, MAX_VALUES):
        raise _broken(line, ValueError(f"a line may hold at most {MAX_VALUES} values; send less at once"))
    if line.startswith(_RESULT_START):
        try:
            return _result(line).params
        except (ValueError, RecursionError):
            pass  # not so well formed after all: the general road finds out how
    return _general(line)


def _general(line: bytes) -> Result | Frame:
    try:
        frame = _frame(line)
    except (ValueError, RecursionError) as problem:
        frame = _mended(line, problem)
    return _as_result(frame) if frame.method == "run_result" and frame.id is None else frame


def _mended(line: bytes, problem: Exception) -> Frame:
    """Half a character cut in two by a careless stream is no reason to lose a run: it becomes U+FFFD."""
    if 0 < line.count(b"\\ud") + line.count(b"\\uD") <= MAX_MENDED:
        try:
            return _frame(_HALF.sub(lambda half: half[0] if half["other"] else half[1] + b"\\ufffd", line))
        except (ValueError, RecursionError):
            pass
    raise _broken(line, problem) from None


def _broken(line: bytes, problem: Exception) -> BadFrameError:
    """Find out whom a broken line concerns, so that nobody waits for it until a deadline."""
    text = "it is nested too deeply" if isinstance(problem, RecursionError) else str(problem)
    if not line.lstrip().startswith(b"{"):
        return BadFrameError(text)  # a stray print
    fields = _outermost_fields(line)
    number, method = _scalar(fields.get(b'"id"')), _scalar(fields.get(b'"method"'))
    if method == "run_result" or (method is None and _IS_RESULT.search(line[-SCANNED_BYTES:])):
        owner = _RUN_ID.search(line)
        return BadFrameError(text, owner[1].decode("utf-8", "replace") if owner else None)
    if b'"method"' not in fields and type(number) is int:
        return BadFrameError(text, answer_to=number)
    unreadable = Unreadable(text, is_json=isinstance(problem, msgspec.ValidationError))
    named = method if isinstance(method, str) else ""
    return BadFrameError(text, call=Frame(id=number if is_id(number) else None, method=named, params=unreadable))


def is_id(number: object) -> TypeGuard[Id]:
    """Return true for a valid request id: an integer, or a string short enough to be repeated in answers."""
    return type(number) is int or (isinstance(number, str) and len(number) <= MAX_ID_CHARS)


def _outermost_fields(line: bytes) -> dict[bytes, bytes]:
    """The plain values of the outermost object, as they are written, as far as the beginning of a broken line goes."""
    found: dict[bytes, bytes] = {}
    depth, before, key = 0, b"", b""
    for token in _TOKEN.finditer(line, 0, SCANNED_BYTES):
        text = token[0]
        if text in (b"}", b"]"):
            depth -= 1
        elif depth == 1 and text == b":":
            key = before
        elif depth == 1 and before == b":" and text not in (b"{", b"["):
            found.setdefault(key, text)
        if text in (b"{", b"["):
            depth += 1
        before = text
    return found


def _scalar(written: bytes | None) -> object:
    try:
        return None if written is None else msgspec.json.decode(written)
    except ValueError:
        return None


def _as_result(frame: Frame) -> Result:
    try:
        return _convert_result(_with_readable_data(frame.params), Result)
    except (ValueError, RecursionError) as problem:
        owner = frame.params.get("run_id") if isinstance(frame.params, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        raise BadFrameError(str(problem), owner if isinstance(owner, str) else None) from None


def _with_readable_data(params: Any) -> Any:
    """Null data is none; of a type from the future the data may be anything, and nobody reads it."""
    if not isinstance(params, dict):
        return params
    given = cast("dict[str, Any]", params)
    data, kind = given.get("data", {}), given.get("type")
    if data is None or (not isinstance(data, dict) and isinstance(kind, str) and kind not in SHAPES):
        return {**given, "data": {}}
    return given


def request(number: int, method: str, params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "method": method, "params": params})


def notification(method: str, params: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def response(number: Id, result: Any) -> bytes:
    return encode({"jsonrpc": "2.0", "id": number, "result": result})


def refusal(number: Id | None, code: int, data: dict[str, Any]) -> bytes:
    """An error whose data is an AgentAPIError."""
    error = {"code": code, "message": data.get("message", ""), "data": data}
    return encode({"jsonrpc": "2.0", "id": number, "error": error})
