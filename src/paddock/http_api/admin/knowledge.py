"""Knowledge bases over HTTP: made, filled, searched, deleted. Everybody of a workspace may look; administrators act."""

import time
from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import msgspec
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.people.principals import Principal
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.bodies import json_response, read_body, read_object
from paddock.http_api.edge.routing import route
from paddock.ports.knowledge import BaseRow, DocumentRow, JobRow, KnowledgeBases, Passage
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people.model_usage import Payer
from paddock.rules.rows.rows import AuditRow

MAX_BODY_BYTES = 48 * 1024 * 1024
TOO_LARGE = f"the body exceeds {MAX_BODY_BYTES} bytes; split the document"
"""A document of the largest size in base64, and something around it."""
MAX_LISTED = 100
MAX_TEXT = 1000


class KnowledgeDoor:
    def __init__(
        self, *, auth: Auth, bases: KnowledgeBases, changed: Callable[[str], None] = lambda _workspace: None
    ) -> None:
        self._auth = auth
        self._bases = bases
        self._changed = changed

    def routes(self) -> Sequence[BaseRoute]:
        base = "/api/v1/knowledge"
        return [
            route("GET", base, self.list),
            route("POST", base, self.create),
            route("GET", f"{base}/{{kb}}", self.get),
            route("DELETE", f"{base}/{{kb}}", self.delete),
            route("GET", f"{base}/{{kb}}/documents", self.documents),
            route("POST", f"{base}/{{kb}}/documents", self.add),
            route("DELETE", f"{base}/{{kb}}/documents/{{document}}", self.delete_document),
            route("GET", f"{base}/{{kb}}/jobs", self.jobs),
            route("GET", f"{base}/{{kb}}/jobs/{{job}}", self.job),
            route("POST", f"{base}/{{kb}}/search", self.search),
        ]

    async def list(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        return json_response({"bases": [_base(row) for row in await self._bases.list(principal.workspace_id)]})

    async def create(self, request: Request) -> Response:
        principal = await self._auth.admin(request.scope)
        given = await read_object(request, ("kbId", "name", "description", "embeddingModel"))
        kb_id = _text(given, "kbId")
        row = await self._bases.create(
            principal.workspace_id,
            kb_id,
            _decided(principal, "knowledge.create", kb_id),
            name=_text(given, "name"),
            description=_text(given, "description"),
            model=_text(given, "embeddingModel"),
        )
        self._changed(principal.workspace_id)
        return json_response(_base(row), 201)

    async def get(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        return json_response(_base(await self._bases.get(principal.workspace_id, _kb(request))))

    async def delete(self, request: Request) -> Response:
        principal = await self._auth.admin(request.scope)
        kb_id = _kb(request)
        await self._bases.delete(principal.workspace_id, kb_id, _decided(principal, "knowledge.delete", kb_id))
        self._changed(principal.workspace_id)
        return Response(status_code=204)

    async def documents(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        after = request.query_params.get("after", "")
        rows = await self._bases.documents(principal.workspace_id, _kb(request), after=after, limit=MAX_LISTED + 1)
        listed = [_document(row) for row in rows[:MAX_LISTED]]
        return json_response({"documents": listed, "hasMore": len(rows) > MAX_LISTED})

    async def add(self, request: Request) -> Response:
        """A JSON object with `name` and `text` or `contentBase64`; or the bytes themselves, named by `?name=`."""
        principal = await self._auth.admin(request.scope)
        name, content, metadata = _new_document(request, await read_body(request, MAX_BODY_BYTES, TOO_LARGE))
        kb_id = _kb(request)
        audit = _decided(principal, "knowledge.add", f"{kb_id}/{name}"[:256])
        job = await self._bases.add(_payer(principal), kb_id, name, content, audit, metadata)
        return json_response(_job(job), 202)

    async def delete_document(self, request: Request) -> Response:
        principal = await self._auth.admin(request.scope)
        kb_id, document_id = _kb(request), str(request.path_params["document"])
        audit = _decided(principal, "knowledge.delete_document", f"{kb_id}/{document_id}"[:256])
        await self._bases.delete_document(principal.workspace_id, kb_id, document_id, audit)
        return Response(status_code=204)

    async def jobs(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        waiting = await self._bases.on_their_way(principal.workspace_id, _kb(request))
        listed = [_job(row) for row in waiting[:MAX_LISTED]]
        return json_response({"jobs": listed, "hasMore": len(waiting) > MAX_LISTED})

    async def job(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        job_id = str(request.path_params["job"])
        return json_response(_job(await self._bases.job(principal.workspace_id, _kb(request), job_id)))

    async def search(self, request: Request) -> Response:
        principal = await self._auth.principal(request.scope)
        given = await read_object(request, ("query", "topK", "filters"))
        top_k = given.get("topK", 5)
        if not isinstance(top_k, int) or isinstance(top_k, bool):
            raise _invalid("topK must be a whole number")
        found = await self._bases.retrieve(
            _payer(principal),
            _kb(request),
            _text(given, "query"),
            top_k=top_k,
            filters=_mapping(given, "filters"),
        )
        return json_response({"results": [_passage(passage) for passage in found]})


def _new_document(request: Request, body: bytes) -> tuple[str, bytes, Mapping[str, Any]]:
    if not request.headers.get("content-type", "").startswith("application/json"):
        return request.query_params.get("name", ""), body, {}
    given = _object(body)
    return str(given.get("name") or ""), _content(given), _mapping(given, "metadata")


def _object(body: bytes) -> dict[str, Any]:
    try:
        given = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise _invalid(f"the body is not a JSON object: {error}") from error
    unknown = given.keys() - {"name", "text", "contentBase64", "metadata"}
    if unknown:
        raise _invalid(f"unknown field {min(unknown)[:64]!r}; known are name, text, contentBase64, metadata")
    return given


def _content(given: Mapping[str, Any]) -> bytes:
    text, encoded = given.get("text"), given.get("contentBase64")
    if isinstance(text, str) and encoded is None:
        return text.encode()
    if not isinstance(encoded, str) or text is not None:
        raise _invalid("give the document as text, or as contentBase64")
    try:
        return b64decode(encoded, validate=True)
    except (Base64Error, ValueError) as error:
        raise _invalid("contentBase64 is not valid base64") from error


def _kb(request: Request) -> str:
    return str(request.path_params["kb"])


def _text(given: Mapping[str, Any], field: str) -> str:
    value = given.get(field, "")
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise _invalid(f"{field} must be a string of at most {MAX_TEXT} characters")
    return value


def _mapping(given: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    value: Any = given.get(field)
    if value is not None and not isinstance(value, dict):
        raise _invalid(f"{field} must be an object")
    return cast("dict[str, Any]", value or {})


def _payer(principal: Principal) -> Payer:
    return Payer(principal.workspace_id, principal.user_id)


def _decided(principal: Principal, action: str, resource: str) -> AuditRow:
    return AuditRow(
        time=time.time(),
        workspace_id=principal.workspace_id,
        actor=f"user:{principal.user_id}",
        action=action,
        resource=resource,
        scope=principal.workspace_id,
        result="allowed",
        reason=f"role {principal.role}",
    )


def _invalid(sentence: str) -> HostError:
    return HostError(ErrorCode.INVALID_ARGUMENT, sentence)


def _base(row: BaseRow) -> Mapping[str, Any]:
    seen = {"kbId": row.kb_id, "name": row.name, "description": row.description, "createdAt": row.created_at}
    return seen | ({"embeddingModel": row.embedding_model} if row.embedding_model else {})


def _document(row: DocumentRow) -> Mapping[str, Any]:
    return {
        "documentId": row.document_id,
        "name": row.name,
        "mediaType": row.media_type,
        "sizeBytes": row.size_bytes,
        "sha256": row.content_hash,
        "passages": row.chunk_count,
        "createdAt": row.created_at,
        "metadata": msgspec.json.decode(row.metadata or b"{}"),
    }


def _job(job: JobRow) -> Mapping[str, Any]:
    return {
        "jobId": job.job_id,
        "kbId": job.kb_id,
        "documentId": job.document_id,
        "name": job.name,
        "status": job.status,
        "done": job.done,
        "total": job.total,
        "message": job.message,
    }


def _passage(passage: Passage) -> Mapping[str, Any]:
    return {"id": passage.passage_id, "text": passage.text, "score": passage.score, "place": passage.metadata}
