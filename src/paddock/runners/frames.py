"""One line on a runner's wire, in and out. Nothing here knows of runs, processes or who is allowed what.

Results are the hot path: a line that starts as writers usually start one is decoded in a single pass into `Result`.
Everything else, and every result that is not well formed, takes the slower general road to the same end.
"""

import re
from typing import Any

import msgspec

from paddock.rules.results import Result

MAX_FRAME_BYTES = 4_194_304
MAX_RESULT_BYTES = 1_048_576
RUN_CREDIT = 256
CALL_CREDIT = 64

Id = str | int


class RemoteError(msgspec.Struct, frozen=True):
    """What a peer answers when it will not."""

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
    """The line is no frame. `run_id` is set when it is a broken result that still says whose."""

    def __init__(self, message: str, run_id: str | None = None) -> None:
        super().__init__(message)
        self.run_id = run_id


encode = msgspec.json.Encoder().encode
_result = msgspec.json.Decoder(ResultFrame).decode
_frame = msgspec.json.Decoder(Frame).decode
_convert_result = msgspec.convert
_RESULT_START = b'{"jsonrpc":"2.0","method":"run_result"'
_RUN_ID = re.compile(rb'"run_id"\s*:\s*"([^"\\]{1,200})"')
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)


def decode(line: bytes) -> Result | Frame:
    """Read one line. Raises BadFrameError for whatever is no frame, however odd."""
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
    if b"\\ud" in line or b"\\uD" in line:
        try:
            return _frame(_ESCAPE.sub(lambda m: b"\\ufffd" if m["lone"] else m[0], line))
        except (ValueError, RecursionError):
            pass
    owner = _RUN_ID.search(line) if b"run_result" in line[:256] else None
    raise BadFrameError(str(problem), owner[1].decode("utf-8", "replace") if owner else None) from None


def _as_result(frame: Frame) -> Result:
    try:
        return _convert_result(frame.params, Result)
    except (ValueError, RecursionError) as problem:
        owner = frame.params.get("run_id") if isinstance(frame.params, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
        raise BadFrameError(str(problem), owner if isinstance(owner, str) else None) from None


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
