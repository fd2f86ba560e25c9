"""The page of all queues says what the code does."""

import re
from importlib import import_module
from pathlib import Path

import pytest

from paddock.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "spec" / "limits.md").read_text()
NAMED = re.findall(r"`([a-z_.]+):([A-Z_]+)` = (\d+)", PAGE)
SHARED = re.compile(r"asyncio\.Semaphore\(|CapacityLimiter\(|Places\(|asyncio\.Queue\(|SimpleQueue\(")
KNOWN = {
    "models/remote.py": "on the page",
    "tools/mcp_server.py": "on the page",
    "storage/search/history.py": "on the page",
    "storage/search/threads.py": "on the page",
    "storage/sqlite/engine.py": "threads of the database",
    "storage/sqlite/writer.py": "groups of rows, written at once",
    "http_api/native/platforms.py": "on the page",
    "host/platforms/deliveries.py": "on the page",
    "host/automation/scheduler.py": "on the page",
    "host/conversations/attachments.py": "on the page",
    "images/cleaning.py": "on the page",
    "tools/functions.py": "on the page",
}


@pytest.mark.parametrize(("module", "name", "number"), NAMED)
def test_a_bound_on_the_page_of_queues_is_the_one_in_the_code(module: str, name: str, number: str) -> None:
    assert getattr(import_module(f"paddock.{module}"), name) == int(number)


def test_the_page_of_queues_names_settings_that_there_are() -> None:
    assert len(NAMED) > 15
    for name in (
        "max_connections",
        "max_runs",
        "max_queue",
        "unfinished_mib",
        "host_call_rate",
        "workspace_model_calls",
    ):
        assert f"`{name}`" in PAGE
        assert name in Settings.model_fields


def test_every_queue_in_the_code_is_on_the_page_of_queues() -> None:
    source = Path(__file__).parents[2] / "src" / "paddock"
    found = {str(file.relative_to(source)) for file in source.rglob("*.py") if SHARED.search(file.read_text())}
    assert {file for file in found if not file.startswith("cli/")} == KNOWN.keys()
