"""Conversations with some life in them, in a small house on a real file, for tests of what is kept and forgotten."""

import uuid
from pathlib import Path

from host.scripted import SmallHouse
from paddock.host.session.arrivals import Accepted

THREAD = "0197a000-0000-7000-8000-000000000001"


async def a_turn(
    house: SmallHouse, text: str = "hello", answer: str = "good day", *, thread: str = THREAD, run: str | None = None
) -> Accepted:
    """One message, streamed and answered."""
    accepted = await house.say(text, thread=thread, run=run or uuid.uuid4().hex)
    at_runner = await house.gateway.next()
    at_runner.delta(answer[:4])
    at_runner.delta(answer[4:])
    at_runner.message(answer)
    at_runner.say("run.completed", usage={"total_tokens": 3})
    await house.story(accepted)
    return accepted


async def a_lively_conversation(house: SmallHouse, thread: str = THREAD) -> None:
    """Everything a log can hold in a few turns: tools, state, a revised message, a failure, a cancel, a queue."""
    await a_turn(house, thread=thread)
    accepted = await house.say("use a tool", thread=thread)
    waiting = await house.say("and this one waits", thread=thread)
    run = await house.gateway.next()
    run.say("tool.call.started", tool_call_id="t1", tool_name="search", parameters={"q": "x", "n": 1.5})
    run.say("tool.call.completed", tool_call_id="t1", tool_name="search", result={"hits": ["a", "b"]})
    run.say("state.updated", scope="conversation", key="k", value={"seen": True})
    run.delta("first thought")
    await house.until(thread, "AGENT_OUTPUT:CHUNK", (await house.run(accepted)).first_seq)
    run.message("second thought")
    run.say("run.completed")
    await house.story(accepted)
    run = await house.gateway.next()
    run.delta("half a")
    run.say("run.failed", code="runner.tired", message="no more")
    await house.story(waiting)


def words_in(directory: Path, words: str) -> list[str]:
    """The files of a directory in which these words stand, as they are or as bytes of UTF-16."""
    wanted = words.encode()
    return sorted(
        str(path.relative_to(directory))
        for path in directory.rglob("*")
        if path.is_file() and wanted in path.read_bytes()
    )
