"""Agents written as a Python file: a change is taken up while the host runs, and a mistake changes nothing."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.compose import Rooms, rooms_of
from paddock.compose.build import house_of
from paddock.host.agents import watch as agents_watch
from paddock.host.agents.file import AgentsFileError
from paddock.host.runs.live_runs import LiveRuns
from paddock.ports.tools import ToolUse
from paddock.settings import Settings

pytestmark = pytest.mark.anyio

PROGRAM = '''
from paddock import Agent

def lucky_number() -> int:
    """A number."""
    return {number}

agent = Agent("{instructions}")
'''


@asynccontextmanager
async def a_house(file: Path, **parts: Any) -> AsyncGenerator[Rooms]:
    write(file, **parts)
    rooms = rooms_of(Settings(data=file.parent / "data", agents=file, discover_models=False))
    async with house_of(rooms).running():
        yield rooms


def write(file: Path, number: int = 1, instructions: str = "Be kind.", text: str = PROGRAM) -> None:
    """As editors save: a new file in the place of the old one."""
    fresh = file.with_suffix(".new")
    fresh.write_text(text.format(number=number, instructions=instructions))
    fresh.replace(file)


async def until(house: Rooms, is_so: Callable[[], object]) -> None:
    """The host looks by itself, too: who looks at the same moment finds that nothing is new."""
    assert house.upkeep.agents_watch is not None
    async with asyncio.timeout(30):
        while not is_so():
            await house.upkeep.agents_watch.reload_if_changed()
            await asyncio.sleep(0.01)


def instructions(house: Rooms, name: str = "helper") -> str:
    binding = house.machinery.agents.get(name, "default")
    assert binding is not None
    return str(binding.config["instructions"])


async def number(house: Rooms, run_id: str = "new") -> int:
    use = ToolUse("c", "lucky_number", {}, "default", "ann", "helper", "t", run_id, house.ground.clock() + 30)
    return int(json.loads((await house.granted.tools.call(use)).content))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "helper.py"


async def test_a_change_is_in_force_without_a_restart_also_one_of_a_single_letter_at_once(file: Path) -> None:
    async with a_house(file) as house:
        assert (instructions(house), await number(house)) == ("Be kind.", 1)
        for lucky in (2, 3, 4):  # as long as before, within one second
            write(file, lucky, f"Be {lucky}.")
            await until(house, lambda lucky=lucky: instructions(house) == f"Be {lucky}.")
            assert await number(house) == lucky
        await house.ground.audit.flush()
        assert {row.result for row in await house.ground.store.audit() if row.action == "agents.reload"} == {"allowed"}


async def test_a_run_that_is_live_keeps_the_functions_it_began_with_until_it_ends(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = ["old"]
    monkeypatch.setattr(LiveRuns, "ids", lambda _: live)
    async with a_house(file) as house:
        write(file, 2, "Be short.")
        await until(house, lambda: instructions(house) == "Be short.")
        assert (await number(house, "old"), await number(house)) == (1, 2)
        write(file, text='from paddock import Agent\nagent = Agent("No tools.", tools=[])\n')
        await until(house, lambda: instructions(house) == "No tools.")
        assert house.granted.tools.find("default", "lucky_number") is not None, "a grant may still name it"
        assert await number(house, "old") == 1
        live = []
        write(file, text='from paddock import Agent\nagent = Agent("Still none.", tools=[])\n')
        await until(house, lambda: instructions(house) == "Still none.")
        assert house.granted.tools.find("default", "lucky_number") is None


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        ("def x(:\n", "helper.py, line 1: SyntaxError"),
        ("1 / 0\n", "helper.py, line 1: ZeroDivisionError"),
        ("import sys\nsys.exit(3)\n", "helper.py, line 2: SystemExit: 3"),
        ("x = 1\n", "helper.py defines no agent"),
        ("from paddock import Agent\n\ndef f(a): ...\n\nagent = Agent('x')\n", "helper.py: "),
    ],
)
async def test_a_mistake_is_said_and_all_stays_as_it_was_until_it_is_mended(file: Path, broken: str, says: str) -> None:
    async with a_house(file) as house:
        write(file, text=broken.replace("{", "{{"))
        await until(house, lambda: house.machinery.agents.problem)
        assert says in str(house.machinery.agents.problem)
        assert house.upkeep.health.file_problem is not None
        assert (instructions(house), await number(house)) == ("Be kind.", 1)
        write(file, 5, "Mended.")
        await until(house, lambda: instructions(house) == "Mended.")
        assert (house.machinery.agents.problem, await number(house)) == (None, 5)


async def test_a_program_that_waits_for_something_is_given_up_on(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_house(file) as house:
        monkeypatch.setattr(agents_watch, "READ_SECONDS", 0.2)
        awaited = file.with_name("awaited")
        write(file, text=f"import os, time\nwhile not os.path.exists({str(awaited)!r}): time.sleep(0.05)\n")
        await until(house, lambda: house.machinery.agents.problem)
        awaited.touch()
        assert "it must not wait for anything" in str(house.machinery.agents.problem)
        assert await number(house) == 1


async def test_a_program_that_is_broken_when_the_host_starts_starts_nothing(file: Path) -> None:
    file.write_text("1 / 0\n")
    with pytest.raises(AgentsFileError, match="ZeroDivisionError"):
        await asyncio.to_thread(rooms_of, Settings(data=file.parent / "data", agents=file, discover_models=False))
