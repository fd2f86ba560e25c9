"""Fixtures of the tests that stand still or run on a loop of their own."""

from collections.abc import Callable
from typing import Any

import anyio
import anyio.to_thread
import pytest


@pytest.fixture
def no_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make calls that would be made on a thread at once."""

    async def run_sync(func: Callable[..., Any], *args: Any, **_options: Any) -> Any:
        return func(*args)

    monkeypatch.setattr(anyio.to_thread, "run_sync", run_sync)
