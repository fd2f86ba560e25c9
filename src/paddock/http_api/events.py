"""`POST /api/v1/events`: a platform tells what happened there. It is known by its signature, not by a key."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.event_shapes import inline_size
from paddock.host.ingress import Ingress
from paddock.host.platforms import Platform, Platforms, unknown_platform
from paddock.http_api.bodies import declared_size, json_response, read_body, read_large
from paddock.http_api.routing import route
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows import AuditRow
from paddock.rules.run_input import MAX_BODY_BYTES, decode_object
from paddock.rules.run_input_shapes import InvalidInputError
from paddock.rules.webhook_signatures import WINDOW_SECONDS, is_fresh, is_signed

EVENTS = "/api/v1/events"
TOO_LARGE = f"an event has at most {MAX_BODY_BYTES} bytes besides its files"
BODY_BYTES = 8 * 1024 * 1024
LARGE_AT_ONCE = 4
"""Who sends is known only when all of it was read: few may make the host hold that much at the same time."""


class EventsDoor:
    def __init__(
        self,
        *,
        platforms: Platforms,
        ingress: Ingress,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
        body_bytes: int = BODY_BYTES,
    ) -> None:
        self._platforms = platforms
        self._ingress = ingress
        self._note = note
        self._clock = clock
        self._body_bytes = body_bytes
        self._large = asyncio.Semaphore(LARGE_AT_ONCE)

    def routes(self) -> Sequence[BaseRoute]:
        return [route("POST", EVENTS, self.post)]

    async def post(self, request: Request) -> Response:
        body = await self._body(request)
        platform = self._signed(request, body)
        try:
            given = decode_object(body, "the event")
        except InvalidInputError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        if len(body) - inline_size(given) > MAX_BODY_BYTES:
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, TOO_LARGE)
        accepted = await self._ingress.accept(platform, given)
        answer = {"taskId": accepted.task_id, "threadId": accepted.thread_id, "runId": accepted.run_id}
        return json_response(answer, 202)

    async def _body(self, request: Request) -> bytes:
        """All of it, because all of it is signed. What is too large for words alone is read only of known platforms."""
        size = declared_size(request)
        if size is not None and size <= MAX_BODY_BYTES:
            return await read_body(request, MAX_BODY_BYTES, TOO_LARGE)
        if self._platforms.find(request.query_params.get("platform")) is None:
            self._note(self._refused(None, "its platform is not known here"))
            raise unknown_platform()
        if self._large.locked():
            raise HostError(ErrorCode.RATE_LIMITED, "too many large events at once; send it again", retryable=True)
        async with self._large:
            return await read_large(request, self._body_bytes, f"an event has at most {self._body_bytes} bytes")

    def _signed(self, request: Request, body: bytes) -> Platform:
        """Whoever signed it. Unknown platforms and wrong signatures look the same; only who can sign hears more."""
        platform = self._platforms.find(request.query_params.get("platform"))
        headers = {name: request.headers.get(name, "") for name in ("webhook-id", "webhook-timestamp")}
        headers["webhook-signature"] = request.headers.get("webhook-signature", "")
        if platform is None or not is_signed(platform.incoming, headers, body):
            self._note(self._refused(platform, "its signature is not that of a platform known here"))
            raise unknown_platform()
        if not is_fresh(headers, self._clock()):
            self._note(self._refused(platform, "it is older or newer than the window allows"))
            text = f"webhook-timestamp is more than {WINDOW_SECONDS:g} seconds off; sign the event when it is sent"
            raise HostError(ErrorCode.UNAUTHENTICATED, text)
        return platform

    def _refused(self, platform: Platform | None, reason: str) -> AuditRow:
        name = platform.name if platform is not None else ""
        return AuditRow(
            time=self._clock(),
            workspace_id=platform.principal.workspace_id if platform is not None else "",
            actor=f"platform:{name}",
            action="events.accept",
            resource=name,
            scope="host",
            result="unauthenticated",
            reason=reason,
        )
