"""Whoever was removed acts no more, also not by a job that they left behind."""

import pytest

from host.scripted import ANN, BOB
from host.test_automations import NOON, Clock, a_house, a_job, finish
from paddock.host.people.principals import Principal, new_key
from paddock.rules.rows.rows import AuditRow

pytestmark = [pytest.mark.anyio, pytest.mark.spec("http/automations-removed")]


def decided(by: Principal) -> AuditRow:
    return AuditRow(NOON, by.workspace_id, "user:x", "api_keys.revoke", "", by.workspace_id, "allowed", "")


@pytest.mark.parametrize(
    ("kept", "tokens", "fires"), [(0, False, False), (1, False, True), (0, True, True), (None, False, True)]
)
async def test_jobs_of_a_user_whose_keys_are_all_revoked_do_not_fire(
    kept: int | None, tokens: bool, fires: bool
) -> None:
    """Where people may come by token too, a user without a key is still one; so is who never had one."""
    clock = Clock()
    async with a_house(clock=clock, tokens=tokens) as house:
        job = await a_job(house)
        for number in range(0 if kept is None else kept + 1):
            _, row = new_key(ANN.workspace_id, ANN.user_id, "user")
            await house.store.add_key(row)
            if number == 0:
                await house.store.revoke_key(row.key_id, clock.now, decided(ANN))
        await house.store.add_key(new_key(BOB.workspace_id, "somebody-else", "user")[1])
        clock.now = NOON
        await house.scheduler.run_due()
        if fires:
            await finish(await house.gateway.next())
        assert house.gateway.started.empty()
        [tick] = await house.store.ticks(job.row.job_id)
        assert (tick.result == "refused") == (not fires)
        if not fires:
            assert "revoked" in tick.reason
            again = await house.store.automation(job.row.job_id)
            assert again is not None
            assert again.enabled
            assert again.next_at == NOON + 3600
