"""Runners that break the rules of the wire: the guilty run ends, the neighbours and the host do not notice."""

import time
from pathlib import Path

import pytest
import structlog

from paddock.runners.processes import process, stderr_log
from patience import at_most
from runners.house import House, News, eventually, house, measured

pytestmark = pytest.mark.anyio


async def assert_neighbour_is_fine(here: House) -> None:
    news, _ = await here.run("echo fine")
    assert (await news.over()).text == ["fine"]


async def test_rubbish_lines_are_ignored(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("rubbish")
        await news.over()
        assert (news.text, news.losses) == (["still here"], [])


async def test_a_stray_print_never_breaks_the_wire(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("stray-print")
        assert (await news.over()).ended


@pytest.mark.parametrize("number", range(10))
async def test_a_broken_result_fails_its_run_at_once_and_nobody_else(tmp_path: Path, number: int) -> None:
    async with house(tmp_path) as here:
        bystander, handle = await here.run("hang")
        news, _ = await here.run(f"broken {number}")
        assert (await news.over()).code == "runner.protocol_error"
        await assert_neighbour_is_fine(here)
        assert await handle.cancel("done")
        assert bystander.losses == []


async def test_half_a_character_becomes_a_replacement_mark(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("surrogate")
        assert (await news.over()).text == ["half � a face"]


async def test_a_result_for_another_run_is_dropped_and_told(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        other, _ = await here.run("hang", run_id="the-other")
        await other.until(lambda news: bool(news.text))
        news, _ = await here.run("foreign not-a-run")
        await news.over()
        assert [run_id for _, run_id in here.foreign] == ["not-a-run"]
        assert here.foreign[0][0].plugin == "test/nasty"


async def test_nothing_is_heard_after_the_end(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("after-the-end", run_id="done")
        await news.over()
        await eventually(lambda: len(here.foreign) == 2)
        assert [result.type for result in news.results] == ["run.completed"]


async def test_repeated_results_are_dropped_and_gaps_accepted(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        with structlog.testing.capture_logs() as said:
            news, _ = await here.run("sequences [1, 2, 2, 1, 5, 4, 6]")
            await news.over()
        assert news.text == ["n1", "n2", "n5", "n6"]
        assert [line["action"] for line in said if line["action"].startswith("runner.seq")] == [
            "runner.sequence_repeated",
            "runner.sequence_repeated",
            "runner.sequence_gap",
            "runner.sequence_repeated",
            "runner.sequence_gap",
        ]


async def test_a_run_that_ignores_its_credit_fails_after_twice_the_window(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, _ = await here.run("flood 2000")
        assert (await news.over()).code == "runner.protocol_error"
        assert len(news.results) == 512
        await assert_neighbour_is_fine(here)


async def test_credit_given_back_lets_a_run_go_on(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, handle = await here.run("fast 5000")
        news.on_result = lambda _result: handle.give_credit(1)
        assert (await news.over()).ended
        assert len(news.results) == 5001


async def test_a_line_without_end_costs_the_connection_and_little_memory(tmp_path: Path) -> None:
    found = await measured("memory", tmp_path)
    assert found["codes"] == ["payload_too_large", "payload_too_large"]
    assert found["grown"] < 32 * 1024 * 1024
    assert found["neighbour"] == ["fine"]


async def test_a_flood_that_nobody_asked_for_ends_the_connection(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, handle = await here.run("flood 1000000")
        await news.until(lambda news: bool(news.results))
        handle.release()
        bystander = News()
        await here.gateway.start_run(
            "plugin:test/nasty/default", "r2", {"run_id": "r2", "input": {"text": "hang"}}, bystander
        )
        assert (await bystander.over()).code == "runner.protocol_error"
        await assert_neighbour_is_fine(here)


async def test_a_runner_that_does_not_read_is_given_up_before_memory_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "MAX_BACKLOG", 2 * 1024 * 1024)
    async with house(tmp_path) as here:
        news, handle = await here.run("block")
        await news.until(lambda news: bool(news.text))
        for _ in range(100_000):
            handle.give_credit(1)
        assert news.code == "runner.protocol_error"
        assert "does not read its input" in news.losses[0][1]


async def test_a_runner_that_stalls_its_input_is_given_up_after_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "STALL_SECONDS", 0.3)
    async with house(tmp_path) as here:
        news, _ = await here.run("block")
        await news.until(lambda news: bool(news.text))
        heard = [(await here.run("echo " + "x" * 1_000_000))[0] for _ in range(3)]
        for each in [news, *heard]:
            assert (await each.over()).code in ("runner.protocol_error", "runner.crashed")
        await assert_neighbour_is_fine(here)


async def test_standard_error_is_logged_up_to_its_cap_and_never_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stderr_log, "MAX_BYTES", 1_000_000)
    async with house(tmp_path) as here:
        with structlog.testing.capture_logs() as said:
            news, _ = await here.run("stderr 200")
            assert (await news.over()).ended
        lines = [line["line"] for line in said if line["action"] == "runner.stderr"]
        assert lines.count("(further output dropped)") == 1
        assert lines[-1] == "(further output dropped)"
        assert sum(map(len, lines)) <= 1_000_000


async def test_a_run_that_ignores_its_cancel_is_stopped_by_force_and_soon(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        news, handle = await here.run("block")
        await news.until(lambda news: bool(news.text))
        started = time.monotonic()
        await handle.force_stop()
        assert time.monotonic() - started < at_most(2)
        await assert_neighbour_is_fine(here)
        assert news.losses == [], "whoever stopped listening hears nothing more"


async def test_force_leaves_a_process_alone_that_serves_others_and_answers(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        neighbour, kept = await here.run("hang")
        news, handle = await here.run("hang")
        await news.until(lambda news: bool(news.text))
        [before] = await here.gateway.list_runners()
        await handle.force_stop()
        [after] = await here.gateway.list_runners()
        assert before.pid == after.pid
        assert neighbour.losses == []
        assert await kept.cancel("done")


async def test_force_ends_a_process_that_serves_others_but_does_not_answer(tmp_path: Path) -> None:
    async with house(tmp_path) as here:
        neighbour, _ = await here.run("hang")
        news, handle = await here.run("block")
        await news.until(lambda news: bool(news.text))
        await handle.force_stop()
        assert (await neighbour.over()).code == "runner.crashed"
