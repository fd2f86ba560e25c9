"""Parts that all providers' wire formats share: pictures and files, the `Wire` protocol."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from paddock.ports.models import ModelAnswer, ModelCall, ModelPiece
from paddock.rules.agents.model_options import Judge
from paddock.rules.agents.specs import ModelSpec
from paddock.rules.errors import ErrorCode, HostError
from paddock_sdk.protocol.messages import ContentElement, Message


class RubbishError(Exception):
    """The server's answer does not follow its API."""


_BEGINNINGS = (
    (b"\x89PNG", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF8", "image/gif"),
    (b"%PDF", "application/pdf"),
)
UNSEEN = "\n(a picture was here; this model cannot look at pictures)"


class MediaSource(NamedTuple):
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


def picture(element: ContentElement) -> MediaSource | None:
    if element.image_base64:
        return _from_base64(element.image_base64)
    if element.image_url is not None:
        url = element.image_url.url
        return _from_base64(url) if url.startswith("data:") else MediaSource(_of_the_web(url), "", "")
    return None


def thoughts_of(
    message: Message, name: str, kinds: Mapping[str, Sequence[str]], *, optional: Sequence[str] = ()
) -> list[dict[str, Any]]:
    """Thoughts that the provider wants back: blocks of these kinds whose fields are texts, and nothing beside them.

    A block of another kind could name a file or an answer that the operator's account keeps for somebody else.
    """
    kept: Any = (message.provider_specific_fields or {}).get(name)
    blocks = cast("list[Any]", kept) if isinstance(kept, list) else []
    return [thought for block in blocks if (thought := _thought(block, kinds, optional))]


def _thought(block: Any, kinds: Mapping[str, Sequence[str]], optional: Sequence[str]) -> dict[str, Any] | None:
    about = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
    texts = kinds.get(str(about.get("type")))
    if texts is None or not all(isinstance(about.get(text), str) for text in texts):
        return None
    return {name: about[name] for name in ("type", *optional, *texts) if name in about}


def in_words(messages: Sequence[Message]) -> list[Message]:
    """The messages for a model that cannot look at pictures: each is said to have been there."""
    return [_in_words(message) if isinstance(message.content, list) else message for message in messages]


def _in_words(message: Message) -> Message:
    unseen = ContentElement(type="text", text=UNSEEN)
    told = [unseen if picture(element) is not None else element for element in elements(message)]
    return message.model_copy(update={"content": told})


def file(element: ContentElement) -> MediaSource | None:
    """A file, in the same shape: its address, or its kind and bytes."""
    if element.file_base64:
        return _from_base64(element.file_base64)
    return MediaSource(_of_the_web(element.file_url), "", "") if element.file_url else None


def check_no_addresses(messages: Sequence[Message], model_id: str) -> None:
    """Refuse pictures and files given by address, for a model that takes bytes only. Raises INVALID_ARGUMENT."""
    for element in (element for message in messages for element in elements(message)):
        given = picture(element) or file(element)
        if given is not None and given.url:
            text = f"the model {model_id!r} reads no addresses; send pictures and files as bytes"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)


def _of_the_web(address: str) -> str:
    """Return an http or https address, which the provider will read. Raises INVALID_ARGUMENT for others."""
    if not address.lower().startswith(("http://", "https://")):
        text = "a picture or a file of a question is given as bytes or by an http or https address"
        raise HostError(ErrorCode.INVALID_ARGUMENT, text)
    return address


def _from_base64(text: str) -> MediaSource:
    if text.startswith("data:"):
        head, _, data = text.partition(",")
        return MediaSource(None, head[5:].partition(";")[0] or _kind(data), data)
    return MediaSource(None, _kind(text), text)


def _kind(data: str) -> str:
    try:
        start = base64.b64decode(data[:24])
    except (binascii.Error, ValueError):
        return "application/octet-stream"
    if start[:4] == b"RIFF" and start[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for beginning, kind in _BEGINNINGS if start.startswith(beginning)), "application/octet-stream")


class ServerSaidError(Exception):
    """The server reported an error in the middle of an answer. `status` is what it would have been as a response."""

    def __init__(self, message: str, status: int = 500) -> None:
        super().__init__(message)
        self.status = status


def reason_of(error: Any) -> str:
    """Return the text of a server's error report, whatever its shape."""
    about = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    return str(about.get("message") or "the server gave no answer and no reason")


class Collector(Protocol):
    """Reads one streamed answer, event by event."""

    finished: bool
    """The server said that nothing follows."""

    @property
    def complete(self) -> bool:
        """The answer is whole, whether or not the server said goodbye."""
        ...

    @property
    def unsaid(self) -> Sequence[str]:
        """Arguments of tool calls that have arrived so far; a call is passed on only when it is whole."""
        ...

    def take(self, data: bytes) -> ModelPiece | None:
        """Return what this event adds to the answer, if anything. Raises ServerSaidError, msgspec.DecodeError."""
        ...

    def last(self) -> ModelPiece:
        """The final piece: tool calls whole, the reason it ended, usage."""
        ...


class Wire(Protocol):
    """One provider's API in values."""

    options: Mapping[str, Judge]
    """What a runner may set; a question with another option is refused before it comes here."""

    def request(self, call: ModelCall, spec: ModelSpec, *, stream: bool) -> Mapping[str, Any]:
        """The body of the request, with the options of the call as they are."""
        ...

    def collector(self) -> Collector: ...
    def answer(self, body: bytes) -> ModelAnswer:
        """A whole answer. Raises ServerSaidError, msgspec.DecodeError."""
        ...
