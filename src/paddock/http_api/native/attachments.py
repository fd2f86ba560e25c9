"""Uploads for messages over HTTP, and files handed out under signed addresses.

The two signed calls know their caller by the signature alone: an address is all that an image tag or an upload form can
carry. What is served is never run by a browser: no sniffing, no scripts, no referrer.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import msgspec
from starlette.exceptions import HTTPException
from starlette.formparsers import MultiPartException
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Message

from paddock.host.conversations.attachments import NOT_OURS, UserAttachments
from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_body, read_object
from paddock.http_api.edge.public_urls import absolute
from paddock.http_api.edge.routing import route
from paddock.http_api.native.runs import iso
from paddock.http_api.streams.stream import in_pieces
from paddock.rules.access.credentials import Credential, read_credential
from paddock.rules.conversations.attachment_urls import PATH, Owner, Upload, of_query
from paddock.rules.conversations.attachments import IMAGES, MAX_NAME_CHARS
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import ArtifactRow

FORM_BYTES = 64 * 1024
"""What a form may have around its file."""
FIELDS = ("filename", "mimeType", "size", "sha256")
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "cross-origin",
}


class AttachmentsDoor:
    def __init__(self, *, auth: Auth, attachments: UserAttachments) -> None:
        self._auth = auth
        self._attachments = attachments

    def routes(self) -> list[BaseRoute]:
        one = f"{PATH}/{{attachment}}"
        return [
            route("POST", PATH, self.post),
            route("GET", one, self.get),
            route("DELETE", one, self.delete),
            route("PUT", f"{one}/content", self.put),
            route("GET", f"{one}/content", self.content),
        ]

    async def post(self, request: Request) -> Response:
        """The file itself, as a form; or what it will be, as JSON, for an address to upload it to."""
        principal = await self._auth.principal(request.scope)
        if not _is_form(request):
            return await self._offer(request, principal)
        name, content = await self._form(request)
        row = await self._attachments.upload(principal, content, name)
        return json_response(self._ready(request, row, principal.credential), 201)

    async def put(self, request: Request) -> Response:
        """The bytes that an address was given for."""
        upload = self._attachments.granted(
            request.path_params["attachment"], request.scope["query_string"].decode("latin-1")
        )
        credential = await self._still(upload.by)
        complaint = f"the file has more than {upload.size} bytes, as was said before"
        self._auth.streams.guard(request.scope, credential)
        row = await self._attachments.finish(upload, await read_body(request, upload.size, complaint))
        return json_response(self._ready(request, row, credential), 201)

    async def get(self, request: Request) -> Response:
        principal, name = await self._auth.principal(request.scope), request.path_params["attachment"]
        if (until := await self._attachments.pending_until(principal, name)) is not None:
            return json_response({"attachmentId": name, "status": "pending", "upload": {"expiresAt": iso(until)}})
        row = await self._attachments.find(principal, name)
        download = request.query_params.get("download") == "true"
        return json_response(self._ready(request, row, principal.credential, download=download))

    async def delete(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        await self._attachments.forget(principal, request.path_params["attachment"])
        return Response(status_code=204)

    async def content(self, request: Request) -> ASGIApp:
        address = of_query(request.path_params["attachment"], request.scope["query_string"].decode("latin-1"))
        row = await self._attachments.opened(address)
        credential = await self._still(address.by if address is not None else "")
        inline = address is not None and address.disposition == "inline" and row.mime_type in IMAGES
        headers = {
            **HEADERS,
            "Content-Disposition": _disposition("inline" if inline else "attachment", row),
            "Content-Length": str(row.size),
            "Cache-Control": f"private, max-age={self._attachments.limits.url_seconds}",
        }
        self._auth.streams.guard(request.scope, credential)
        return in_pieces(StreamingResponse(self._attachments.pieces(row), headers=headers, media_type=row.mime_type))

    # --- within ------------------------------------------------------------------------------------------------------

    async def _still(self, written: str) -> Credential:
        """What an address was handed out for. Raises UNAUTHORIZED when it does not count any more."""
        credential = read_credential(written)
        if credential is None or not await self._auth.streams.counts(credential):
            raise HostError(ErrorCode.UNAUTHORIZED, NOT_OURS)
        return credential

    async def _offer(self, request: Request, principal: Principal) -> Response:
        given = await read_object(request, FIELDS)
        upload = self._attachments.offer(
            principal,
            mime_type=_text(given, "mimeType").lower(),
            size=_size(given),
            sha256=_hash(given),
            name=_text(given, "filename") if given.get("filename") is not None else None,
        )
        return json_response(self._pending(request, upload), 201)

    async def _form(self, request: Request) -> tuple[str | None, bytes]:
        limit = self._attachments.limits.file_bytes
        body = await read_body(request, limit + FORM_BYTES, f"an attachment may have at most {limit} bytes")
        return await _file_in(Request(request.scope, _once(body)), limit)

    def _pending(self, request: Request, upload: Upload) -> Mapping[str, Any]:
        url = absolute(request, self._attachments.upload_url(upload))
        return {
            "attachmentId": upload.artifact_id,
            "status": "pending",
            "upload": {
                "method": "PUT",
                "url": url,
                "headers": {"Content-Type": upload.mime_type},
                "expiresAt": iso(upload.expires),
            },
        }

    def _ready(
        self, request: Request, row: ArtifactRow, by: Credential, *, download: bool = False
    ) -> Mapping[str, Any]:
        owner = Owner(row.workspace_id, row.user_id or "")
        shown = "attachment" if download or row.mime_type not in IMAGES else "inline"
        url = absolute(request, self._attachments.url(owner, row.artifact_id, shown, by=by))
        size: Mapping[str, Any] = msgspec.json.decode(row.metadata) if row.metadata else {}
        seen = {
            "attachmentId": row.artifact_id,
            "status": "ready",
            "mimeType": row.mime_type,
            "size": row.size,
            "filename": row.name,
            "url": url,
            "threadId": row.conversation_id,
            "expiresAt": iso(row.expires_at),
            **{name: size[name] for name in ("width", "height") if name in size},
        }
        return {name: value for name, value in seen.items() if value is not None}


def _is_form(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == "multipart/form-data"


async def _file_in(request: Request, limit: int) -> tuple[str | None, bytes]:
    try:
        async with request.form(max_files=1, max_fields=8, max_part_size=FORM_BYTES) as form:
            file = form.get("file")
            if file is None or isinstance(file, str):
                raise _invalid("the form must have a file named `file`")
            return file.filename, await file.read(limit + 1)
    except (MultiPartException, HTTPException) as error:  # which of them depends on who calls
        raise _invalid("the form cannot be read; send multipart/form-data with its boundary, and one file") from error


def _once(body: bytes) -> Any:
    messages: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Message:
        return messages.pop() if messages else {"type": "http.disconnect"}

    return receive


def _disposition(kind: str, row: ArtifactRow) -> str:
    return f"{kind}; filename*=UTF-8''{quote(row.name, safe='')}" if row.name else kind


def _text(given: Mapping[str, Any], name: str) -> str:
    value = given.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= MAX_NAME_CHARS:
        raise _invalid(f"{name} must be a string of 1 to {MAX_NAME_CHARS} characters")
    return value


def _size(given: Mapping[str, Any]) -> int:
    value = given.get("size")
    if not isinstance(value, int) or isinstance(value, bool):
        raise _invalid("size must be the number of bytes")
    return value


def _hash(given: Mapping[str, Any]) -> str | None:
    value = given.get("sha256")
    if value is None:
        return None
    if not isinstance(value, str) or len(value) != 64 or not set(value.lower()) <= set("0123456789abcdef"):
        raise _invalid("sha256 must be 64 hexadecimal digits")
    return value.lower()


def _invalid(text: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, text)
