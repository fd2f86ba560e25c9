"""The description of this API, served to programs and to people. It says the same to everybody: no key is needed."""

import json
import re
from base64 import b64encode
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import sha256
from html import escape
from importlib.metadata import version
from typing import Any

from starlette.responses import HTMLResponse, Response

from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.operations import JSON, Content, Door, Operations, operation
from paddock.http_api.edge.requests import json_response
from paddock.http_api.edge.shapes import Json

EXAMPLE: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Paddock", "version": "0.1.0"},
    "paths": {"/healthz": {"get": {}}},
}
PAGE = Content("text/html", str, '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Paddock</title>\n')


class DescriptionDoor(Operations):
    """Describes the operations of these doors, and its own."""

    group = "Probes"

    def __init__(self, doors: Iterable[Door]) -> None:
        self._doors = [*(type(door) for door in doors if isinstance(door, Operations)), DescriptionDoor]

    @operation(
        "GET", "/api/openapi.json", {200: "OpenAPI 3.1."}, role="anybody", response=[Content(JSON, Json, EXAMPLE)]
    )
    async def document(self) -> Response:
        """Read this description"""
        return json_response(self._document)

    @operation("GET", "/api/docs", {200: "HTML, without anything from elsewhere."}, role="anybody", response=[PAGE])
    async def page(self) -> Response:
        """Read this description as a page"""
        return HTMLResponse(docs_page(self._document), headers={**GUARDED, "Content-Security-Policy": POLICY})

    @cached_property
    def _document(self) -> Json:
        from paddock.http_api.description.document import openapi

        return openapi(version("paddock"), self._doors)


# --- the page ---------------------------------------------------------------------------------------------------------


Document = Mapping[str, Any]
Listed = tuple[str, str, Document]
"""Method, path, and what is said of it."""
Group = tuple[str, list[Listed]]

_STYLE = """:root{color-scheme:light dark}
body{font:16px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem}
pre{padding:.8rem;overflow:auto;border:1px solid #8884;border-radius:.4rem}
h3 code{font-size:1rem}table{border-collapse:collapse}td{padding:.1rem .8rem .1rem 0;vertical-align:top}
nav summary{cursor:pointer}nav ul{margin:.2rem 0 1rem;padding-left:1.2rem}"""
POLICY = (
    f"default-src 'none'; style-src 'sha256-{b64encode(sha256(_STYLE.encode()).digest()).decode()}'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""What a browser may do with the page: show it, in its one style."""
_KEYS = """On the host's own machine no key is needed while none exists; then every call brings one, as
<code>Authorization: Bearer KEY</code>. A refusal is a problem (RFC 9457) with a sentence in <code>detail</code>."""


def docs_page(document: Document) -> str:
    head = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">'
    )
    about = '<p>The same for programs: <a href="/api/openapi.json">/api/openapi.json</a> (OpenAPI 3.1).</p>'
    opening = [
        head,
        "<title>The HTTP API</title>",
        f"<style>{_STYLE}</style>",
        f"<h1>The HTTP API ({escape(document['info']['version'])})</h1>",
    ]
    groups = list(_groups(document))
    return "\n".join([*opening, about, f"<p>{_KEYS}</p>", *_contents(groups), *_sections(groups)])


def _groups(document: Document) -> Iterator[Group]:
    listed = [
        (method.upper(), path, about)
        for path, methods in document["paths"].items()
        for method, about in methods.items()
    ]
    for name in sorted({about["tags"][0] for _, _, about in listed}):
        yield name, [one for one in listed if one[2]["tags"] == [name]]


def _contents(groups: Sequence[Group]) -> Iterator[str]:
    yield "<nav>"
    for name, listed in groups:
        yield f'<details open><summary><a href="#{_anchor(name)}">{escape(name)}</a></summary><ul>'
        yield from (f'<li><a href="#{_place(one)}">{_called(one)}</a> {escape(one[2]["summary"])}' for one in listed)
        yield "</ul></details>"
    yield "</nav>"


def _sections(groups: Sequence[Group]) -> Iterator[str]:
    for name, listed in groups:
        yield f'<h2 id="{_anchor(name)}">{escape(name)}</h2>'
        for one in listed:
            yield from _operation(one)


def _place(one: Listed) -> str:
    return _anchor(f"{one[0]}{one[1].removeprefix('/api/v1')}")


def _anchor(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _called(one: Listed) -> str:
    return f"<code>{one[0]} {escape(one[1])}</code>"


def _operation(one: Listed) -> Iterator[str]:
    about = one[2]
    yield f'<h3 id="{_place(one)}">{_called(one)} {escape(about["summary"])}</h3>'
    if "description" in about:
        yield f"<p>{escape(about['description'])}</p>"
    if "parameters" in about:
        yield _table(about["parameters"])
    yield from _examples(about.get("requestBody", {}))
    for status, answer in about["responses"].items():
        if "$ref" not in answer:
            yield f"<p>{status}: {escape(answer['description'])}</p>"
            yield from _examples(answer)


def _table(parameters: Sequence[Document]) -> str:
    rows = ((one["name"], one["description"], str(one["example"])) for one in parameters)
    cells = (f"<tr><td><code>{escape(a)}</code><td>{escape(b)}<td><code>{escape(c)}</code>" for a, b, c in rows)
    return f"<table>{''.join(cells)}</table>"


def _examples(said: Document) -> Iterator[str]:
    for content in said.get("content", {}).values():
        yield f"<pre>{escape(_shown(content['example']))}</pre>"


def _shown(example: Any) -> str:
    return _printable(example) if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _printable(text: str) -> str:
    return "".join(one if one.isprintable() or one in "\n\t" else repr(one)[1:-1] for one in text)
