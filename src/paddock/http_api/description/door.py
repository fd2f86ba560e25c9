"""The description of this API, served to programs and to people. It says the same to everybody: no key is needed."""

from collections.abc import Iterable
from functools import cached_property
from importlib.metadata import version

from starlette.responses import HTMLResponse, Response

from paddock.http_api.edge.bodies import json_response
from paddock.http_api.edge.errors import GUARDED
from paddock.http_api.edge.operations import JSON, Content, Door, Operations, operation
from paddock.http_api.edge.shapes import Json

EXAMPLE: Json = {
    "openapi": "3.1.0",
    "info": {"title": "Paddock", "version": "0.1.0"},
    "paths": {"/healthz": {"get": {}}},
}
PAGE = Content("text/html", str, '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>Paddock</title>\n')


class DescriptionDoor(Operations):
    """Describes the operations of these doors, and its own."""

    group = "Probes"

    def __init__(self, doors: Iterable[Door]) -> None:
        self._doors = [*(type(door) for door in doors if isinstance(door, Operations)), DescriptionDoor]

    @operation(
        "GET", "/api/openapi.json", {200: "OpenAPI 3.1."}, role="anybody", response=[Content(JSON, Json, EXAMPLE)]
    )
    async def document(self) -> Response:
        """Read this description"""
        return json_response(self._document)

    @operation("GET", "/api/docs", {200: "HTML, without anything from elsewhere."}, role="anybody", response=[PAGE])
    async def page(self) -> Response:
        """Read this description as a page"""
        from paddock.http_api.description.page import POLICY, docs_page

        return HTMLResponse(docs_page(self._document), headers={**GUARDED, "Content-Security-Policy": POLICY})

    @cached_property
    def _document(self) -> Json:
        from paddock.http_api.description.document import openapi

        return openapi(version("paddock"), self._doors)
