"""The web console: files that were built beforehand, served as they are. It uses the API like everybody else.

Everything is read once and kept. Nothing here knows who is calling: the files are the same for everybody and hold
nothing of anybody.
"""

import gzip
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from paddock.http_api.description.door import PAGE
from paddock.http_api.edge.operations import Content, Operations, operation
from paddock.http_api.edge.requests import own_address
from paddock.http_api.edge.shapes import about
from paddock.rules.errors import ErrorCode, HostError

ASSETS = Path(__file__).parents[2] / "console_assets"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
GUARDED: Mapping[str, str] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Permissions-Policy": "camera=(), microphone=(), geolocation=()",
}
FOR_GOOD = "public, max-age=31536000, immutable"
"""Names of assets change with their content."""
WORTH_PACKING = 1024

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Paddock</title>
<h1>Paddock</h1>
<p>This is an agent host: conversations, history, keys and permissions live here; agents plug in as runners.</p>
<p><strong>The web console was not built here.</strong> It takes Node.js 20 or newer: install it, then run
<code>make console</code> and reload this page. Installed packages of Paddock bring the console along.</p>
<p>Everything works without it. Chat from a terminal:</p>
<pre>paddock chat "hello"</pre>
<p>Or point any AG-UI client at <code>/api/v1/agent/ag-ui</code>:</p>
<pre>curl -N URL/api/v1/agent/ag-ui -H 'Content-Type: application/json' \\
  -d '{"threadId":"main","runId":"1","messages":[{"id":"1","role":"user","content":"hello"}]}'</pre>
<p>Agents: <a href="/api/v1/agents">/api/v1/agents</a> &middot; runners: <a href="/api/v1/runners">/api/v1/runners</a>
&middot; the API: <a href="/api/docs">/api/docs</a> &middot; ready: <a href="/readyz">/readyz</a></p>
"""


@dataclass(frozen=True)
class Asset:
    body: bytes
    media_type: str
    cache: str

    @cached_property
    def packed(self) -> bytes:
        return gzip.compress(self.body, mtime=0)

    @cached_property
    def tag(self) -> str:
        return f'"{sha256(self.body).hexdigest()[:32]}"'

    def answer(self, request: Request) -> Response:
        headers = {**GUARDED, "Cache-Control": self.cache, "ETag": self.tag, "Vary": "Accept-Encoding"}
        if request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        if len(self.body) >= WORTH_PACKING and "gzip" in request.headers.get("accept-encoding", ""):
            return Response(self.packed, headers={**headers, "Content-Encoding": "gzip"}, media_type=self.media_type)
        return Response(self.body, headers=headers, media_type=self.media_type)


class ConsoleDoor(Operations):
    group = "Console"

    def __init__(self, directory: Path = ASSETS) -> None:
        self._directory = directory
        self._known: dict[str, Asset] = {}

    @operation("GET", "/", {200: "HTML."}, role="anybody", response=[PAGE])
    async def page(self, request: Request) -> Response:
        """Open the web console"""
        # Read anew each time: it is small, and a build while the host runs is seen at the next reload.
        index = self._directory / "index.html"
        if not index.is_file():
            return HTMLResponse(_PAGE.replace("URL", own_address(request)), headers=dict(GUARDED))
        return Asset(index.read_bytes(), "text/html; charset=utf-8", "no-cache").answer(request)

    @operation(
        "GET",
        "/assets/{name}",
        {200: "The file."},
        role="anybody",
        errors=(404,),
        response=[
            Content("text/javascript", str, "export const name = 'Paddock';"),
            Content("text/css", str, "body{margin:0}"),
            Content("image/svg+xml", str, '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1 1"></svg>'),
        ],
    )
    async def asset(
        self, request: Request, name: Annotated[str, about("Its name.", example="index-Bx2pQz4k.js")]
    ) -> Response:
        """Read a file of the web console"""
        found = self._known.get(name) or self._read(name)
        if found is None:
            text = "the console has no such file; reload the page, it may be older than the host"
            raise HostError(ErrorCode.NOT_FOUND, text)
        return found.answer(request)

    def _read(self, name: str) -> Asset | None:
        """Read a file and keep it. Opens only what the folder lists."""
        folder = self._directory / "assets"
        if not folder.is_dir() or name not in {path.name for path in folder.iterdir()}:
            return None
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        found = self._known[name] = Asset((folder / name).read_bytes(), media_type, FOR_GOOD)
        return found
