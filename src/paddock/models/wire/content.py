"""Pictures and files of a message, as far as every provider needs to know: where they are, what they are."""

import base64
import binascii
from collections.abc import Sequence
from typing import NamedTuple

from paddock_sdk.protocol.messages import ContentElement, Message

_BEGINNINGS = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
)
UNSEEN = "\n(a picture was here; this model cannot look at pictures)"


class Picture(NamedTuple):
    """An address, or a kind and base64."""

    url: str | None
    mime_type: str
    data: str

    @property
    def as_url(self) -> str:
        return self.url or f"data:{self.mime_type};base64,{self.data}"


def elements(message: Message) -> list[ContentElement]:
    """The content piece by piece; plain text is one piece."""
    if isinstance(message.content, list):
        return message.content
    return [ContentElement(type="text", text=message.content)] if message.content else []


def picture(element: ContentElement) -> Picture | None:
    if element.image_base64:
        return _from_base64(element.image_base64)
    if element.image_url is not None:
        url = element.image_url.url
        return _from_base64(url) if url.startswith("data:") else Picture(url, "", "")
    return None


def in_words(messages: Sequence[Message]) -> list[Message]:
    """The messages for a model that cannot look at pictures: each is said to have been there."""
    return [_in_words(message) if isinstance(message.content, list) else message for message in messages]


def _in_words(message: Message) -> Message:
    unseen = ContentElement(type="text", text=UNSEEN)
    told = [unseen if picture(element) is not None else element for element in elements(message)]
    return message.model_copy(update={"content": told})


def file(element: ContentElement) -> Picture | None:
    """A file, in the same shape: its address, or its kind and bytes."""
    if element.file_base64:
        return _from_base64(element.file_base64)
    return Picture(element.file_url, "", "") if element.file_url else None


def _from_base64(text: str) -> Picture:
    if text.startswith("data:"):
        head, _, data = text.partition(",")
        return Picture(None, head[5:].partition(";")[0] or _kind(data), data)
    return Picture(None, _kind(text), text)


def _kind(data: str) -> str:
    try:
        start = base64.b64decode(data[:24])
    except (binascii.Error, ValueError):
        return "application/octet-stream"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if start.startswith(beginning)), "application/octet-stream")
