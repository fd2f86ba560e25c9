"""The description of this API, served to programs and to people. It says the same to everybody: no key is needed."""

from functools import cache
from importlib.metadata import version

from starlette.responses import HTMLResponse, Response

from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.operations import JSON, Content, Operations, operation
from paddock.http_api.edge.shapes import Json

EXAMPLE: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Paddock", "version": "0.1.0"},
    "paths": {"/healthz": {"get": {}}},
}
PAGE = Content("text/html", str, '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Paddock</title>\n')


class DescriptionDoor(Operations):
    group = "Probes"

    @operation(
        "GET",
        "/api/openapi.json",
        role="anybody",
        answers={200: "OpenAPI 3.1."},
        response=[Content(JSON, Json, EXAMPLE)],
    )
    async def document(self) -> Response:
        """Read this description"""
        return _document()

    @operation(
        "GET",
        "/api/docs",
        role="anybody",
        answers={200: "HTML, without anything from elsewhere."},
        response=[PAGE],
    )
    async def page(self) -> Response:
        """Read this description as a page"""
        return _page()


@cache
def _document() -> Response:
    from paddock.http_api.description.document import openapi

    return json_response(openapi(version("paddock")))


@cache
def _page() -> Response:
    from paddock.http_api.description.document import openapi
    from paddock.http_api.description.page import POLICY, docs_page

    return HTMLResponse(docs_page(openapi(version("paddock"))), headers={**GUARDED, "Content-Security-Policy": POLICY})
