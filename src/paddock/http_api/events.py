"""`POST /api/v1/events`: a platform tells what happened there. It is known by its signature, not by a key."""

from collections.abc import Callable, Sequence

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute

from paddock.host.ingress import Ingress
from paddock.host.platforms import Platform, Platforms, unknown_platform
from paddock.http_api.bodies import json_response, read_body
from paddock.http_api.routing import route
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows import AuditRow
from paddock.rules.run_input import MAX_BODY_BYTES, decode_object
from paddock.rules.run_input_shapes import InvalidInputError
from paddock.rules.webhook_signatures import WINDOW_SECONDS, is_fresh, is_signed

EVENTS = "/api/v1/events"
TOO_LARGE = f"an event has at most {MAX_BODY_BYTES} bytes"


class EventsDoor:
    def __init__(
        self,
        *,
        platforms: Platforms,
        ingress: Ingress,
        note: Callable[[AuditRow], None],
        clock: Callable[[], float],
    ) -> None:
        self._platforms = platforms
        self._ingress = ingress
        self._note = note
        self._clock = clock

    def routes(self) -> Sequence[BaseRoute]:
        return [route("POST", EVENTS, self.post)]

    async def post(self, request: Request) -> Response:
        body = await read_body(request, MAX_BODY_BYTES, TOO_LARGE)
        platform = self._signed(request, body)
        try:
            given = decode_object(body, "the event")
        except InvalidInputError as error:
            raise HostError(ErrorCode.INVALID_ARGUMENT, str(error)) from error
        accepted = await self._ingress.accept(platform, given)
        answer = {"taskId": accepted.task_id, "threadId": accepted.thread_id, "runId": accepted.run_id}
        return json_response(answer, 202)

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
