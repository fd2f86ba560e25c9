"""The local agent against the pretend host: what it asks, what it says, what it keeps."""

import asyncio
import gc
import sys
from itertools import pairwise
from typing import Any

import pytest

from official.speaking import ADD, adding, demo, resources, shown, texts
from paddock_runners.local_agent import LocalAgent
from paddock_runners.local_agent.approvals import NOT_APPROVED
from paddock_runners.local_agent.memory import KEY
from paddock_runners.toolkit.tokens import tokens_of_all
from paddock_sdk import encoding
from paddock_sdk.protocol.results import RunCompleted, RunFailed, ToolCallCompleted
from paddock_sdk.testing import PretendHost, RunResults, pretend_host

pytestmark = pytest.mark.anyio


def calls_of(asked: list[Any], **more: Any) -> dict[str, Any]:
    return {"models.stream": demo(asked), "tools.call": adding, **more}


def answers(results: RunResults) -> list[Any]:
    return [one.data.error or one.data.result for one in results if isinstance(one, ToolCallCompleted)]


async def test_it_remembers_what_was_said_by_reading_the_history() -> None:
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        await host.run("my name is Ann", resources=resources())
        assert (await host.run("what is my name?", resources=resources())).text == "Your name is Ann."


async def test_a_run_that_has_said_its_last_word_leaves_nothing_to_be_collected() -> None:
    left: list[str] = []
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(finalizer=lambda generator: left.append(repr(generator)))
    try:
        async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
            assert (await host.run("hello", resources=resources())).text
            gc.collect()
    finally:
        sys.set_asyncgen_hooks(*hooks)
    assert left == []


async def test_tools_of_one_answer_work_at_the_same_time_and_answer_in_order() -> None:
    both = asyncio.Barrier(2)

    async def meeting(params: Any) -> dict[str, Any]:
        await asyncio.wait_for(both.wait(), 30)  # passes only if the other call is under way too
        return {"result": params.parameters["a"]}

    async with pretend_host(LocalAgent(), calls=calls_of([], **{"tools.call": meeting})) as host:
        results = await host.run('call add {"a": 1, "b": 0}\ncall add {"a": 2, "b": 0}', resources=resources(ADD))
    assert answers(results) == [1, 2]
    assert results.text == "add: 1\nadd: 2"
    assert isinstance(results.terminal, RunCompleted)
    assert results.terminal.data.usage is not None


async def test_wrong_arguments_unknown_tools_and_failures_are_told_to_the_model() -> None:
    def failing(_: Any) -> dict[str, Any]:
        return {"result": {"error": "wrong arguments for add: b: Field required"}, "is_error": True}

    def stubborn(params: Any) -> list[Any]:
        if params.messages[-1].role == "tool":
            return [{"chunk": {"content": "; ".join(m.text for m in params.messages if m.role == "tool")}}]
        broken = [("add", "{broken"), ("nothing", "{}"), ("add", "{}")]
        calls = [{"id": "c", "function": {"name": name, "arguments": text}} for name, text in broken]
        return [{"chunk": {"content": "", "tool_calls": calls}}]

    calls = {"models.stream": stubborn, "tools.call": failing}
    async with pretend_host(LocalAgent(), calls=calls) as host:
        results = await host.run("go", resources=resources(ADD))
    first, second, third = answers(results)
    assert "no JSON object" in first
    assert second.startswith("there is no tool 'nothing'; there are: add")
    assert third == "wrong arguments for add: b: Field required"
    assert "Field required" in results.text
    assert len({one.data.tool_call_id for one in results if isinstance(one, ToolCallCompleted)}) == 3


async def test_it_says_so_when_it_has_had_enough_rounds() -> None:
    def restless(_: Any) -> list[Any]:
        call = {"id": "c", "function": {"name": "add", "arguments": '{"a": 1, "b": 1}'}}
        return [{"chunk": {"content": "", "tool_calls": [call]}}]

    async with pretend_host(LocalAgent(), calls={"models.stream": restless, "tools.call": adding}) as host:
        results = await host.run("go", resources=resources(ADD), config={"max_iterations": 3})
        chinese = await host.run("开始吧", resources=resources(ADD), config={"max_iterations": 3})
    assert "3 rounds of tool calls were not enough" in results.text
    assert len(answers(results)) == 3
    assert "3 轮工具调用还不够" in chinese.text


async def test_an_answer_that_the_model_could_not_end_is_said_to_be_cut() -> None:
    cut = {"content": "Once upon", "is_final": True, "provider_specific_fields": {"finish_reason": "length"}}
    async with pretend_host(LocalAgent(), calls={"models.stream": lambda _: [{"chunk": cut}]}) as host:
        english = await host.run("tell me a story", resources=resources())
        chinese = await host.run("讲个故事", resources=resources())
    assert english.text == "Once upon\n\n(The answer was cut: the model reached its output limit.)"
    assert chinese.text == "Once upon\n\n（回答被截断：已达到模型的输出上限。）"


async def test_results_of_tools_are_cut_to_what_the_window_holds_the_oldest_first() -> None:
    asked: list[Any] = []

    def stream(params: Any) -> list[Any]:
        asked.append(params)
        call = {"id": f"c{len(asked)}", "function": {"name": "read", "arguments": "{}"}}
        chunk = {"content": "", "tool_calls": [call]} if len(asked) < 5 else {"content": "done"}
        return [{"chunk": {**chunk, "is_final": True}}]

    read = {**ADD, "tool_name": "read", "parameters": None}
    calls = {"models.stream": stream, "tools.call": lambda _: {"result": "员工手册" * 4000}}
    async with pretend_host(LocalAgent(), calls=calls) as host:
        results = await host.run("read it all", resources=resources(read, window=20_000))
    assert results.text == "done"
    assert all(tokens_of_all(shown(params)) < 15_000 for params in asked)
    *older, last = (len(text) for text in texts(shown(asked[-1])) if "员工" in text)
    assert len(older) == 3
    assert max(older) < 600
    assert last > 10_000


async def test_a_model_that_is_not_offered_is_named_with_the_cure() -> None:
    async with pretend_host(LocalAgent()) as host:
        results = await host.run("hi", resources=resources(), config={"model": "gpt-5.4"})
    assert isinstance(results.terminal, RunFailed)
    assert results.terminal.data.code == "model.not_offered"
    assert "'gpt-5.4' is not offered" in results.terminal.data.message
    assert "OPENAI_API_KEY" in results.terminal.data.message


async def test_a_setting_that_cannot_be_is_named() -> None:
    async with pretend_host(LocalAgent()) as host:
        results = await host.run("hi", resources=resources(), config={"max_iterations": 0})
    assert isinstance(results.terminal, RunFailed)
    assert "config.max_iterations must be a whole number from 1 to 100" in results.terminal.data.message


# --- memory


async def long_talk(host: PretendHost, turns: int, asked: list[Any], window: int) -> list[list[dict[str, Any]]]:
    """The prompts of so many turns, without those that asked for a summary."""
    await host.run("my name is Ann", resources=resources(window=window))
    for number in range(turns):
        await host.run(f"message {number} " + "word " * 20, resources=resources(window=window))
    prompts = [shown(params) for params in asked]
    return [one for one in prompts if not one[-1]["content"].startswith("Summarize our conversation")]


async def test_the_beginning_of_the_prompt_stays_the_same_until_there_is_a_new_checkpoint() -> None:
    asked: list[Any] = []
    async with pretend_host(LocalAgent(), calls=calls_of(asked)) as host:
        prompts = await long_talk(host, 40, asked, window=2048)
        generations = host.state["conversation"][KEY]["generation"]
    changed = [later[: len(earlier)] != earlier for earlier, later in pairwise(prompts)]
    assert generations > 1
    assert changed.count(True) == generations


async def test_three_hundred_turns_cost_the_same_and_nothing_said_at_first_is_forgotten() -> None:
    asked: list[Any] = []
    async with pretend_host(LocalAgent(), calls=calls_of(asked)) as host:
        prompts = await long_talk(host, 300, asked, window=2048)
        last = await host.run("what is my name?", resources=resources(window=2048))
        pages = [call for call in host.calls if call.method == "history.page"]
    assert last.text == "Your name is Ann."
    sizes = [sum(map(len, texts(prompt))) for prompt in prompts]
    assert max(sizes[250:]) < 1.3 * max(sizes[40:90])
    assert len(pages) <= 2 * 302


@pytest.mark.parametrize(
    "found",
    [
        "nonsense",
        {"version": 9, "summary": "my name is Eve.", "covers_until": "1", "covers_seq": 1},
        {"version": 1, "summary": "my name is Eve.", "covers_until": "1", "covers_seq": 10_000},
        {"version": 1, "summary": "my name is Eve.", "covers_until": 7, "covers_seq": 1},
    ],
)
async def test_a_checkpoint_that_does_not_fit_is_ignored(found: object) -> None:
    context = {
        "conversation_id": "conversation",
        "event_seq": 3,
        "has_history_before": True,
        "inline_policy": {"mode": "current_event"},
        "available_apis": {"history_page": True, "state": True},
    }
    history = [("user", "my name is Ann"), ("assistant", "hello")]
    state = {"conversation": {KEY: found}}
    async with pretend_host(LocalAgent(), calls=calls_of([]), history=history, state=state) as host:
        results = await host.run("what is my name?", resources=resources(), context=context)
    assert results.text == "Your name is Ann."


async def test_what_it_is_asked_to_remember_is_known_in_other_conversations() -> None:
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        await host.run('remember "favourite tea" "oolong"', resources=resources())
        kept = dict(host.state["actor"])
    async with pretend_host(LocalAgent(), calls=calls_of([]), state={"actor": kept}) as other:
        results = await other.run("what is my favourite tea?", resources=resources())
    assert results.text == "Your favourite tea is oolong."


# --- knowledge, pictures, cards


async def test_passages_are_looked_up_and_their_sources_shown() -> None:
    def found(_: Any) -> dict[str, Any]:
        text = [{"type": "text", "text": "Fifteen days a year."}]
        metadata = {"document": "handbook.md", "heading": "Leave"}
        return {"results": [{"id": "1", "content": text, "metadata": metadata, "distance": 0.1}]}

    asked: list[Any] = []
    bases = [{"kb_id": "hr", "operations": ["list", "retrieve"]}]
    async with pretend_host(LocalAgent(), calls=calls_of(asked, **{"knowledge.retrieve": found})) as host:
        results = await host.run("how much leave?", resources=resources(knowledge_bases=bases))
    assert "[1] handbook.md, Leave: Fifteen days a year." in shown(asked[0])[-2]["content"]
    hints = next(one.data.ui_hints for one in results if one.type == "message.completed")
    assert hints == {"kind": "list", "title": "Sources", "items": ["handbook.md, Leave"]}


async def test_a_picture_reaches_the_model_and_one_that_is_gone_is_said_to_be() -> None:
    asked: list[Any] = []
    refs = [{"artifact_id": name, "mime_type": "image/png", "name": name} for name in ("there", "gone")]
    given = {"text": "look", "attachments": refs}
    async with pretend_host(LocalAgent(), calls=calls_of(asked), artifacts={"there": b"\x89PNG1"}) as host:
        await host.run("look", resources=resources(), input=given)
    words, picture, gone = shown(asked[0])[-1]["content"]
    assert words["text"] == "look"
    assert picture["image_base64"] == "data:image/png;base64,iVBORzE="
    assert gone["text"] == "(the picture gone cannot be shown: there is no such artifact)"


async def test_a_card_the_model_wants_shown_comes_with_the_answer() -> None:
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        results = await host.run('call show {"hints": [{"kind": "summary", "text": "hi"}]}', resources=resources())
    hints = next(one.data.ui_hints for one in results if one.type == "message.completed")
    assert hints == [{"kind": "summary", "text": "hi"}]


# --- people


async def test_input_that_arrives_meanwhile_is_answered_in_the_same_run() -> None:
    waiting = [{"claimed_run_id": "r", "runner_id": "x", "event": {"event_id": "e", "event_type": "message.received",
                "source": "api"}, "input": {"text": "and my name is Bo"}}]  # fmt: skip

    def pull(_: Any) -> dict[str, Any]:
        taken, waiting[:] = list(waiting), []
        return {"items": taken}

    async def slow(params: Any) -> dict[str, Any]:
        host.send(encoding.notification("steering_available", {"run_id": params.run_id, "waiting": 1}))
        return {"result": params.parameters["a"]}

    calls = calls_of([], **{"steering.pull": pull, "tools.call": slow})
    async with pretend_host(LocalAgent(), calls=calls) as host:
        results = await host.run('call add {"a": 1, "b": 1}', resources=resources(ADD))
    assert results.text.splitlines()[-1] == "I will remember that your name is Bo."


async def test_files_that_arrive_meanwhile_are_seen_too() -> None:
    refs = [{"artifact_id": "cat", "mime_type": "image/png", "name": "cat.png"}]
    waiting = [{"claimed_run_id": "r", "runner_id": "x", "event": {"event_id": "e", "event_type": "message.received",
                "source": "api"}, "input": {"attachments": refs}}]  # fmt: skip
    asked: list[Any] = []

    def pull(_: Any) -> dict[str, Any]:
        taken, waiting[:] = list(waiting), []
        return {"items": taken}

    async def slow(params: Any) -> dict[str, Any]:
        host.send(encoding.notification("steering_available", {"run_id": params.run_id, "waiting": 1}))
        return {"result": params.parameters["a"]}

    calls = calls_of(asked, **{"steering.pull": pull, "tools.call": slow})
    async with pretend_host(LocalAgent(), calls=calls, artifacts={"cat": b"\x89PNG1"}) as host:
        await host.run('call add {"a": 1, "b": 1}', resources=resources(ADD))
    (picture,) = shown(asked[-1])[-1]["content"]
    assert picture["image_base64"] == "data:image/png;base64,iVBORzE="


@pytest.mark.parametrize(("word", "made"), [("yes", True), ("sure, go ahead", True), ("no", False)])
async def test_a_call_that_needs_approval_waits_for_a_word_and_counts_once(word: str, made: bool) -> None:
    config = {"approve": ["add"]}
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        first = await host.run('call add {"a": 2, "b": 3}', resources=resources(ADD), config=config)
        assert isinstance(first.terminal, RunCompleted)
        [question] = first.terminal.data.interrupts or []
        assert (question["reason"], question["tool_call_id"]) == ("tool_call", "call_1")
        assert first.terminal.data.pending_tool_call_ids == ["call_1"]
        assert not [call for call in host.calls if call.method == "tools.call"]
        second = await host.run(word, resources=resources(ADD), config=config)
        await host.run("yes", resources=resources(ADD), config=config)
        assert len([call for call in host.calls if call.method == "tools.call"]) == int(made)
    assert second.text == ("add: 5" if made else f"add failed: {answers(second)[0]}")


@pytest.mark.parametrize("word", ["what would that do?", "yes but only 3", "ja", "可以，但只要 3"])
@pytest.mark.parametrize(("then", "made"), [("yes please", [5]), ("no, take 3", [])])
async def test_what_is_neither_yes_nor_no_calls_nothing_and_is_asked_again(
    word: str, then: str, made: list[int]
) -> None:
    config, asked = {"approve": ["add"]}, list[Any]()
    async with pretend_host(LocalAgent(), calls=calls_of(asked)) as host:
        first = await host.run('call add {"a": 2, "b": 3}', resources=resources(ADD), config=config)
        again = await host.run(word, resources=resources(ADD), config=config)
        assert (answers(again), len(asked)) == ([], 1)
        assert isinstance(first.terminal, RunCompleted)
        assert isinstance(again.terminal, RunCompleted)
        assert again.terminal.data.interrupts == first.terminal.data.interrupts
        assert again.terminal.data.pending_tool_call_ids == ["call_1"]
        assert '- add {"a": 2, "b": 3}' in again.text
        last = await host.run(then, resources=resources(ADD), config=config)
        assert [call.method for call in host.calls].count("tools.call") == len(made)
    assert answers(last) == (made or [NOT_APPROVED])
    assert word in texts(shown(asked[1]))


async def test_an_event_that_is_nobodys_message_is_no_yes_and_gets_its_answer() -> None:
    config, event = {"approve": ["add"]}, {"event_id": "e", "event_type": "schedule.triggered", "source": "scheduler"}
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        await host.run('call add {"a": 2, "b": 3}', resources=resources(ADD), config=config)
        due = await host.run("yes", resources=resources(ADD), config=config, event=event)
        assert answers(due) == [NOT_APPROVED]
        assert not [call for call in host.calls if call.method == "tools.call"]
    assert "I did nothing yet" not in due.text


@pytest.mark.parametrize(
    ("text", "locale", "chinese"),
    [
        ("请算：\n{call}", None, True),
        ("{call}", None, False),
        ("{call}", "zh-Hans", True),
        ("请算：\n{call}", "en-GB", False),
    ],
)
async def test_it_asks_in_the_language_of_its_user(text: str, locale: str | None, chinese: bool) -> None:
    config = {"approve": ["add"]}
    said = text.format(call='call add {"a": 2, "b": 3}')
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        runtime = {"trace_id": "t", "locale": locale}
        asked = await host.run(said, resources=resources(ADD), config=config, runtime=runtime)
        assert ("以下操作需要你的批准" in asked.text) is chinese
        last = asked.text.split("\n\n")[-1]  # a line right after a list would be drawn as part of it
        assert last == ("请回答“同意”或“拒绝”。" if chinese else "Answer yes or no.")
        assert ("I need your approval" in asked.text) is not chinese
        hints = next(one.data.ui_hints for one in asked if one.type == "message.completed")
        yes = hints["items"][0]["text"]
        assert answers(await host.run(yes, resources=resources(ADD), config=config)) == [5]


async def test_an_interrupt_is_answered_by_its_own_resume_entry() -> None:
    config = {"approve": ["*"]}
    resume = [{"interruptId": "call_1", "status": "resolved", "payload": {"approved": True}}]
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        await host.run('call add {"a": 2, "b": 3}', resources=resources(ADD), config=config)
        adapter = {"extra": {"params": {"resume": resume}}}
        results = await host.run("", resources=resources(ADD), config=config, adapter=adapter)
    assert answers(results) == [5]


async def test_the_clients_own_tools_are_left_for_the_client() -> None:
    mine = {**ADD, "tool_name": "pick_colour", "tool_type": "frontend", "operations": []}
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        results = await host.run('call pick_colour {"a": 1, "b": 1}', resources=resources(mine))
    assert isinstance(results.terminal, RunCompleted)
    assert results.terminal.data.pending_tool_call_ids == ["call_1"]


async def test_a_cancel_stops_it_in_the_middle_of_a_tool() -> None:
    begun = asyncio.Event()

    async def for_ever(_: Any) -> dict[str, Any]:
        begun.set()
        await asyncio.Event().wait()
        return {}

    async with pretend_host(LocalAgent(), calls=calls_of([], **{"tools.call": for_ever})) as host:
        run = await host.start('call add {"a": 1, "b": 1}', resources=resources(ADD))
        await asyncio.wait_for(begun.wait(), 30)
        said = await run.cancel()
    assert said.types == ["tool.call.started"]


def titles(results: RunResults) -> list[str]:
    asked = [one.data for one in results if one.type == "action.requested"]
    return [one.payload["title"] for one in asked if one.action == "session.title"]


async def test_it_suggests_the_first_words_as_a_title_once() -> None:
    long = "please tell me everything there is to know about\nthe mountains of the north and the sea"
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        first = await host.run(long, resources=resources())
        assert titles(first) == ["please tell me everything there is to know about the…"]
        assert first.types[-2:] == ["action.requested", "run.completed"]
        assert titles(await host.run("go on", resources=resources())) == []


async def test_the_model_names_a_conversation_where_that_is_set_and_its_failure_costs_only_the_name() -> None:
    def naming(params: Any) -> list[Any]:
        asks = "title" in params.messages[0].text
        return [{"chunk": {"content": '"Sums"\nof small numbers' if asks else "5"}}]

    for answering, named in ((naming, "Sums"), (lambda _: [{"chunk": {"content": " "}}], "2 and 3?")):
        async with pretend_host(LocalAgent(), calls={"models.stream": answering}) as host:
            results = await host.run("2 and 3?", resources=resources(), config={"title": "model"})
            assert titles(results) == [named]
    async with pretend_host(LocalAgent(), calls=calls_of([])) as host:
        assert titles(await host.run("hi", resources=resources(), config={"title": "off"})) == []
