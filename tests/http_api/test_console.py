"""The console's files: served to everybody, guarded, kept by browsers for good; and a sentence where there are none."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException

from http_api.doors import assert_problem, open_doors, serving
from loopback import NO_TLS
from paddock.http_api.admin.console import ConsoleDoor
from paddock.http_api.edge.errors import not_routed

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def console_of(directory: Path) -> AsyncIterator[httpx.AsyncClient]:
    app = Starlette(routes=ConsoleDoor(directory).routes(), exception_handlers={HTTPException: not_routed})
    async with serving(app) as url, httpx.AsyncClient(base_url=url, timeout=30, verify=NO_TLS) as client:
        yield client


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>Paddock</title>")
    (tmp_path / "assets/index-abc.js").write_text("export {}\n" * 500)
    (tmp_path / "secret.txt").write_text("not for anybody")
    return tmp_path


@pytest.mark.spec("http/console")
async def test_the_page_is_asked_for_anew_and_its_files_are_kept_for_good(built: Path) -> None:
    async with console_of(built) as client:
        page = await client.get("/")
        assert (page.status_code, page.headers["cache-control"]) == (200, "no-cache")
        same = await client.get("/", headers={"If-None-Match": page.headers["etag"]})
        assert (same.status_code, same.content) == (304, b"")
        script = await client.get("/assets/index-abc.js")
        assert script.headers["content-type"].startswith("text/javascript")
        assert (script.headers["cache-control"], script.headers["content-encoding"]) == (
            "public, max-age=31536000, immutable",
            "gzip",
        )
        plain = await client.get("/assets/index-abc.js", headers={"Accept-Encoding": "identity"})
        assert plain.text == script.text == (built / "assets/index-abc.js").read_text()


@pytest.mark.spec("http/console-guarded")
async def test_no_foreign_and_no_inline_script_may_run_in_the_page(built: Path) -> None:
    async with console_of(built) as client:
        for path in ("/", "/assets/index-abc.js"):
            headers = (await client.get(path)).headers
            policy = dict(rule.split(" ", 1) for rule in headers["content-security-policy"].split("; "))
            assert policy["default-src"] == policy["base-uri"] == policy["frame-ancestors"] == "'none'"
            assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"
            assert "unsafe" not in headers["content-security-policy"]
            assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")


@pytest.mark.parametrize(
    "name", ["secret.txt", "..%2Fsecret.txt", "%2e%2e%2fsecret.txt", "index-abc.js%00", "nothing.js"]
)
async def test_nothing_but_the_built_files_is_ever_read(built: Path, name: str) -> None:
    async with console_of(built) as client:
        answer = await client.get(f"/assets/{name}")
        assert answer.status_code == 404
        assert "not for anybody" not in answer.text


@pytest.mark.spec("http/console")
async def test_without_a_build_the_page_says_what_to_do_and_how_to_chat(tmp_path: Path) -> None:
    async with console_of(tmp_path) as client:
        page = await client.get("/")
        assert page.headers["content-type"].startswith("text/html")
        assert "make console" in page.text
        assert "paddock chat" in page.text
        assert f"{client.base_url}/api/v1/agent/ag-ui".replace("//api", "/api") in page.text
        odd = await client.get("/", headers={"Host": "<script>x</script>"})
        assert "<script>" not in odd.text
        assert_problem(await client.get("/assets/index.js"), 404, "not_found", "the console has no such file")


@pytest.mark.spec("http/console")
async def test_the_console_needs_no_key_to_be_loaded() -> None:
    async with open_doors() as doors:
        await doors.key_for("ann")
        assert (await doors.client.get("/")).status_code == 200
