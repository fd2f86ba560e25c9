"""Approvals in every store: written once, their steps taken by whoever comes first."""

import asyncio

import pytest

from contracts.builders import a_decision
from paddock.ports import Store
from paddock.rules.access.approvals import DECIDED, DONE, Approval
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.calls import ApprovalRow, ApprovalStepRow
from paddock.rules.values import replace

pytestmark = pytest.mark.anyio

ASKED = ApprovalRow("ap_1", "w", "ann", "s", "run-1", "one", "message.edit", b"{}", b'{"text":"x"}', 10.0, 20.0)


def step(kind: str, result: str, token: str = "t") -> ApprovalStepRow:
    return ApprovalStepRow("ap_1", kind, result, "user:ann", 11.0, token, "")


async def test_an_approval_is_read_back_with_its_steps(store: Store) -> None:
    await store.write([ASKED])
    assert await store.approval("ap_1") == Approval(ASKED)
    await store.write([step(DECIDED, "granted")])
    await store.write([step(DONE, "done")])
    assert await store.approval("ap_1") == Approval(ASKED, step(DECIDED, "granted"), step(DONE, "done"))
    assert await store.approval("ap_2") is None


async def test_what_was_asked_and_what_was_decided_is_written_once(store: Store) -> None:
    await store.write([ASKED, replace(ASKED, action="message.recall")])
    await store.write([step(DECIDED, "denied", "first"), a_decision("denied")])
    await store.write([replace(ASKED, payload=b"{}")])
    with pytest.raises(HostError) as refused:  # with what was to be said about it
        await store.write([step(DECIDED, "granted", "second"), a_decision("granted")])
    assert refused.value.code is ErrorCode.CONFLICT
    assert await store.approval("ap_1") == Approval(ASKED, step(DECIDED, "denied", "first"))
    assert [row.reason for row in await store.audit()] == ["denied"]


async def test_of_steps_that_are_written_at_once_one_counts_and_only_it_is_on_the_audit_trail(store: Store) -> None:
    await store.write([ASKED])
    tokens = ("a", "b", "c", "d")
    written = await asyncio.gather(
        *(store.write([step(DECIDED, "granted", token), a_decision(token)]) for token in tokens),
        return_exceptions=True,
    )
    approval = await store.approval("ap_1")
    assert approval is not None
    assert approval.decided is not None
    won = [token for token, error in zip(tokens, written, strict=True) if error is None]
    assert won == [approval.decided.token] == [row.reason for row in await store.audit()]


async def test_a_user_sees_their_own_newest_first_and_no_more_than_asked(store: Store) -> None:
    await store.write([replace(ASKED, approval_id=f"ap_{n}", created_at=float(n)) for n in range(5)])
    await store.write(
        [replace(ASKED, approval_id="x", user_id="bob"), replace(ASKED, approval_id="y", workspace_id="v")]
    )
    assert [one.asked.approval_id for one in await store.approvals("w", "ann", limit=3)] == ["ap_4", "ap_3", "ap_2"]
    assert [one.asked.approval_id for one in await store.approvals("w", "bob")] == ["x"]


async def test_those_of_a_run_are_counted(store: Store) -> None:
    await store.write([replace(ASKED, approval_id=f"ap_{n}") for n in range(3)])
    assert [await store.approval_count(run) for run in ("run-1", "run-2")] == [3, 0]


async def test_what_was_granted_and_has_no_end_is_found(store: Store) -> None:
    await store.write([ASKED])
    assert await store.unfinished_approvals() == []
    await store.write([step(DECIDED, "granted")])
    assert [one.asked for one in await store.unfinished_approvals()] == [ASKED]
    await store.write([step(DONE, "failed")])
    assert await store.unfinished_approvals() == []
