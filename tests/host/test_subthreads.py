"""Threads of a platform's conversation are apart in all that belongs to one of them, not only in what is read."""

import json
from base64 import b64decode
from typing import Any

import pytest

from host.calling import ask, refusal
from host.scripted import AtRunner, ScriptedGateway, SmallHouse
from host.test_chat_questions import DELETE, EDIT, resume_of
from host.test_platform_files import INLINE, with_files
from host.test_platforms import Receiver, a_house, an_event, come, deliver
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.rules.access.permissions import RunScope
from paddock.rules.errors import ErrorCode
from paddock.rules.log.payloads import MAX_INLINE_DATA

pytestmark = [pytest.mark.anyio, pytest.mark.spec("wire/threads-apart")]

AGENTS = """
default_agent: one
agents:
  one: {runner: "plugin:test/one/default", while_busy: %s, platform_actions: [message.edit]}
"""
READS = {"artifacts": ["metadata", "read"], "history": ["page"], "storage": ["plugin"]}
ANN, BEN = {"actor_id": "ann", "actor_name": "Ann"}, {"actor_id": "ben", "actor_name": "Ben"}


async def begun(house: SmallHouse, event: dict[str, Any]) -> AtRunner:
    await come(house, event)
    return await house.gateway.next()


async def ended(house: SmallHouse, event: dict[str, Any], **end: Any) -> AtRunner:
    accepted = await come(house, event)
    run = await house.gateway.next()
    run.say("run.completed", **end)
    await house.story(accepted)
    return run


@pytest.mark.parametrize("policy", ["steer", "interrupt"])
async def test_a_message_reaches_into_no_run_of_another_thread(policy: str) -> None:
    async with a_house(Receiver(), agents=AGENTS % policy, gateway=ScriptedGateway(steering=True)) as house:
        run = await begun(house, an_event("e1", thread_id="a"))
        other = await come(house, an_event("e2", "of b", thread_id="b", actor=BEN))
        assert (await house.run(other)).status == "queued"
        assert (await ask(house, run, "steering.pull"))["items"] == []
        assert (await house.store.run(run.run_id)).status == "running"  # pyright: ignore[reportOptionalMemberAccess]
        run.say("run.completed")
        assert (await house.gateway.next()).context["input"]["text"] == "of b"


async def test_input_that_steers_a_run_says_whose_it_is() -> None:
    async with a_house(Receiver(), agents=AGENTS % "steer", gateway=ScriptedGateway(steering=True)) as house:
        run = await begun(house, an_event("e1", thread_id="a"))
        await come(house, an_event("e2", "and this", thread_id="a", actor=BEN, source_event_type="im.message"))
        [item] = (await ask(house, run, "steering.pull"))["items"]
        assert (item["actor"]["actor_name"], item["conversation"]["thread_id"]) == ("Ben", "a")
        assert item["event"]["source_event_type"] == "im.message"
        run.say("run.completed")


async def test_a_question_is_answered_in_the_thread_it_was_asked_in() -> None:
    async with a_house(Receiver(), interactions=True) as house:
        await ended(house, an_event("e1", thread_id="a", actor=ANN), interrupts=[DELETE])
        elsewhere = await ended(house, an_event("e2", "yes", thread_id="b", actor=ANN))
        assert resume_of(elsewhere) is None
        here = await begun(house, an_event("e3", "yes", thread_id="a", actor=ANN))
        assert resume_of(here) == [{"interruptId": "q1", "status": "resolved", "payload": {"approved": True}}]
        here.say("run.completed")


async def test_a_file_is_read_in_the_thread_it_came_in() -> None:
    async with a_house(Receiver(), gateway=ScriptedGateway(permissions=READS)) as house:
        run = await begun(house, with_files(INLINE, thread_id="a"))
        [file] = run.context["input"]["attachments"]
        assert (await ask(house, run, "artifacts.metadata", artifact_id=file["artifact_id"]))["name"] == "cat.png"
        run.say("run.completed")
        for number, there in enumerate(({"thread_id": "b"}, {})):
            other = await begun(house, an_event(f"e{number + 2}", **there))
            told = await refusal(house, other, "artifacts.metadata", artifact_id=file["artifact_id"])
            assert told[0] is ErrorCode.NOT_FOUND
            other.say("run.completed")


async def test_each_thread_has_a_working_directory_of_its_own(tmp_path: Any) -> None:
    directories = WorkingDirectories(tmp_path)
    scopes = [RunScope("r", "w", "u", "agent", "c", name) for name in (None, "a", "b", "agent", "../a")]
    paths = [(await directories.of(scope, None)).path for scope in scopes]
    assert len(set(paths)) == len(paths)
    await directories.forget("w", "c")
    assert list(tmp_path.rglob("agent*")) == []


async def test_large_data_of_an_event_is_behind_a_reference_and_its_run_reads_them() -> None:
    data = {"rows": ["x" * 1000] * 40, "kind": "table"}
    gateway = ScriptedGateway(permissions={"artifacts": ["metadata", "read"]})
    async with a_house(Receiver(), gateway=gateway) as house:
        run = await begun(house, an_event("e1", data=data))
        event = run.context["event"]
        assert event["data"]["summary"]["keys"] == ["rows", "kind"]
        assert event["data"]["summary"]["size_bytes"] > MAX_INLINE_DATA
        assert len(json.dumps(event)) < 4096
        read = await ask(house, run, "artifacts.read_range", artifact_id=event["raw_ref"]["ref_id"])
        told = json.loads(b64decode(read["content_base64"]))
        assert {name: told[name] for name in data} == data
        run.say("run.completed")
        small = await begun(house, an_event("e2", data={"kind": "table"}))
        assert small.context["event"]["data"] == {"kind": "table"}
        assert "raw_ref" not in small.context["event"]
        raw = event["raw_ref"]["ref_id"]
        assert (await refusal(house, small, "artifacts.read_range", artifact_id=raw))[0] is ErrorCode.NOT_FOUND
        small.say("run.completed")


async def test_state_that_does_not_fit_is_named() -> None:
    async with a_house(Receiver(), gateway=ScriptedGateway(permissions=READS)) as house:
        run = await begun(house, an_event("e1"))
        assert run.context["runtime"]["metadata"]["state_scopes"] == ["actor", "conversation", "runner"]
        assert "state_truncated" not in run.context["runtime"]["metadata"]
        for name in ("a", "b", "c"):
            await ask(house, run, "state.set", scope="conversation", key=name, value="x" * 100_000)
        run.say("run.completed")
        later = await begun(house, an_event("e2"))
        assert sorted(later.context["state"]["conversation"]) == ["a", "b"]
        assert later.context["runtime"]["metadata"]["state_truncated"] == {"conversation": ["c"]}
        assert len((await ask(house, later, "state.get", scope="conversation", key="c"))["value"]) == 100_000
        later.say("run.completed")


async def test_what_a_platform_is_asked_to_do_goes_to_the_thread_it_was_asked_in() -> None:
    receiver = Receiver()
    gateway = ScriptedGateway(permissions={"platform_api": ["message.edit"]})
    async with a_house(receiver, agents=AGENTS % "queue", gateway=gateway, actions=["message.edit"]) as house:
        run = await begun(house, an_event("e1", thread_id="a", actor=ANN))
        pending = await ask(house, run, "platform.request_action", **EDIT)
        run.say("run.completed")
        await ended(house, an_event("e2", thread_id="b", actor=BEN))
        await deliver(house)
        who = house.platforms.find("chat").principal  # pyright: ignore[reportOptionalMemberAccess]
        await house.approvals.decide(who, pending["approval_id"], "granted")
        [done] = [told for told in receiver.got if told["type"] == "platform.action"]
        assert done["reply_target"]["thread_id"] == "a"
