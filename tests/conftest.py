"""What every test shares: the event loop that production uses, and one worker for tests that share what is dear."""

import gc
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import hypothesis
import pytest

import reference_servers as servers_of_npm
import stalled
from stores import QuickStore, opened

hypothesis.settings.register_profile("busy", deadline=None)  # what a case takes says more of the machine than of it
hypothesis.settings.load_profile("busy")

stalled.tell(stalled.in_this_process)
HERE = Path(__file__).parent
SHARING = frozenset({"cli", "cluster", "langbot", "models"})
"""Rooms whose tests share a host, a server or an environment within a file: on two workers it would be made twice."""


@pytest.hookimpl(tryfirst=True)  # before the workers look for groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if SHARING & set(item.path.parts[len(HERE.parts) :]) and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.stem))


def pytest_collection_finish() -> None:
    """What was loaded and collected stays to the end: to look at it again and again would cost each test its share."""
    gc.collect()
    gc.freeze()


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Bytes name no test: an archive has the time it was made in it, and the workers would not agree on the name."""
    return f"{argname}_of_{len(val)}_bytes" if isinstance(val, bytes) else None


@pytest.fixture(autouse=True)
def no_host_is_held_up(request: pytest.FixtureRequest) -> Iterator[None]:
    """Long tests, and those that attack, fail when the event loop of a host they use was held up meanwhile."""
    if not _looked_at(request.node):
        stalled.since_last()  # nothing of theirs is told to the next
    yield
    if _looked_at(request.node):
        assert stalled.since_last() == []


def _looked_at(item: pytest.Item) -> bool:
    watched = stalled.EVERYWHERE and "telemetry" not in item.path.parts  # where stalls are made
    return watched or item.get_closest_marker("long") is not None or "safety" in item.path.parts


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A stall is told a moment after it was: one in the last moment of the last test counts too."""
    last = session.items[-1] if session.items else None
    if last is not None and _looked_at(last) and (late := stalled.since_last()):
        print(f"\na host was held up in the last moment: {late}")
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.fixture(scope="session")
def reference_servers() -> Path:
    return servers_of_npm.installed()


@pytest.fixture
def anyio_backend() -> tuple[str, dict[str, bool]]:
    return "asyncio", {"use_uvloop": True}


@pytest.fixture
async def store() -> AsyncIterator[QuickStore]:
    """A real store with nothing in it, open."""
    async with opened(QuickStore()) as store:
        yield store
