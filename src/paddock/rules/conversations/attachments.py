"""Attached files: their limits and kinds, and the signed addresses under which they are read and uploaded. Pure.

Of an address only the path and the query are ours. One of any other shape is not ours, whatever it says, and nothing in
this house ever fetches one.
"""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from hmac import compare_digest
from typing import Any, Literal, cast
from urllib.parse import parse_qsl, urlencode, urlsplit

import msgspec

from paddock.rules.access.signatures import SigningKeys, is_signed, signed
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.values import Value

MIB = 1024 * 1024
PDF = "application/pdf"
IMAGES = ("image/png", "image/jpeg", "image/webp", "image/gif")
MAX_NAME_CHARS = 200
HEAD_BYTES = 16


class AttachmentLimits(Value, frozen=True):
    file_bytes: int = 10 * MIB
    user_bytes: int = 512 * MIB
    pixels: int = 40_000_000
    """Of all frames together."""
    pdf: bool = False
    url_seconds: int = 900
    unused_seconds: float = 86_400.0
    """How long an upload waits for the message it belongs to."""
    at_once: int = 8
    """Uploads under way; a further one is asked to come again."""

    @property
    def types(self) -> tuple[str, ...]:
        return (*IMAGES, PDF) if self.pdf else IMAGES


def kind_of(head: bytes) -> str | None:
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "image/webp"
    return PDF if head.startswith(b"%PDF-") else None


def checked_kind(content: bytes, limits: AttachmentLimits) -> str:
    """The type of a file that may be attached. Raises INVALID_ARGUMENT, PAYLOAD_TOO_LARGE."""
    check_size(len(content), limits)
    kind = kind_of(content[:HEAD_BYTES])
    if kind is None or kind not in limits.types:
        raise wrong_type(limits)
    return kind


def check_size(size: int, limits: AttachmentLimits) -> None:
    if size > limits.file_bytes:
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, f"an attachment may have at most {limits.file_bytes} bytes")
    if size < 1:
        raise HostError(ErrorCode.INVALID_ARGUMENT, "the attachment is empty")


def wrong_type(limits: AttachmentLimits) -> HostError:
    known = ", ".join(limits.types)
    return HostError(ErrorCode.INVALID_ARGUMENT, f"an attachment must be one of {known}, judged by its content")


PATH = "/api/v1/agent/attachments"
MAX_URL_CHARS = 4096
ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", re.ASCII)
_PATH = re.compile(re.escape(PATH) + r"/([^/]+)/content")
_READ_FIELDS = frozenset({"expires", "disposition", "key", "signature"})
_MOMENT = re.compile(r"[0-9]{1,15}", re.ASCII)

_OFFER_CHARS = 16
_PORTS = {"http": 80, "https": 443}

Disposition = Literal["inline", "attachment"]
Origin = tuple[str, str, int]


class Owner(Value, frozen=True):
    workspace_id: str
    user_id: str


class ReadAddress(Value, frozen=True):
    """The parts of a read address; untrusted until its signature is checked."""

    artifact_id: str
    expires: int
    disposition: str
    key: str
    signature: str
    by: str = ""
    """What its reader was let in with when they got it, as a credential is written."""


class Upload(Value, frozen=True):
    """The file that may be uploaded under an address, its owner and expiry."""

    artifact_id: str
    workspace_id: str
    user_id: str
    mime_type: str
    size: int
    sha256: str | None
    name: str | None
    expires: int
    by: str = ""


def read_address(
    keys: SigningKeys,
    owner: Owner,
    artifact_id: str,
    *,
    expires: int,
    disposition: Disposition = "inline",
    by: str = "",
) -> str:
    key, signature = signed(keys, _read_parts(owner, artifact_id, expires, disposition, by))
    query = {"expires": expires, "disposition": disposition, "key": key, "signature": signature}
    query |= {"by": by} if by else {}
    return f"{PATH}/{artifact_id}/content?{urlencode(query)}"


def taken_apart(url: str) -> ReadAddress | None:
    """The parts of an address of ours, wherever it points; None for any other."""
    try:
        parts = urlsplit(url) if len(url) <= MAX_URL_CHARS else None
    except ValueError:
        return None
    found = _PATH.fullmatch(parts.path) if parts is not None and not parts.fragment else None
    return of_query(found[1], parts.query) if found and parts is not None else None


def of_query(artifact_id: str, query: str) -> ReadAddress | None:
    try:
        fields = parse_qsl(query, strict_parsing=True, keep_blank_values=True, max_num_fields=8)
    except ValueError:
        return None
    given = dict(fields)
    if len(fields) != len(given) or frozenset(given) - {"by"} != _READ_FIELDS or not ID.fullmatch(artifact_id):
        return None
    if not _MOMENT.fullmatch(given["expires"]):
        return None
    expires, by = int(given["expires"]), given.get("by", "")
    return ReadAddress(artifact_id, expires, given["disposition"], given["key"], given["signature"], by)


def without_signatures(value: Any) -> Any:
    """Put the file in the place of every address of ours in a JSON value: a renewed address changes nothing."""
    if isinstance(value, str):
        address = taken_apart(value) if PATH in value else None
        return value if address is None else f"{PATH}/{address.artifact_id}"
    if isinstance(value, dict):
        return {name: without_signatures(one) for name, one in cast("dict[str, Any]", value).items()}
    if isinstance(value, list):
        return [without_signatures(one) for one in cast("list[Any]", value)]
    return value


def origin_of(url: str) -> Origin | None:
    """Return scheme, host and port of an address; None if it is not http or names a user."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or "@" in parts.netloc:
        return None
    return parts.scheme, parts.hostname, port or _PORTS[parts.scheme]


def counts(keys: SigningKeys, owner: Owner, address: ReadAddress, now: float) -> bool:
    """Return true if we signed the address for this owner and it has not expired."""
    parts = _read_parts(owner, address.artifact_id, address.expires, address.disposition, address.by)
    return is_signed(keys, address.key, address.signature, parts) and now < address.expires


def _read_parts(owner: Owner, artifact_id: str, expires: int, disposition: str, by: str) -> Sequence[str | int]:
    return ["GET", artifact_id, owner.workspace_id, owner.user_id, expires, disposition, *([by] if by else [])]


def offered_id(keys: SigningKeys, owner: Owner, artifact_id: str, expires: int) -> str:
    """An id that tells by itself that it was offered to this owner and until when: nothing is kept of an offer."""
    _, signature = signed(keys, _offer_parts(owner, artifact_id, expires))
    return f"{artifact_id}.{expires}.{signature[:_OFFER_CHARS]}"


def offered_until(keys: SigningKeys, owner: Owner, offered: str, now: float) -> int | None:
    """Until when a file may be uploaded under this id; None when it was not offered to this owner, or that is over."""
    artifact_id, _, rest = offered.partition(".")
    told, _, mark = rest.partition(".")
    if not _MOMENT.fullmatch(told) or now >= int(told) or not mark.isascii():
        return None
    parts = _offer_parts(owner, artifact_id, int(told))
    made = [signed(SigningKeys(key, keys.secrets), parts)[1][:_OFFER_CHARS] for key in keys.secrets]
    return int(told) if any(compare_digest(one, mark) for one in made) else None


def _offer_parts(owner: Owner, artifact_id: str, expires: int) -> Sequence[str | int]:
    return ["OFFER", artifact_id, owner.workspace_id, owner.user_id, expires]


def upload_address(keys: SigningKeys, upload: Upload) -> str:
    told = urlsafe_b64encode(msgspec.json.encode(upload)).decode().rstrip("=")
    key, signature = signed(keys, ["PUT", told])
    return f"{PATH}/{upload.artifact_id}/content?{urlencode({'upload': told, 'key': key, 'signature': signature})}"


def granted_upload(keys: SigningKeys, artifact_id: str, query: str, now: float) -> Upload | None:
    """Return the upload that a signed address allows; None if it is not ours or has expired."""
    given = _fields(query)
    told = given.get("upload", "")
    if not is_signed(keys, given.get("key", ""), given.get("signature", ""), ["PUT", told]):
        return None
    upload = msgspec.json.decode(urlsafe_b64decode(told + "=" * (-len(told) % 4)), type=Upload)
    return upload if upload.artifact_id == artifact_id and now < upload.expires else None


def _fields(query: str) -> dict[str, str]:
    """The fields of a query; none when there are more than any address of ours has."""
    try:
        return dict(parse_qsl(query, max_num_fields=8)) if len(query) <= MAX_URL_CHARS else {}
    except ValueError:
        return {}
