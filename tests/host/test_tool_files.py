"""Files that tools give back, kept for real: in their place, judged by content, within limits, never a lost result."""

import time
from typing import Any

import pytest

from contracts.builders import a_decision
from grants import a_grant
from images.pictures import picture
from paddock.host.calls.artifacts import PREVIEW_CHARS, ArtifactLimits, Artifacts
from paddock.host.calls.tool_files import MAX_FILES, ToolFiles
from paddock.host.calls.tools import ToolCalls
from paddock.host.runs.outcomes import Outcomes
from paddock.images.cleaning import ChildPictures
from paddock.ports import Store
from paddock.tools.functions import FunctionTool, FunctionTools, signature_of
from paddock_sdk.protocol.host_calls import ToolsCallParams
from stores import QuickBlobs

pytestmark = pytest.mark.anyio


async def result_of(store: Store, given: object, *, workspace_bytes: int = 10**9) -> dict[str, Any]:
    """What a call says whose function gives this back."""

    def draw() -> Any:
        """Draw."""
        return given

    limits = ArtifactLimits(workspace_bytes=workspace_bytes)
    artifacts = Artifacts(store, QuickBlobs(), clock=time.time, limits=limits)
    files = ToolFiles(artifacts, ChildPictures(), max_pixels=1_000_000)
    tools = FunctionTools([FunctionTool(draw, signature_of(draw))], clock=time.time)
    calls = ToolCalls(tools, records=store, outcomes=Outcomes(store), clock=time.time, artifacts=artifacts, files=files)
    grant = a_grant(tools={"draw": frozenset({"call"})})
    said = await calls.call(grant, ToolsCallParams(run_id="run-1", tool_name="draw"), a_decision())
    return said.model_dump(exclude_none=True)


async def test_a_picture_is_kept_and_named_and_its_bytes_are_not_in_the_record(store: Store) -> None:
    said = await result_of(store, picture("image/jpeg"))
    [part] = said["result"]
    assert (part["type"], part["mime_type"], part["artifact_type"]) == ("image", "image/jpeg", "image")
    assert part["name"].endswith("-1.jpg")
    row = await store.artifact(part["artifact_id"])
    assert row is not None
    assert (row.source, row.size, row.published) == ("tool", part["size"], False)
    assert row.metadata == b'{"width":6,"height":4}'  # a page keeps room for it before it is there
    [call] = await store.tool_calls("run-1")
    assert (call.status, len(call.result) < 500, part["artifact_id"].encode() in call.result) == (
        "completed",
        True,
        True,
    )


async def test_beside_words_over_the_cap_the_picture_is_still_there(store: Store) -> None:
    said = await result_of(store, ["tea " * 20_000, picture()])
    words, shown = said["result"]
    assert (words["type"], len(words["text"])) == ("text", PREVIEW_CHARS)
    assert shown["type"] == "image"
    assert said["artifact"]["artifact_id"] != shown["artifact_id"]


async def test_what_is_too_much_to_keep_is_said_in_its_place_and_the_call_is_a_call(store: Store) -> None:
    full = await result_of(store, ["words", picture()], workspace_bytes=10)
    assert full["result"][0] == {"type": "text", "text": "words"}
    assert (full["result"][1]["type"], "artifact_id" in full["result"][1]) == ("file", False)
    assert full["result"][1]["problem"].startswith("it is not kept: ")
    many = await result_of(store, [b"\xff\x00" + bytes([number]) for number in range(MAX_FILES + 1)])
    assert ["artifact_id" in part for part in many["result"]] == [True] * MAX_FILES + [False]
    assert {call.status for call in await store.tool_calls("run-1")} == {"completed"}


async def test_a_picture_that_cannot_be_drawn_is_a_file_with_the_reason(store: Store) -> None:
    said = await result_of(store, [picture()[:40], picture(size=(1001, 1000))])
    broken, huge = said["result"]
    assert (broken["type"], huge["type"]) == ("file", "file")
    assert "cannot be read as image/png" in broken["problem"]
    assert "1001 x 1000 pixels" in huge["problem"]
