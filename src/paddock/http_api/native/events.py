"""`POST /api/v1/events`: a platform tells what happened there. It is known by its signature, not by a key."""

import asyncio
from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.platforms.event_shapes import inline_size
from paddock.host.platforms.ingress import Ingress
from paddock.host.platforms.platforms import Platform, Platforms, unknown_platform
from paddock.http_api.edge.bodies import declared_size, json_response, read_body
from paddock.http_api.edge.public_urls import local
from paddock.http_api.edge.routing import route
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.platforms.webhook_signatures import WINDOW_SECONDS, is_fresh, is_signed
from paddock.rules.rows.rows import AuditRow
from paddock.rules.run.input import MAX_BODY_BYTES, decode_object
from paddock.rules.run.input_shapes import InvalidInputError

EVENTS = "/api/v1/events"
TOO_LARGE = f"an event has at most {MAX_BODY_BYTES} bytes besides its files"
BODY_BYTES = 8 * 1024 * 1024
LARGE_AT_ONCE = 4
"""Who sends is known only when all of it was read: few may make the host hold that much at the same time."""
UNSIGNED = "its signature is not that of a platform known here"


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
        platform = self._named(request)
        body = await self._body(request)
        self._check_signature(platform, request, body)
        try:
            given = decode_object(body, "the event")
        except InvalidInputError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        if len(body) - inline_size(given) > MAX_BODY_BYTES:
            raise HostError(ErrorCode.PAYLOAD_TOO_LARGE, TOO_LARGE)
        accepted = await self._ingress.accept(platform, given, lambda url: local(request, url))
        answer = {"taskId": accepted.task_id, "threadId": accepted.thread_id, "runId": accepted.run_id}
        return json_response(answer, 202)

    async def _body(self, request: Request) -> bytes:
        """All of it, because all of it is signed."""
        size = declared_size(request)
        if size is not None and size <= MAX_BODY_BYTES:
            return await read_body(request, MAX_BODY_BYTES, TOO_LARGE)
        if self._large.locked():
            raise HostError(ErrorCode.RATE_LIMITED, "too many large events at once; send it again", retryable=True)
        async with self._large:
            return await read_body(request, self._body_bytes, f"an event has at most {self._body_bytes} bytes")

    def _named(self, request: Request) -> Platform:
        """The platform it says it is of, before anything of the body is read; what nobody signed is not read either."""
        platform = self._platforms.find(request.query_params.get("platform"))
        if platform is None or not all(_signing(request).values()):
            self._note(self._refused(platform, UNSIGNED))
            raise unknown_platform()
        return platform

    def _check_signature(self, platform: Platform, request: Request, body: bytes) -> None:
        """Unknown platforms and wrong signatures look the same; only who can sign hears more."""
        headers = _signing(request)
        if not is_signed(platform.incoming, headers, body):
            self._note(self._refused(platform, UNSIGNED))
            raise unknown_platform()
        if not is_fresh(headers, self._clock()):
            self._note(self._refused(platform, "it is older or newer than the window allows"))
            text = f"webhook-timestamp is more than {WINDOW_SECONDS:g} seconds off; sign the event when it is sent"
            raise HostError(ErrorCode.UNAUTHENTICATED, text)

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


def _signing(request: Request) -> dict[str, str]:
    names = ("webhook-id", "webhook-timestamp", "webhook-signature")
    return {name: request.headers.get(name, "") for name in names}
