"""Bodies of requests: JSON of bounded size and depth, and when two of them ask the same. Pure."""

import re
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, cast

import msgspec

from paddock.rules.conversations.attachments import PATH as ATTACHMENTS
from paddock.rules.conversations.attachments import without_signatures

Json = dict[str, Any]


class InvalidInputError(Exception):
    """The sentence that answers an invalid request."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise InvalidInputError(message)


def nested_too_deep(body: bytes, value: object, limit: int) -> bool:
    """Most bodies have too few brackets to be deep, and counting them is much cheaper than looking."""
    return body.count(b"[") + body.count(b"{") > limit and _deeper(value, limit)


def _deeper(value: object, limit: int) -> bool:
    if isinstance(value, dict):
        return limit == 0 or any(_deeper(item, limit - 1) for item in cast("Json", value).values())
    if isinstance(value, list):
        return limit == 0 or any(_deeper(item, limit - 1) for item in cast("list[object]", value))
    return False


_TOKEN = re.compile(rb'"(?:[^"\\\r\n]++|\\[^\r\n])*+(")?|[,\[{]')
_BEFORE_VALUE = frozenset({b",", b"[", b"{"})
MAX_DEPTH = 64
COMPRESSED = "is compressed with gzip, which is not read here: send plain JSON, without Content-Encoding"
_UUID = re.compile(r"[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}", re.ASCII)
_GZIP = b"\x1f\x8b"
_ADDRESS = ATTACHMENTS.encode()
_encode_sorted = msgspec.json.Encoder(order="sorted").encode


def decode_object(body: bytes, name: str) -> Json:
    """The body as a JSON object of bounded depth. Raises InvalidInputError."""
    try:
        value = msgspec.json.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidInputError(f"{name} {why_no_json(body, error)}") from error
    except RecursionError as error:
        raise InvalidInputError(f"{name} is nested deeper than {MAX_DEPTH} levels") from error
    if not isinstance(value, dict):
        raise InvalidInputError(f"{name} must be a JSON object")
    document = cast("Json", value)
    if nested_too_deep(body, document, MAX_DEPTH):
        raise InvalidInputError(f"{name} is nested deeper than {MAX_DEPTH} levels")
    return document


def holds_more_values(body: bytes, most: int) -> bool:
    """Return true if a JSON body has more than `most` values, counted before any is made. Not exact for invalid JSON.

    Making, keeping and sending on a value takes far longer than a letter of text, so both are bounded.
    """
    if _values_begun(body) <= most:
        return False
    bare = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    if bare.count(b'"') > 4 * (most + 1):  # a value has two quotes at most, and two around its key
        return True
    return _values_begun(b"".join(bare.split(b'"')[::2])) > most  # commas in texts are no values


def _values_begun(body: bytes) -> int:
    return body.count(b",") + body.count(b"[") + body.count(b"{")


class JsonValues:
    """Counts the values of JSON that comes in pieces. A text ends with its line at the latest, as JSON has it."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values = 0
        self._open_text = b""
        """How a text begins whose end has not come: its quote, and a backslash that waits for what it stands before."""

    def begin_anew(self) -> None:
        self._values, self._open_text = 0, b""

    def feed(self, piece: bytes) -> bool:
        """Count the values in one more piece; return true once there are more than the most."""
        given, self._open_text = self._open_text + piece, b""
        for found in _TOKEN.finditer(given):  # commas in texts are no values
            if found[0] in _BEFORE_VALUE:
                self._values += 1
                if self._values > self._most:
                    return True
            elif found[1] is None and found.end() >= len(given) - 1:
                self._open_text = b'"' + given[found.end() :]
        return False


def why_no_json(body: bytes, error: Exception) -> str:
    return COMPRESSED if body.startswith(_GZIP) else f"is not valid JSON: {error}"


def body_hash(document: Mapping[str, Any], agent_id: str | None) -> bytes:
    """Equal for requests that ask the same (see `canonical`); the agent asked for counts."""
    return sha256(canonical((document, agent_id))).digest()


def canonical(asked: object) -> bytes:
    """Encode a request so that spacing, the order of keys and the signatures in addresses of files do not count."""
    encoded = _encode_sorted(asked)
    return _encode_sorted(without_signatures(msgspec.json.decode(encoded))) if _ADDRESS in encoded else encoded


def is_uuid(text: str) -> bool:
    return _UUID.fullmatch(text) is not None
