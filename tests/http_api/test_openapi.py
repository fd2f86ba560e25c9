"""The description of the API is whole, valid, and true: what the host really answers is what it says."""

import mimetypes
import re
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest
from openapi_spec_validator import validate
from starlette.routing import Route

from http_api.described import DOCUMENT, OPERATIONS, Described
from http_api.doors import Doors, a_body, open_doors
from paddock.http_api.admin.console import ASSETS
from paddock.http_api.native.attachments import DOT

pytestmark = pytest.mark.anyio
FORMATS = jsonschema.FormatChecker()


def schema_of(schema: Any) -> Any:
    return {"components": DOCUMENT["components"], **schema}


def check(schema: Any, value: Any) -> None:
    jsonschema.Draft202012Validator(schema_of(schema), format_checker=FORMATS).validate(value)


def described(path: str, method: str, status: int) -> Any:
    return DOCUMENT["paths"][path][method.lower()]["responses"][str(status)]["content"]["application/json"]["schema"]


@pytest.mark.spec("http/openapi")
def test_the_document_is_valid_openapi() -> None:
    validate(DOCUMENT)  # pyright: ignore[reportArgumentType]
    assert DOCUMENT["openapi"] == "3.1.0"
    ids = [one["operationId"] for path in DOCUMENT["paths"].values() for one in path.values()]
    assert len(ids) == len(set(ids)) == len(OPERATIONS)


@pytest.mark.spec("http/openapi")
async def test_every_route_is_described_and_nothing_else_is() -> None:
    async with open_doors() as doors:
        routes = {
            (method, route.path)
            for route in doors.app.routes
            if isinstance(route, Route)
            for method in route.methods or ()
        }
        assert routes == {(one.method, one.path) for one in OPERATIONS}


@pytest.mark.spec("http/openapi")
@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: f"{one.method} {one.path}")
def test_everything_asked_for_and_answered_has_an_example_that_its_schema_allows(operation: Described) -> None:
    for where, said in said_in(operation.about):
        assert "example" in said, f"{where} has no example"
        check(said["schema"], said["example"])
    assert operation.named == operation.parameters("path")


def said_in(about: Any) -> Iterator[tuple[str, Any]]:
    """Whatever has a schema: parameters, bodies and answers in all their forms. Refusals are told apart, once."""
    for one in about.get("parameters", ()):
        yield f"the parameter {one['name']}", one
    answers = {status: said for status, said in about["responses"].items() if "$ref" not in said}
    for where, said in {"the body": about.get("requestBody", {}), **answers}.items():
        for form, content in said.get("content", {}).items():
            yield f"{where} as {form}", content


@pytest.mark.spec("http/openapi")
def test_every_kind_of_file_of_the_console_is_described() -> None:
    names = ["index.js", "index.css", "icon.svg", *(path.name for path in (ASSETS / "assets").glob("*"))]
    told = DOCUMENT["paths"]["/assets/{name}"]["get"]["responses"]["200"]["content"]
    assert {mimetypes.guess_type(name)[0] for name in names} == set(told)


@pytest.mark.spec("http/openapi")
async def test_the_picture_of_the_examples_is_one_that_the_host_takes() -> None:
    async with open_doors() as doors:
        answer = await doors.client.post("/api/v1/agent/attachments", files={"file": ("dot.gif", DOT.encode())})
        assert answer.status_code == 201, answer.text
        assert answer.json()["mimeType"] == "image/gif"


@pytest.mark.spec("http/openapi")
def test_every_refusal_has_an_example_too() -> None:
    for name, response in DOCUMENT["components"]["responses"].items():
        said = response["content"]["application/problem+json"]
        check(said["schema"], said["example"])
        assert name in {"Problem", f"Problem{said['example']['status']}"}


@pytest.mark.spec("http/openapi")
async def test_what_the_host_answers_is_what_the_document_says() -> None:
    async with open_doors() as doors:
        body = a_body()
        thread = body["threadId"]
        check({"$ref": "#/components/schemas/RunAgentInput"}, body)
        accepted = await doors.post(body)
        check(described("/api/v1/agent/runs", "POST", 202), accepted.json())
        await doors.answered(await doors.gateway.next(), "hello")
        one = f"/api/v1/agent/runs/{accepted.json()['taskId']}"
        await asked(doors, "/api/v1/agent/runs/{run}", one)
        await asked(doors, "/api/v1/agent/runs/{run}/explain", f"{one}/explain?action=history.page")
        await asked(doors, "/api/v1/agent/sessions/{thread}", f"/api/v1/agent/sessions/{thread}")
        for path in ("/api/v1/agent/history", "/api/v1/agent/sessions", "/api/v1/agent/ag-ui/capabilities", "/readyz"):
            await asked(doors, path, path)
        for path in ("users/me", "api-keys", "agents", "runners", "approvals", "knowledge"):
            await asked(doors, f"/api/v1/{path}", f"/api/v1/{path}")
        refused = await doors.post({})
        check({"$ref": "#/components/schemas/Problem"}, refused.json())


async def asked(doors: Doors, path: str, url: str) -> None:
    answer = await doors.client.get(url)
    assert answer.status_code == 200, answer.text
    check(described(path, "GET", 200), answer.json())


@pytest.mark.spec("http/openapi")
async def test_document_and_page_are_served_to_everybody_and_need_nothing_from_elsewhere() -> None:
    async with open_doors() as doors:
        await doors.key_for("ann")
        assert (await doors.client.get("/api/openapi.json")).json()["openapi"] == "3.1.0"
        page = await doors.client.get("/api/docs")
        assert page.headers["content-type"].startswith("text/html")
        assert all(one.path in page.text for one in OPERATIONS)
        assert not re.findall(r"<script|<link|<img|src=|@import|url\(", page.text)
        links, places = (re.findall(rf'{what}([a-z0-9-]+)"', page.text) for what in ('href="#', 'id="'))
        assert links == places, "everything on the page is in its contents, and has an address"
        assert len(places) == len(set(places)) > len(OPERATIONS)
