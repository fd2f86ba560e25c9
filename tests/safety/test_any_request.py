"""Whatever is sent to any operation, the host answers as its description says, and other workspaces notice nothing."""

import pytest

from safety.fuzzing import Found, fuzz
from safety.tenants import Tenant
from walk.hosts import HostProcess

Two = tuple[Tenant, Tenant]


def of_both(tenants: Two) -> dict[str, list[str]]:
    return {name: [one.ids[name] for one in tenants] for name in tenants[0].ids}


def assert_nothing_found(found: Found) -> None:
    shown = "\n\n".join(f"## {where}\n{what}" for where, what in found.failures.items())
    assert not found.failures, f"{len(found.failures)} in {found.cases} cases\n{shown}"


@pytest.mark.spec("http/any-request")
@pytest.mark.timeout(300)
@pytest.mark.parametrize("half", [0, 1])  # of the paths, so that two cores share the work
def test_any_request_gets_a_described_answer_and_touches_no_other_workspace(
    host: HostProcess, tenants: Two, half: int
) -> None:
    caller, other = tenants
    before = other.seen()
    found = fuzz(host.url, key=caller.key, ids=of_both(tenants), cases=33, half=half)
    assert_nothing_found(found)
    assert found.cases >= 2_500  # of two halves
    assert {200, 201, 202, 404, 422} <= found.statuses.keys()  # it came past the first check of the doors
    assert other.seen() == before


@pytest.mark.spec("http/any-request")
@pytest.mark.timeout(300)
def test_calls_that_use_what_others_answered_get_described_answers_too(host: HostProcess, tenants: Two) -> None:
    caller, other = tenants
    before = other.seen()
    found = fuzz(host.url, key=caller.key, ids=of_both(tenants), cases=20, phases=["stateful"])
    assert_nothing_found(found)
    assert found.cases >= 40  # chains differ in length
    assert other.seen() == before


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_thousand_requests_get_described_answers(host: HostProcess, tenants: Two, seed: int) -> None:
    caller, other = tenants
    before = other.seen()
    found = fuzz(host.url, key=caller.key, ids=of_both(tenants), cases=340, seed=seed)
    assert_nothing_found(found)
    assert found.cases >= 20_000
    assert other.seen() == before
