"""Counts what really happens: tools, models and platforms of the tests end here, and each is held until released."""

import json
import threading
from collections import Counter
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from loopback import QuietHandler

HELD_SECONDS = 120.0


class Stub:
    """An HTTP server that tools tell, that models are asked at, and that a chat platform is delivered to."""

    def __init__(self) -> None:
        self.count: Counter[str] = Counter()
        self.ids: Counter[str] = Counter()
        """Messages by the id that stays the same when one is delivered again."""
        self._go_on = threading.Event()
        stub = self

        class Handler(QuietHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
                with suppress(BrokenPipeError, ConnectionResetError):  # whoever asked is gone
                    stub.answer(self, body)

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._server.server_port}"

    def begin_anew(self) -> None:
        """Hold from now on, and count from nothing."""
        self._go_on.set()
        self._go_on = threading.Event()
        self.count.clear()
        self.ids.clear()

    def release(self) -> None:
        self._go_on.set()

    def close(self) -> None:
        self._go_on.set()
        self._server.shutdown()

    def answer(self, request: BaseHTTPRequestHandler, body: dict[str, Any]) -> None:
        go_on = self._go_on
        if request.path.startswith("/effect/"):
            self._hold(request.path.removeprefix("/effect/"), go_on)
            self._send(request, b"booked", "text/plain")
        elif request.path == "/hook":
            if body.get("type") == "platform.action":
                self._hold("a platform action", go_on)
            elif "delivered?" in json.dumps(body):  # and not a question about the action
                self.ids[request.headers["webhook-id"]] += 1
                self._hold("a message", go_on)
            self._send(request, b"{}", "application/json")
        elif body.get("stream"):
            self._stream(request, go_on)
        else:
            self._hold("models.invoke", go_on)
            said = {"message": {"role": "assistant", "content": "four"}, "finish_reason": "stop", "index": 0}
            usage = {"prompt_tokens": 7, "completion_tokens": 1, "total_tokens": 8}
            self._send(request, json.dumps({"choices": [said], "usage": usage}).encode(), "application/json")

    def _hold(self, key: str, go_on: threading.Event) -> None:
        self.count[key] += 1
        go_on.wait(HELD_SECONDS)

    def _stream(self, request: BaseHTTPRequestHandler, go_on: threading.Event) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "text/event-stream")
        request.send_header("Connection", "close")
        request.end_headers()
        first = {"choices": [{"delta": {"role": "assistant", "content": "fo"}, "index": 0}]}
        last = {"choices": [{"delta": {"content": "ur"}, "finish_reason": "stop", "index": 0}]}
        usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}}
        request.wfile.write(b"data: %s\n\n" % json.dumps(first).encode())
        self._hold("models.stream", go_on)
        for said in (last, usage):
            request.wfile.write(b"data: %s\n\n" % json.dumps(said).encode())
        request.wfile.write(b"data: [DONE]\n\n")
        request.close_connection = True

    def _send(self, request: BaseHTTPRequestHandler, body: bytes, content_type: str) -> None:
        request.send_response(200)
        request.send_header("Content-Type", content_type)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)
