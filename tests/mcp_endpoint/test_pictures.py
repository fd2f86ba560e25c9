"""Pictures over a run's own endpoint: those of granted tools, and those of the conversation, as MCP images."""

import asyncio
from base64 import b64decode, b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.types import ImageContent, TextContent
from PIL import Image

from host.scripted import SmallHouse
from images.pictures import opened, picture
from mcp_endpoint.reach import EVERYTHING, Reach, reach
from paddock.host.calls.tool_files import ToolFiles
from paddock.host.calls.tools import ToolCalls
from paddock.host.calls.work import CallHandler
from paddock.host.runs.outcomes import Outcomes
from paddock.images.cleaning import ChildPictures
from paddock.rules.access.permissions import Grant
from paddock.rules.rows.rows import AuditRow
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTool, FunctionTools, signature_of
from paddock_sdk.protocol.host_calls import ToolsCallParams, ToolsCallResult

pytestmark = pytest.mark.anyio


def current_time() -> list[Any]:
    """Stands in for the built-in one, which is granted here: a clock that is drawn."""
    return ["it is late", picture(), b"\xff\x00 no picture"]


@asynccontextmanager
async def drawing(root: Path, **more: Any) -> AsyncGenerator[Reach]:
    """A granted tool gives back a picture: the real rooms behind it, over this house's files."""
    made: list[ToolCalls] = []

    async def call(grant: Grant, asked: ToolsCallParams, audit: AuditRow) -> ToolsCallResult:
        return await made[0].call(grant, asked, audit)

    async with reach(root, instead={"tools.call": CallHandler(write=call)}, **more) as house:
        made.append(with_a_drawing_tool(house.house))
        yield house


def with_a_drawing_tool(small: SmallHouse) -> ToolCalls:
    clock = asyncio.get_running_loop().time
    tool = FunctionTool(current_time, signature_of(current_time))
    catalog = ToolCatalog([FunctionTools([tool], clock=clock)])
    files = ToolFiles(small.artifacts, ChildPictures(), max_pixels=1_000_000)
    return ToolCalls(
        catalog,
        records=small.store,
        outcomes=Outcomes(small.store),
        clock=clock,
        artifacts=small.artifacts,
        files=files,
    )


async def test_a_picture_of_a_granted_tool_is_handed_on_as_a_picture_in_its_place(tmp_path: Path) -> None:
    async with drawing(tmp_path) as house:
        run = await house.a_run()
        async with run.client() as client:
            answer = await client.call_tool("current_time", {})
        words, drawn, other = answer.content
        assert isinstance(words, TextContent)
        assert isinstance(drawn, ImageContent)
        assert isinstance(other, TextContent)
        assert (words.text, drawn.mime_type) == ("it is late", "image/png")
        assert opened(b64decode(drawn.data)).size == (6, 4)
        assert '"type":"file"' in other.text


async def test_a_run_that_may_read_no_files_is_told_of_the_picture(tmp_path: Path) -> None:
    without = {name: asked for name, asked in EVERYTHING.items() if name != "artifacts"}
    async with drawing(tmp_path, permissions=without) as house:
        run = await house.a_run()
        async with run.client() as client:
            answer = await client.call_tool("current_time", {})
        assert [one.type for one in answer.content] == ["text", "text", "text"]
        assert '"mime_type":"image/png"' in answer.content[1].model_dump()["text"]
        assert [row.result for row in await house.rows("artifacts.read_range")] == []


async def test_a_picture_of_the_conversation_is_looked_at_whole_however_it_is_read(tmp_path: Path) -> None:
    noise = Image.effect_noise((400, 400), 90)  # more than one range
    noise.save(tmp_path / "noise.png")
    content = (tmp_path / "noise.png").read_bytes()
    assert len(content) > 65_536
    async with reach(tmp_path) as house:
        run = await house.a_run()
        async with run.client() as client:
            given = {"name": "noise.png", "content_base64": b64encode(content).decode()}
            made = await client.call_tool("artifact_create", given)
            artifact_id = made.content[0].model_dump()["text"].split('"artifact_id":"')[1].split('"')[0]
            [shown] = (await client.call_tool("artifact_read", {"artifact_id": artifact_id})).content
        assert shown.type == "image"
        assert b64decode(shown.data) == content
