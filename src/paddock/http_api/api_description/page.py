"""The description as a page for people: plain HTML, no script, nothing from elsewhere."""

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from hashlib import sha256
from html import escape
from itertools import groupby
from typing import Any

from paddock.http_api.api_description.document import OPERATIONS
from paddock.http_api.api_description.words import Operation, Parameter, Said

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


def docs_page(version: str) -> str:
    head = (
        '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<meta name="viewport" content="width=device-width">'
    )
    about = '<p>The same for programs: <a href="/api/openapi.json">/api/openapi.json</a> (OpenAPI 3.1).</p>'
    opening = [
        head,
        "<title>The HTTP API</title>",
        f"<style>{_STYLE}</style>",
        f"<h1>The HTTP API ({escape(version)})</h1>",
    ]
    return "\n".join([*opening, about, f"<p>{_KEYS}</p>", *_contents(), *_rooms()])


def _by_room() -> Iterator[tuple[str, list[Operation]]]:
    for room, operations in groupby(sorted(OPERATIONS, key=lambda one: one.room), key=lambda one: one.room):
        yield room, list(operations)


def _contents() -> Iterator[str]:
    yield "<nav>"
    for room, operations in _by_room():
        yield f'<details open><summary><a href="#{_anchor(room)}">{escape(room)}</a></summary><ul>'
        yield from (f'<li><a href="#{_place(one)}">{_called(one)}</a> {escape(one.summary)}' for one in operations)
        yield "</ul></details>"
    yield "</nav>"


def _rooms() -> Iterator[str]:
    for room, operations in _by_room():
        yield f'<h2 id="{_anchor(room)}">{escape(room)}</h2>'
        for operation in operations:
            yield from _operation(operation)


def _place(operation: Operation) -> str:
    return _anchor(f"{operation.method}{operation.path.removeprefix('/api/v1')}")


def _anchor(text: str) -> str:
    """A name within the page's address."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")


def _called(operation: Operation) -> str:
    return f"<code>{operation.method} {escape(operation.path)}</code>"


def _operation(operation: Operation) -> Iterator[str]:
    yield f'<h3 id="{_place(operation)}">{_called(operation)} {escape(operation.summary)}</h3>'
    says = f"{operation.says} {'Administrators only.' if operation.admin else ''}".strip()
    if says:
        yield f"<p>{escape(says)}</p>"
    if operation.parameters:
        yield _table(operation.parameters)
    for body in operation.body:
        yield from _example(body)
    for status, (when, body) in operation.answers.items():
        yield f"<p>{status}: {escape(when)}</p>"
        if body is not None:
            yield from _example(body)


def _table(parameters: Sequence[Parameter]) -> str:
    rows = ((one.name, one.says, str(one.example)) for one in parameters)
    cells = (f"<tr><td><code>{escape(a)}</code><td>{escape(b)}<td><code>{escape(c)}</code>" for a, b, c in rows)
    return f"<table>{''.join(cells)}</table>"


def _example(body: Said) -> Iterator[str]:
    if body.example is not None:
        yield f"<pre>{escape(_shown(body.example))}</pre>"


def _shown(example: Any) -> str:
    return _printable(example) if isinstance(example, str) else json.dumps(example, indent=2, ensure_ascii=False)


def _printable(text: str) -> str:
    """Bytes that no page may hold are shown as Python writes them."""
    return "".join(one if one.isprintable() or one in "\n\t" else repr(one)[1:-1] for one in text)
