"""Pictures over a run's own endpoint: those of granted tools, and those of the conversation, as MCP images."""

import asyncio
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from images.pictures import opened, picture
from mcp_endpoint.reach import EVERYTHING, Reach, reach
from paddock.host.calls.tool_files import ToolFiles
from paddock.host.calls.tools import ToolCalls
from paddock.host.runs.outcomes import Outcomes
from paddock.images.cleaning import ChildPictures
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTool, FunctionTools, signature_of

pytestmark = pytest.mark.anyio


def current_time() -> list[Any]:
    """Stands in for the built-in one, which is granted here: a clock that is drawn."""
    return ["it is late", picture(), b"\xff\x00 no picture"]


def with_a_drawing_tool(house: Reach) -> None:
    """The granted tool gives back a picture: the real rooms behind it, over this house's files."""
    small, clock = house.house, asyncio.get_running_loop().time
    tool = FunctionTool(current_time, signature_of(current_time))
    catalog = ToolCatalog([FunctionTools([tool], clock=clock)])
    files = ToolFiles(small.artifacts, ChildPictures(), max_pixels=1_000_000)
    calls = ToolCalls(
        catalog,
        records=small.store,
        outcomes=Outcomes(small.store),
        clock=clock,
        artifacts=small.artifacts,
        files=files,
    )
    small.calls._work = {**small.calls._work, "tools.call": calls.work["tools.call"]}


async def test_a_picture_of_a_granted_tool_is_handed_on_as_a_picture_in_its_place(tmp_path: Path) -> None:
    async with reach(tmp_path) as house:
        with_a_drawing_tool(house)
        run = await house.a_run()
        async with run.client() as client:
            answer = await client.call_tool("current_time", {})
        words, drawn, other = answer.content
        assert (words.type, drawn.type, other.type) == ("text", "image", "text")
        assert (words.text, drawn.mime_type) == ("it is late", "image/png")
        assert opened(b64decode(drawn.data)).size == (6, 4)
        assert '"type":"file"' in other.text


async def test_a_run_that_may_read_no_files_is_told_of_the_picture(tmp_path: Path) -> None:
    without = {name: asked for name, asked in EVERYTHING.items() if name != "artifacts"}
    async with reach(tmp_path, permissions=without) as house:
        with_a_drawing_tool(house)
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
