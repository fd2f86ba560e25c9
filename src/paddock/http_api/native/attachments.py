"""Uploads for messages over HTTP, and files handed out under signed addresses.

The two signed calls know their caller by the signature alone: an address is all that an image tag or an upload form can
carry. What is served is never run by a browser: no sniffing, no scripts, no referrer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal
from urllib.parse import quote

import msgspec
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.types import ASGIApp, Message

from paddock.host.conversations.attachments import NOT_OURS, UserAttachments
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import JSON, Content, Operations, operation
from paddock.http_api.edge.requests import absolute, read_body
from paddock.http_api.edge.shapes import (
    Answer,
    Body,
    Moment,
    Query,
    about,
    invalid,
    iso,
    names_of,
    read_object,
    read_shape,
)
from paddock.http_api.streams.run_stream import in_pieces
from paddock.rules.access.signatures import Credential, read_credential
from paddock.rules.conversations.attachments import IMAGES, MAX_NAME_CHARS, PATH, Disposition, Owner, of_query
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import ArtifactRow

ONE = f"{PATH}/{{attachment}}"
FORM_BYTES = 64 * 1024
"""What a form may have around its file."""
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "cross-origin",
}
DOT = "GIF89a\x01\x00\x01\x00\x00\x00\x00,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
"""A picture of one point, whole: every byte of it is ASCII, so JSON can carry it as it is."""
EXAMPLE = "art_0f3c8a1b5d7e4f2096c1b8d3e7a45f60"
URL = f"https://agents.example.com{PATH}/{EXAMPLE}/content?expires=1773677553&disposition=inline&key=1a&signature=9f"
NAMED = f"be a string of 1 to {MAX_NAME_CHARS} characters"
AttachmentName = Annotated[str, about("The attachment.", example=EXAMPLE)]


class NewAttachment(Body):
    mime_type: Annotated[str, about(must=NAMED, min_length=1, max_length=MAX_NAME_CHARS, example="image/png")]
    size: Annotated[int, about(must="be the number of bytes", schema={"minimum": 1}, example=5120)]
    filename: Annotated[str, about(must=NAMED, min_length=1, max_length=MAX_NAME_CHARS, example="map.png")] | None = (
        None
    )
    sha256: Annotated[str, about(must="be 64 hexadecimal digits", pattern="^[0-9a-fA-F]{64}$")] | None = None


class UploadAddress(Answer):
    """How to upload the bytes."""

    expires_at: Moment
    method: Literal["PUT"] | None = None
    url: str | None = None
    headers: dict[str, str] | None = None


class Attachment(Answer):
    attachment_id: AttachmentName
    status: Literal["ready", "pending"]
    mime_type: Annotated[str, about(example="image/png")] | None = None
    size: Annotated[int, about(ge=0, example=5120)] | None = None
    filename: Annotated[str, about(example="map.png")] | None = None
    url: Annotated[str, about(example=URL)] | None = None
    thread_id: str | None = None
    expires_at: Moment | None = None
    width: Annotated[int, about(ge=0, example=640)] | None = None
    height: Annotated[int, about(ge=0, example=480)] | None = None
    upload: UploadAddress | None = None


class AttachmentQuery(Query):
    download: Annotated[str, about("`true` for a URL that a browser saves instead of showing.", example="true")] = ""


class UploadQuery(Query):
    upload: Annotated[str, about("As given.", example="eyJ")]
    key: Annotated[str, about("As given.", example="1a")]
    signature: Annotated[str, about("As given.", example="9f")]


class ContentQuery(Query):
    expires: Annotated[int, about("As given.", ge=0, example=1773677553)]
    disposition: Annotated[Disposition, about("As given.")]
    key: Annotated[str, about("As given.", example="1a")]
    signature: Annotated[str, about("As given.", example="9f")]


_BYTES = {"type": "string", "format": "binary"}
_FORM = {"type": "object", "properties": {"file": _BYTES}, "required": ["file"]}
_FILE = Content("application/octet-stream", _BYTES, DOT)


@dataclass(frozen=True, kw_only=True)
class AttachmentsDoor(Operations):
    group = "Attachments"
    auth: Auth
    attachments: UserAttachments

    @operation(
        "POST",
        PATH,
        {201: "It is kept (form), or may be uploaded under the address in the answer (JSON)."},
        request=[Content(JSON, NewAttachment), Content("multipart/form-data", _FORM, {"file": DOT})],
        rate="uploads",
    )
    async def post(self, who: Principal, request: Request) -> Attachment:
        """Upload a file for a message

        An image (png, jpeg, webp, gif), judged by its content and drawn anew; PDF when the host allows it. As JSON, say
        what the file will be, and get an address to upload it to."""
        if not _is_form(request):
            given = read_shape(await read_object(request, names_of(NewAttachment)), NewAttachment)
            return self._offer(request, who, given)
        limit = self.attachments.limits.file_bytes
        body = await read_body(request, limit + FORM_BYTES, f"an attachment may have at most {limit} bytes")
        name, content = await _file_in(Request(request.scope, _once(body)), limit)
        return self._ready(request, await self.attachments.upload(who, content, name), who.credential)

    @operation("GET", ONE, {200: "As it is now."}, errors=(404,))
    async def get(
        self, who: Principal, request: Request, attachment: AttachmentName, query: AttachmentQuery
    ) -> Attachment:
        """Look at a file, and get a fresh signed URL"""
        if (until := await self.attachments.pending_until(who, attachment)) is not None:
            return Attachment(attachment, "pending", upload=UploadAddress(iso(until)))
        row = await self.attachments.find(who, attachment)
        return self._ready(request, row, who.credential, download=query.download == "true")

    @operation("DELETE", ONE, {204: "It is gone."}, errors=(404, 409))
    async def delete(self, who: Principal, attachment: AttachmentName) -> None:
        """Take back an upload that no message holds"""
        await self.attachments.forget(who, attachment)

    @operation(
        "PUT",
        f"{ONE}/content",
        {201: "It is kept."},
        role="anybody",
        rate="uploads",
        errors=(403, 409, 413, 422, 503),
        request=[_FILE],
        parameters=UploadQuery,
    )
    async def put(self, request: Request, attachment: AttachmentName) -> Attachment:
        """Upload the bytes an address was given for

        Known by its signature: no key is needed, and none would help."""
        upload = self.attachments.granted(attachment, request.scope["query_string"].decode("latin-1"))
        credential = await self._still(upload.by)
        complaint = f"the file has more than {upload.size} bytes, as was said before"
        self.auth.streams.guard(request.scope, credential)
        row = await self.attachments.finish(upload, await read_body(request, upload.size, complaint))
        return self._ready(request, row, credential)

    @operation(
        "GET",
        f"{ONE}/content",
        {200: "Its bytes."},
        role="anybody",
        errors=(403, 503),
        response=[_FILE],
        parameters=ContentQuery,
    )
    async def content(self, request: Request, attachment: AttachmentName) -> ASGIApp:
        """Read the file

        Known by its signature: no key is needed, and none would help."""
        address = of_query(attachment, request.scope["query_string"].decode("latin-1"))
        row = await self.attachments.opened(address)
        credential = await self._still(address.by if address is not None else "")
        inline = address is not None and address.disposition == "inline" and row.mime_type in IMAGES
        headers = {
            **HEADERS,
            "Content-Disposition": _disposition("inline" if inline else "attachment", row),
            "Content-Length": str(row.size),
            "Cache-Control": f"private, max-age={self.attachments.limits.url_seconds}",
        }
        self.auth.streams.guard(request.scope, credential)
        return in_pieces(StreamingResponse(self.attachments.pieces(row), headers=headers, media_type=row.mime_type))

    async def _still(self, written: str) -> Credential:
        """Return the credential an address was signed for. Raises UNAUTHORIZED if it is no longer valid."""
        credential = read_credential(written)
        if credential is None or not await self.auth.streams.counts(credential):
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_OURS)
        return credential

    def _offer(self, request: Request, who: Principal, given: NewAttachment) -> Attachment:
        upload = self.attachments.offer(
            who,
            mime_type=given.mime_type.lower(),
            size=given.size,
            sha256=given.sha256.lower() if given.sha256 is not None else None,
            name=given.filename,
        )
        address = UploadAddress(
            iso(upload.expires),
            method="PUT",
            url=absolute(request, self.attachments.upload_url(upload)),
            headers={"Content-Type": upload.mime_type},
        )
        return Attachment(upload.artifact_id, "pending", upload=address)

    def _ready(self, request: Request, row: ArtifactRow, by: Credential, *, download: bool = False) -> Attachment:
        owner = Owner(row.workspace_id, row.user_id or "")
        shown = "attachment" if download or row.mime_type not in IMAGES else "inline"
        size: Mapping[str, Any] = msgspec.json.decode(row.metadata) if row.metadata else {}
        return Attachment(
            row.artifact_id,
            "ready",
            mime_type=row.mime_type,
            size=row.size,
            filename=row.name,
            url=absolute(request, self.attachments.url(owner, row.artifact_id, shown, by=by)),
            thread_id=row.conversation_id,
            expires_at=iso(row.expires_at),
            width=size.get("width"),
            height=size.get("height"),
        )


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "multipart/form-data"


async def _file_in(request: Request, limit: int) -> tuple[str | None, bytes]:
    try:
        async with request.form(max_files=1, max_fields=8, max_part_size=FORM_BYTES) as form:
            file = form.get("file")
            if file is None or isinstance(file, str):
                raise invalid("the form must have a file named `file`")
            return file.filename, await file.read(limit + 1)
    except (MultiPartException, HTTPException) as error:  # which of them depends on who calls
        raise invalid("the form cannot be read; send multipart/form-data with its boundary, and one file") from error


def _once(body: bytes) -> Any:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _disposition(kind: str, row: ArtifactRow) -> str:
    return f"{kind}; filename*=UTF-8''{quote(row.name, safe='')}" if row.name else kind
