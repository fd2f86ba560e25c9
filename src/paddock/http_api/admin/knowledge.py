"""Knowledge bases over HTTP: made, filled, searched, deleted. Everybody of a workspace may look; administrators act."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import anyio
import msgspec
from starlette.requests import Request

from paddock.host.people.principals import Principal
from paddock.http_api.admin.keys import decided
from paddock.http_api.edge.auth import Auth
from paddock.http_api.edge.operations import JSON, Content, Operations, operation
from paddock.http_api.edge.requests import read_body
from paddock.http_api.edge.shapes import Answer, Body, Count, Json, Query, about, invalid, read_shape, seen
from paddock.ports.knowledge import BaseRow, DocumentRow, JobRow, KnowledgeBases
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.people import Payer
from paddock.rules.run.request_bodies import holds_more_values

BASE = "/api/v1/knowledge"
ONE = f"{BASE}/{{kb}}"
MAX_BODY_BYTES = 48 * 1024 * 1024
TOO_LARGE = f"the body exceeds {MAX_BODY_BYTES} bytes; split the document"
"""A document of the largest size in base64, and something around it."""
MAX_VALUES = 10_000
TOO_MANY = f"the body must hold at most {MAX_VALUES} values; send less metadata"
MAX_LISTED = 100
MAX_TEXT = 1000
DOCUMENT_ID = "2b7e4d90-8c15-4f3a-a6d2-91e0c7b3f584"
JOB_ID = "0199d2a5-1d50-7c3e-9b1f-0c9a5a7f4e10"
KbName = Annotated[str, about("The base.", example="handbook")]
Text = Annotated[str, about(must=f"be a string of at most {MAX_TEXT} characters", max_length=MAX_TEXT)]


class Base(Answer):
    kb_id: str
    name: Annotated[str, about(example="Handbook")]
    description: str
    created_at: Annotated[float, about(example=1773677553.1)]
    embedding_model: str | None = None


class BaseList(Answer):
    bases: list[Base]


class NewBase(Body):
    kb_id: Annotated[
        str,
        about(
            must=f"be a string of at most {MAX_TEXT} characters",
            max_length=MAX_TEXT,
            schema={"minLength": 1, "maxLength": 64, "pattern": "^[a-z0-9_-]+$"},
        ),
    ]
    name: Text = ""
    description: Text = ""
    embedding_model: Text = ""


class Document(Answer):
    document_id: Annotated[str, about(example=DOCUMENT_ID)]
    name: Annotated[str, about(example="leave.md")]
    media_type: Annotated[str, about(example="text/markdown")]
    size_bytes: Count
    sha256: Annotated[str, about(example="ab12")]
    passages: Count
    created_at: Annotated[float, about(example=1773677553.1)]
    metadata: Json


class DocumentList(Answer):
    documents: list[Document]
    has_more: bool


class NewDocument(Body):
    name: Annotated[str, about(example="leave.md")] = ""
    text: Annotated[str, about(example="# Leave\n")] | None = None
    content_base64: Annotated[str, about(schema={"contentEncoding": "base64"})] | None = msgspec.field(
        name="contentBase64", default=None
    )
    metadata: Json | None = None


class IngestJob(Answer):
    """A document on its way in."""

    job_id: str
    kb_id: str
    document_id: Annotated[str, about(example=DOCUMENT_ID)]
    name: Annotated[str, about(example="leave.md")]
    status: Annotated[str, about(example="queued")]
    done: Count
    total: Count
    message: str


class IngestJobList(Answer):
    jobs: list[IngestJob]
    has_more: bool


class KnowledgeQuery(Body):
    query: Annotated[
        str, about(must=f"be a string of at most {MAX_TEXT} characters", max_length=MAX_TEXT, example="leave")
    ]
    top_k: Annotated[int, about(schema={"minimum": 1})] = 5
    filters: Json | None = None


class FoundPassage(Answer):
    id: Annotated[str, about(example="p1")]
    text: Annotated[str, about(example="# Leave")]
    score: Annotated[float, about(example=0.9)]
    place: Annotated[Json, about("Where it stands, so that it can be cited.", example={})]


class PassageList(Answer):
    results: list[FoundPassage]


class DocumentsQuery(Query):
    after: Annotated[str, about("The last documentId of the page before.", example=DOCUMENT_ID)] = ""


class NewDocumentQuery(Query):
    name: Annotated[str, about("The name of a document that comes as bytes.", example="leave.md")] = ""


_PLAIN = Content(
    "application/octet-stream",
    {"type": "string", "contentMediaType": "application/octet-stream"},
    "# Leave\nThirty days a year.\n",
)


@dataclass(frozen=True, kw_only=True)
class KnowledgeDoor(Operations):
    group = "Knowledge"
    auth: Auth
    bases: KnowledgeBases
    changed: Callable[[str], None] = lambda _workspace: None

    @operation("GET", BASE, {200: "Of the workspace."})
    async def list(self, who: Principal) -> BaseList:
        """List the bases there are"""
        return BaseList([_base(row) for row in await self.bases.list(who.workspace_id)])

    @operation("POST", BASE, {201: "It was made."}, role="admin", errors=(409,))
    async def create(self, who: Principal, body: NewBase) -> Base:
        """Make a base"""
        row = await self.bases.create(
            who.workspace_id,
            body.kb_id,
            decided(who, "knowledge.create", body.kb_id),
            name=body.name,
            description=body.description,
            model=body.embedding_model,
        )
        self.changed(who.workspace_id)
        return _base(row)

    @operation("GET", ONE, {200: "As it is."}, errors=(404,))
    async def get(self, who: Principal, kb: KbName) -> Base:
        """Look at a base"""
        return _base(await self.bases.get(who.workspace_id, kb))

    @operation("DELETE", ONE, {204: "It is gone."}, role="admin", errors=(404,))
    async def delete(self, who: Principal, kb: KbName) -> None:
        """Delete a base"""
        await self.bases.delete(who.workspace_id, kb, decided(who, "knowledge.delete", kb))
        self.changed(who.workspace_id)

    @operation("GET", f"{ONE}/documents", {200: "A page."}, errors=(404,))
    async def documents(self, who: Principal, kb: KbName, query: DocumentsQuery) -> DocumentList:
        """List the documents of a base"""
        rows = await self.bases.documents(who.workspace_id, kb, after=query.after, limit=MAX_LISTED + 1)
        return DocumentList([_document(row) for row in rows[:MAX_LISTED]], len(rows) > MAX_LISTED)

    @operation(
        "POST",
        f"{ONE}/documents",
        {202: "It is on its way in."},
        role="admin",
        errors=(404, 409),
        request=[Content(JSON, NewDocument), _PLAIN],
    )
    async def add(self, who: Principal, request: Request, kb: KbName, query: NewDocumentQuery) -> IngestJob:
        """Add a document

        As JSON with `text` or `contentBase64`; or the bytes themselves, named by `name`."""
        body = await read_body(request, MAX_BODY_BYTES, TOO_LARGE)
        name, content, metadata = query.name, body, dict[str, Any]()
        if request.headers.get("content-type", "").startswith("application/json"):
            name, content, metadata = await anyio.to_thread.run_sync(_written, body)
        audit = decided(who, "knowledge.add", f"{kb}/{name}"[:256])
        return _job(await self.bases.add(_payer(who), kb, name, content, audit, metadata))

    @operation("DELETE", f"{ONE}/documents/{{document}}", {204: "It is gone."}, role="admin", errors=(404,))
    async def delete_document(
        self, who: Principal, kb: KbName, document: Annotated[str, about("Its documentId.", example=DOCUMENT_ID)]
    ) -> None:
        """Delete a document"""
        audit = decided(who, "knowledge.delete_document", f"{kb}/{document}"[:256])
        await self.bases.delete_document(who.workspace_id, kb, document, audit)

    @operation("GET", f"{ONE}/jobs", {200: "Those that have not arrived, the oldest first."}, errors=(404,))
    async def jobs(self, who: Principal, kb: KbName) -> IngestJobList:
        """List documents on their way in"""
        waiting = await self.bases.on_their_way(who.workspace_id, kb)
        return IngestJobList([_job(row) for row in waiting[:MAX_LISTED]], len(waiting) > MAX_LISTED)

    @operation("GET", f"{ONE}/jobs/{{job}}", {200: "Now."}, errors=(404,))
    async def job(
        self, who: Principal, kb: KbName, job: Annotated[str, about("Its jobId.", example=JOB_ID)]
    ) -> IngestJob:
        """Tell how far a document is"""
        return _job(await self.bases.job(who.workspace_id, kb, job))

    @operation("POST", f"{ONE}/search", {200: "Passages, the best first."}, errors=(404,))
    async def search(self, who: Principal, kb: KbName, body: KnowledgeQuery) -> PassageList:
        """Search a base"""
        found = await self.bases.retrieve(_payer(who), kb, body.query, top_k=body.top_k, filters=body.filters or {})
        return PassageList([FoundPassage(one.passage_id, one.text, one.score, dict(one.metadata)) for one in found])


def _written(body: bytes) -> tuple[str, bytes, Json]:
    """Read the name, the content and the metadata of a document that comes as JSON."""
    given = read_shape(_object(body), NewDocument)
    return given.name, _content(given), given.metadata or {}


def _object(body: bytes) -> Json:
    if holds_more_values(body, MAX_VALUES):
        raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, TOO_MANY)
    try:
        given = msgspec.json.decode(body, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise invalid(f"the body is not a JSON object: {error}") from error
    unknown = given.keys() - {"name", "text", "contentBase64", "metadata"}
    if unknown:
        raise invalid(f"unknown field {min(unknown)[:64]!r}; known are name, text, contentBase64, metadata")
    return given


def _content(given: NewDocument) -> bytes:
    if given.text is not None and given.content_base64 is None:
        return given.text.encode()
    if given.content_base64 is None or given.text is not None:
        raise invalid("give the document as text, or as contentBase64")
    try:
        return b64decode(given.content_base64, validate=True)
    except (Base64Error, ValueError) as error:
        raise invalid("contentBase64 is not valid base64") from error


def _payer(who: Principal) -> Payer:
    return Payer(who.workspace_id, who.user_id)


def _base(row: BaseRow) -> Base:
    return seen(Base, row, embedding_model=row.embedding_model or None)


def _document(row: DocumentRow) -> Document:
    metadata = msgspec.json.decode(row.metadata or b"{}")
    return seen(Document, row, sha256=row.content_hash, passages=row.chunk_count, metadata=metadata)


def _job(job: JobRow) -> IngestJob:
    return seen(IngestJob, job)
