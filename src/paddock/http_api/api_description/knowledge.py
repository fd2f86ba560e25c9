"""Knowledge bases, described."""

from typing import Any

from paddock.http_api.api_description.examples import DOCUMENT_ID, JOB_ID
from paddock.http_api.api_description.words import (
    COUNT,
    NUMBER,
    OBJECT,
    TEXT,
    TRUTH,
    Operation,
    Parameter,
    Said,
    list_of,
    ref,
    shape,
    text,
)

ROOM = "Knowledge"
BASE = "/api/v1/knowledge"
_KB = Parameter("kb", "The base.", place="path")

SCHEMAS = {
    "Base": shape(
        {"kbId": TEXT, "name": TEXT, "description": TEXT, "createdAt": NUMBER},
        {"embeddingModel": TEXT},
    ),
    "BaseList": shape({"bases": list_of(ref("Base"))}),
    "NewBase": shape(
        {"kbId": text(least=1, most=64, pattern="^[a-z0-9_-]+$")},
        {"name": TEXT, "description": TEXT, "embeddingModel": TEXT},
        strict=True,
    ),
    "Document": shape(
        {
            "documentId": TEXT,
            "name": TEXT,
            "mediaType": TEXT,
            "sizeBytes": COUNT,
            "sha256": TEXT,
            "passages": COUNT,
            "createdAt": NUMBER,
            "metadata": OBJECT,
        }
    ),
    "DocumentList": shape({"documents": list_of(ref("Document")), "hasMore": TRUTH}),
    "NewDocument": shape(
        {"name": TEXT},
        {"text": TEXT, "contentBase64": {"type": "string", "contentEncoding": "base64"}, "metadata": OBJECT},
        strict=True,
    ),
    "IngestJob": shape(
        {"jobId": TEXT, "kbId": TEXT, "documentId": TEXT, "name": TEXT, "status": TEXT, "done": COUNT, "total": COUNT},
        {"message": {"anyOf": [TEXT, {"type": "null"}]}},
    ),
    "IngestJobList": shape({"jobs": list_of(ref("IngestJob")), "hasMore": TRUTH}),
    "KnowledgeQuery": shape(
        {"query": TEXT}, {"topK": {"type": "integer", "minimum": 1}, "filters": OBJECT}, strict=True
    ),
    "PassageList": shape(
        {"results": list_of(shape({"id": TEXT, "text": TEXT, "score": NUMBER, "place": OBJECT}))},
    ),
}
_BYTES = "application/octet-stream"
_BASE = {"kbId": "handbook", "name": "Handbook", "description": "", "createdAt": 1773677553.1}
_JOB = {
    "jobId": JOB_ID,
    "kbId": "handbook",
    "documentId": DOCUMENT_ID,
    "name": "leave.md",
    "status": "waiting",
    "done": 0,
    "total": 0,
    "message": "",
}
_JOBS: dict[str, Any] = {"jobs": [_JOB], "hasMore": False}
_DOCUMENT: dict[str, Any] = {
    "documentId": DOCUMENT_ID,
    "name": "leave.md",
    "mediaType": "text/markdown",
    "sizeBytes": 9,
    "sha256": "ab12",
    "passages": 1,
    "createdAt": 1773677553.1,
    "metadata": {},
}

OPERATIONS = (
    Operation(
        "GET",
        BASE,
        "The bases there are",
        ROOM,
        {200: ("Of the workspace.", Said(ref("BaseList"), {"bases": [_BASE]}))},
    ),
    Operation(
        "POST",
        BASE,
        "Make a base",
        ROOM,
        {201: ("It was made.", Said(ref("Base"), _BASE))},
        body=(Said(ref("NewBase"), {"kbId": "handbook"}),),
        problems=(409, 413),
        admin=True,
    ),
    Operation(
        "GET",
        f"{BASE}/{{kb}}",
        "One base",
        ROOM,
        {200: ("As it is.", Said(ref("Base"), _BASE))},
        parameters=(_KB,),
        problems=(404,),
    ),
    Operation(
        "DELETE",
        f"{BASE}/{{kb}}",
        "Delete a base",
        ROOM,
        {204: ("It is gone.", None)},
        parameters=(_KB,),
        problems=(404,),
        admin=True,
    ),
    Operation(
        "GET",
        f"{BASE}/{{kb}}/documents",
        "What is in a base",
        ROOM,
        {200: ("A page.", Said(ref("DocumentList"), {"documents": [_DOCUMENT], "hasMore": False}))},
        parameters=(_KB, Parameter("after", "The last documentId of the page before.", own_example=DOCUMENT_ID)),
        problems=(404,),
    ),
    Operation(
        "POST",
        f"{BASE}/{{kb}}/documents",
        "Add a document",
        ROOM,
        {202: ("It is on its way in.", Said(ref("IngestJob"), _JOB))},
        body=(
            Said(ref("NewDocument"), {"name": "leave.md", "text": "# Leave\n"}),
            Said({"type": "string", "contentMediaType": _BYTES}, "# Leave\nThirty days a year.\n", _BYTES),
        ),
        parameters=(_KB, Parameter("name", "The name of a document that comes as bytes.", own_example="leave.md")),
        problems=(404, 409, 413, 429),
        admin=True,
    ),
    Operation(
        "DELETE",
        f"{BASE}/{{kb}}/documents/{{document}}",
        "Delete a document",
        ROOM,
        {204: ("It is gone.", None)},
        parameters=(_KB, Parameter("document", "Its documentId.", place="path")),
        problems=(404,),
        admin=True,
    ),
    Operation(
        "GET",
        f"{BASE}/{{kb}}/jobs",
        "Documents on their way in",
        ROOM,
        {200: ("Those that have not arrived, the oldest first.", Said(ref("IngestJobList"), _JOBS))},
        parameters=(_KB,),
        problems=(404,),
    ),
    Operation(
        "GET",
        f"{BASE}/{{kb}}/jobs/{{job}}",
        "How far a document is",
        ROOM,
        {200: ("Now.", Said(ref("IngestJob"), _JOB))},
        parameters=(_KB, Parameter("job", "Its jobId.", place="path")),
        problems=(404,),
    ),
    Operation(
        "POST",
        f"{BASE}/{{kb}}/search",
        "Search a base",
        ROOM,
        {
            200: (
                "Passages, the best first.",
                Said(ref("PassageList"), {"results": [{"id": "p1", "text": "# Leave", "score": 0.9, "place": {}}]}),
            )
        },
        body=(Said(ref("KnowledgeQuery"), {"query": "leave"}),),
        parameters=(_KB,),
        problems=(404, 413),
    ),
)
