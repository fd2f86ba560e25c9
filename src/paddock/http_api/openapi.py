"""The description of this API, served to programs and to people. It says the same to everybody: no key is needed."""

from functools import cache
from importlib.metadata import version

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from paddock.http_api.bodies import json_response


class DescriptionDoor:
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
    from paddock.http_api.api_description.page import docs_page

    return HTMLResponse(docs_page(version("paddock")))
