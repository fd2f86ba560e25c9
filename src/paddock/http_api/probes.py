"""Is it alive, is it ready, and what is this? Needs no key and tells nothing about anybody."""

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from paddock.http_api.bodies import json_response
from paddock.http_api.routing import route

Ready = Callable[[], tuple[bool, str]]

_PAGE = """\
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Paddock</title>
<style>body{font:16px/1.5 system-ui,sans-serif;max-width:44rem;margin:3rem auto;padding:0 1rem}
pre{padding:1rem;overflow:auto;border:1px solid #8884;border-radius:.4rem}</style>
<h1>Paddock</h1>
<p>This is an agent host: conversations, history, keys and permissions live here; agents plug in as runners.</p>
<p>Chat from a terminal:</p>
<pre>paddock chat "hello"</pre>
<p>Or point any AG-UI client at <code>/api/v1/agent/ag-ui</code>:</p>
<pre>curl -N URL/api/v1/agent/ag-ui -H 'Content-Type: application/json' \\
  -d '{"threadId":"main","runId":"1","messages":[{"id":"1","role":"user","content":"hello"}]}'</pre>
<p>Agents: <a href="/api/v1/agents">/api/v1/agents</a> &middot; runners: <a href="/api/v1/runners">/api/v1/runners</a>
&middot; ready: <a href="/readyz">/readyz</a></p>
"""


class Probes:
    def __init__(self, ready: Ready) -> None:
        self._ready = ready

    def routes(self) -> Sequence[BaseRoute]:
        return [
            route("GET", "/healthz", self.healthz),
            route("GET", "/readyz", self.readyz),
            route("GET", "/", self.page),
        ]

    async def healthz(self, _: Request) -> Response:
        return json_response({"status": "alive"})

    async def readyz(self, _: Request) -> Response:
        ready, reason = self._ready()
        return json_response({"status": "ready" if ready else "not ready", "reason": reason}, 200 if ready else 503)

    async def page(self, request: Request) -> Response:
        return HTMLResponse(_PAGE.replace("URL", _own_address(request)))


def _own_address(request: Request) -> str:
    """As the caller wrote it, if it is plain enough to be printed."""
    host = request.headers.get("host", "")
    plain = host and all(character.isalnum() or character in ".-:[]" for character in host)
    return f"{request.url.scheme}://{host}" if plain else ""
