"""An MCP server that means harm, over HTTP (given a port) or stdio: each of its tools answers in one bad way.

It speaks just enough of the protocol to be called, with nothing but the standard library, so that it can say what no
library would.
"""

import gzip
import json
import socketserver
import sys
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any

MANY = 2_000_000
MIB = 1024 * 1024


def result(request: Any, content: str) -> bytes:
    """An answer whose content is JSON that is given as text."""
    head = json.dumps({"jsonrpc": "2.0", "id": request["id"]})[:-1]
    return f'{head},"result":{content}}}'.encode()


def text(words: str) -> str:
    return json.dumps({"content": [{"type": "text", "text": words}]})


TOOLS: dict[str, Callable[[Any], bytes]] = {
    "good": lambda asked: result(asked, text("fine")),
    "long": lambda asked: result(asked, text("word, " * 2_000_000)),
    "values": lambda asked: result(asked, '{"content":[],"structuredContent":{"a":[' + "[]," * MANY + "1]}}"),
    "parts": lambda asked: result(
        asked, '{"content":[' + '{"type":"text","text":""},' * 400_000 + '{"type":"text","text":""}]}'
    ),
    "deep": lambda asked: result(asked, '{"content":[],"structuredContent":{"a":' + "[" * MANY + "]" * MANY + "}}"),
    "digits": lambda asked: result(asked, '{"content":[],"structuredContent":{"a":' + "9" * MANY + "}}"),
    "giant": lambda asked: result(asked, text("x" * 40 * MIB)),
    "halves": lambda asked: result(asked, '{"content":[{"type":"text","text":"' + "\\ud800" * MANY + '"}]}'),
    "rubbish": lambda _: b"{" * MANY,
    "bomb": lambda asked: result(asked, text("x" * 400 * MIB)),
    "bomb_of_events": lambda asked: result(asked, text("x" * 400 * MIB)),
    "drops": lambda asked: result(asked, text("y" * 600_000)),
    "drops_of_events": lambda asked: result(asked, text("y" * 600_000)),
    "values_of_events": lambda asked: result(asked, '{"content":[],"structuredContent":{"a":[' + "[]," * MANY + "1]}}"),
    "lines_of_events": lambda asked: b"x\ndata: " * MANY + result(asked, text("late")),
}


def answer(request: Any) -> bytes | None:
    match request.get("method"):
        case "initialize":
            info = {"protocolVersion": request["params"]["protocolVersion"], "capabilities": {"tools": {}}}
            return result(request, json.dumps({**info, "serverInfo": {"name": "hostile", "version": "1"}}))
        case "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]
            return result(request, json.dumps({"tools": tools}))
        case "tools/call":
            return TOOLS[request["params"]["name"]](request)
        case _:
            return None


class Door(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 0

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        said = answer(request)
        if said is None:
            self.send_response(202)
            self.send_header("content-length", "0")
            self.end_headers()
            return
        name = request.get("params", {}).get("name", "") if request["method"] == "tools/call" else ""
        self._say(said, events=name.endswith("_of_events"), packed="bomb" in name, drops="drops" in name)

    def do_GET(self) -> None:
        self.send_response(405)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_DELETE(self) -> None:
        self.do_GET()

    def _say(self, body: bytes, *, events: bool, packed: bool, drops: bool) -> None:
        body = b"event: message\ndata: " + body + b"\n\n" if events else body
        body = gzip.compress(body, 1) if packed else body
        self.send_response(200)
        self.send_header("content-type", "text/event-stream" if events else "application/json")
        if packed:
            self.send_header("content-encoding", "gzip")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        for piece in pieces(body, 16 if drops else MIB):
            self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")

    def log_message(self, format: str, *args: object) -> None: ...  # noqa: A002 - its name there


def pieces(body: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(body), size):
        yield body[start : start + size]


class Serving(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


if __name__ == "__main__":
    if len(sys.argv) > 1:
        with Serving(("127.0.0.1", int(sys.argv[1])), Door) as server:
            server.serve_forever()
    for line in sys.stdin.buffer:
        if (said := answer(json.loads(line))) is not None:
            for piece in pieces(said + b"\n", 64 if b"yyy" in said else len(said) + 1):
                sys.stdout.buffer.write(piece)
                sys.stdout.buffer.flush()
    time.sleep(0)
