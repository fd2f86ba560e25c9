"""The description of this API, served to programs and to people. It says the same to everybody: no key is needed."""

from collections.abc import Sequence
from functools import cache
from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute

from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.routing import route


class DescriptionDoor:
    def routes(self) -> Sequence[BaseRoute]:
        return [route("GET", "/api/openapi.json", self.document), route("GET", "/api/docs", self.page)]

    async def document(self, _: Request) -> Response:
        return _document()

    async def page(self, _: Request) -> Response:
        return _page()


@cache
def _document() -> Response:
    from paddock.http_api.api_description.document import (
        openapi,
    )

    return json_response(openapi(version("paddock")))


@cache
def _page() -> Response:
    from paddock.http_api.api_description.page import POLICY, docs_page

    return HTMLResponse(docs_page(version("paddock")), headers={**GUARDED, "Content-Security-Policy": POLICY})
