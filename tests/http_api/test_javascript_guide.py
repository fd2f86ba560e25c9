"""The page on JavaScript is run as it stands, with the official client, against an open door."""

import asyncio
import contextlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from http_api.doors import Doors, open_doors
from http_api.test_js_clients import driver

__all__ = ["driver"]
pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300)]
PAGE = Path(__file__).parents[2] / "docs/guides/javascript.md"
REPORT = """
const everything = [];
for await (const message of history(threadId)) if (message.role === "user") everything.unshift(message.content);
process.stdout.write("\\n" + JSON.stringify({ answer, said, missed, last, card, pressed, everything }));
"""


def the_script() -> str:
    return (
        "\n".join(re.findall(r"^```js\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)) + REPORT
    )


async def answer_runs(doors: Doors) -> None:
    """An agent that answers everything, counts until it is stopped, and shows what it is told to."""
    while True:
        run = await doors.gateway.started.get()
        run.listener.acknowledged()
        text = run.context["input"]["text"]
        if text == "count for ever":
            run.delta("1 ")
            await run.asked_to_stop.wait()
            run.may_stop.set()
            continue
        hints = json.loads(text.removeprefix("call show "))["hints"] if text.startswith("call show ") else None
        words = {"role": "assistant", "content": f"you said: {text}"}
        run.say("message.completed", message=words, **({"ui_hints": hints} if hints else {}))
        run.say("run.completed")


@pytest.mark.spec("http/javascript")
async def test_everything_on_the_page_works(driver: Path) -> None:
    script = driver.with_name("guide.mjs")
    script.write_text(the_script(), encoding="utf-8")
    async with open_doors() as doors:
        agent = asyncio.create_task(answer_runs(doors))
        process = await asyncio.create_subprocess_exec(
            "node", str(script), env={"PADDOCK_URL": doors.url, "PATH": os.environ["PATH"]},
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            output, errors = await asyncio.wait_for(process.communicate(), 90)
        finally:
            agent.cancel()
            with contextlib.suppress(ProcessLookupError):
                process.kill()
    assert process.returncode == 0, errors.decode()
    seen = json.loads(output.splitlines()[-1])
    assert seen["answer"] == "you said: hello"
    assert [message["content"] for message in seen["said"]] == ["hello", "you said: hello"]
    assert seen["missed"] == ["TEXT_MESSAGE_CONTENT", "TEXT_MESSAGE_END", "RUN_FINISHED"]
    assert seen["last"]["outcome"] == {"type": "cancelled"}
    assert seen["card"]["version"] == "2.0"
    asked = [text.split(" {")[0] for text in seen["everything"]]
    assert asked == ["hello", "tell me more", "count for ever", "what is this?", "call show", "I take this"]
    assert "you said: I take this" in [event.get("delta") for event in seen["pressed"]]
