"""In a group the model is told who speaks; where a person is alone with an agent, nothing stands before the words."""

from typing import Any

import pytest

from official.speaking import demo, resources, shown
from paddock_runners.local_agent import LocalAgent
from paddock_runners.toolkit.transcript import turns_of
from paddock_sdk.protocol.history import TranscriptItem
from paddock_sdk.testing import pretend_host

GROUP = {"conversation_id": "conversation", "bot_id": "agent", "workspace_id": "w", "launcher_type": "chat"}


def item(number: int, text: str, **more: Any) -> TranscriptItem:
    fields = {"transcript_id": f"i{number}", "event_id": f"e{number}", "role": "user", "content": text, "seq": number}
    return TranscriptItem.model_validate({"actor_type": "user", **fields, "metadata": {"run_id": f"r{number}"}, **more})


def test_people_in_a_group_are_told_apart_by_name_or_by_id() -> None:
    items = [item(1, "hi", actor_name="Ann", actor_id="u1"), item(2, "ho", actor_id="u2"), item(3, "hm")]
    items += [item(4, "so", actor_name="An\nn\t(admin)" + "x" * 200, actor_id="u1")]
    said = [turn.messages[0]["content"] for turn in turns_of(items, agent_id="agent", group=True)]
    assert said[:3] == ["(Ann said:) hi", "(u2 said:) ho", "hm"]
    assert "\n" not in said[3]
    assert len(said[3]) < 120
    assert [turn.messages[0]["content"] for turn in turns_of(items[:2], agent_id="agent")] == ["hi", "ho"]


@pytest.mark.anyio
async def test_the_model_of_the_local_agent_is_told_who_speaks_now() -> None:
    asked: list[Any] = []
    async with pretend_host(LocalAgent(), calls={"models.stream": demo(asked)}) as host:
        actor = {"actor_type": "user", "actor_id": "u1", "actor_name": "Ann"}
        await host.run("hello", conversation=GROUP, actor=actor, resources=resources())
        assert shown(asked[-1])[-1]["content"] == "(Ann said:) hello"
        await host.run("hello", actor=actor, resources=resources())
        assert shown(asked[-1])[-1]["content"] == "hello"
