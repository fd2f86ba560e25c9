"""Limits of attached files: size, kind, and the sentences of their refusals. Pure."""

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
    """Detect the file type from its first bytes; None for every other type."""
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
