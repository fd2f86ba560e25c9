"""Of two things wrong with a call, the one that is checked first decides what the runner hears."""

import itertools
from pathlib import Path

import pytest

from gate.house import GateHouse, gate_house, granted
from gate.matrix import CONDITIONS, expected
from paddock_sdk.protocol.host_calls import HOST_CALLS
from stores import QuickStore

pytestmark = pytest.mark.anyio

ACTIONS = ("models.rerank", "tools.call", "history.page", "history.search", "state.set", "storage.set", "events.get")
"""Together they can be in every condition."""


def pairs(action: str) -> list[tuple[str, str]]:
    possible = [condition for condition in CONDITIONS if expected(action, condition)]
    return list(itertools.combinations(possible, 2))


def test_every_pair_of_conditions_is_tried_that_any_call_can_be_in() -> None:
    tried = {pair for action in ACTIONS for pair in pairs(action)}
    assert {pair for action in HOST_CALLS for pair in pairs(action)} <= tried


@pytest.mark.spec("gate/order")
@pytest.mark.parametrize("action", ACTIONS)
async def test_the_first_check_that_fails_answers(store: QuickStore, action: str, tmp_path: Path) -> None:
    wrong: list[str] = []
    async with gate_house(store, "direct", tmp_path) as gate:
        for first, second in pairs(action):
            said = await under_both(gate, action, first, second)
            if said != CONDITIONS[first]:
                wrong.append(f"{first} and {second}: {said}")
    assert not wrong, "\n".join(wrong)


async def under_both(gate: GateHouse, action: str, first: str, second: str) -> str:
    live, at_runner = await gate.a_run()
    at = gate.situation(action, live, at_runner)
    for condition in sorted((second, first), key="bad types".__eq__):  # wrong types last, so that they stay wrong
        await gate.bring_about(condition, action, at)
    return (await gate.ask(action, at))[0]


@pytest.mark.spec("gate/order")
async def test_everything_at_once_is_answered_in_the_order_of_the_checks(store: QuickStore, tmp_path: Path) -> None:
    """Take one thing after the other away, in order: each time the next one is heard."""
    async with gate_house(store, "direct", tmp_path) as gate:
        heard: list[str] = []
        left = ["past deadline", "permission absent", "resource not granted", "over cap", "over rate"]
        while left:
            live, at_runner = await gate.a_run()
            live.grant = granted(live.grant)
            at = gate.situation("tools.call", live, at_runner)
            for condition in left:
                await gate.bring_about(condition, "tools.call", at)
            heard.append((await gate.ask("tools.call", at))[0])
            left.pop(0)
    assert heard == ["deadline_exceeded", "unauthorized", "unauthorized", "payload_too_large", "rate_limited"]
