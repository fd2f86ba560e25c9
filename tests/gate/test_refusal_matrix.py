"""Every host call under every condition gets its one right code, leaves one audit row, and no refusal has an effect.

Asked directly and by raw frames without the SDK, on every store.
"""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from contracts.conftest import PLUGS, open_plug
from gate.house import GateHouse, gate_house
from gate.matrix import CONDITIONS, ONE_BODY, PAGE, RANDOM_ID, VALID, expected, written
from paddock.rules.access.gate import LOOKED_AT
from paddock_sdk.protocol.host_calls import HOST_CALLS

pytestmark = pytest.mark.anyio


@pytest.fixture(params=[f"{way}-{plug}" for plug in PLUGS for way in ("direct", "frames")])
async def gate(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[GateHouse]:
    way, _, plug = request.param.partition("-")
    with open_plug(plug, tmp_path) as store:
        async with gate_house(store, way, tmp_path) as house:
            yield house
        await store.close()


@pytest.mark.spec("gate/matrix")
def test_no_call_is_forgotten() -> None:
    assert set(LOOKED_AT) == set(VALID) == set(HOST_CALLS)
    assert set(RANDOM_ID) <= set(HOST_CALLS)


@pytest.mark.spec("gate/matrix")
def test_the_page_shows_this_very_matrix() -> None:
    assert PAGE.read_text() == written(PAGE.read_text()), "run: make conformance"


@pytest.mark.spec("gate/matrix")
@pytest.mark.parametrize("action", HOST_CALLS)
async def test_every_condition_has_its_code_one_audit_row_and_no_effect(gate: GateHouse, action: str) -> None:
    wrong: list[str] = []
    bodies: set[str] = set()
    for condition in CONDITIONS:
        if (code := expected(action, condition)) is not None:
            said, message = await refused(gate, action, condition, wrong)
            if said != code:
                wrong.append(f"{condition}: {said} ({message}) and not {code}")
            if condition in ONE_BODY:
                bodies.add(message)
    assert not wrong, "\n".join(wrong)
    assert len(bodies) == 1, "unknown, ended and foreign runs can be told apart"


async def refused(gate: GateHouse, action: str, condition: str, wrong: list[str]) -> tuple[str, str]:
    at = gate.situation(action, *await gate.a_run())
    await gate.bring_about(condition, action, at)
    rows, before = await gate.audited(), await gate.effects()
    code, message = await gate.ask(action, at)
    if (more := await gate.audited() - rows) != 1:
        wrong.append(f"{condition}: {more} audit rows")
    newest = (await gate.house.store.audit(limit=1))[0]
    if (newest.action, newest.result) != (action, code):
        wrong.append(f"{condition}: the audit says {newest.action} {newest.result}")
    if await gate.effects() != before:
        wrong.append(f"{condition}: a refusal had an effect")
    return code, message


@pytest.mark.parametrize("action", HOST_CALLS)
async def test_the_same_call_without_any_condition_is_allowed_and_audited_once(gate: GateHouse, action: str) -> None:
    live, at_runner = await gate.a_run()
    at = gate.situation(action, live, at_runner)
    rows = await gate.audited()
    assert await gate.ask(action, at) == ("ok", "")
    assert await gate.audited() == rows + 1
    row = (await gate.house.store.audit(limit=1))[0]
    seen = (row.action, row.result, row.run_id, row.runner_id, row.workspace_id, row.session_id, row.actor)
    scope = live.grant.scope
    assert seen == (
        action,
        "allowed",
        live.run_id,
        live.grant.runner_id,
        scope.workspace_id,
        scope.session_id,
        "plugin:test/one",
    )
    looked = LOOKED_AT[action]
    assert row.resource == (at.params.get(looked.resource) or "")
    assert row.scope == (VALID[action].get(looked.scope) or scope.session_id)
