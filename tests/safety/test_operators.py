"""Who runs the host is no role of a workspace: an administrator sees their own workspace, an operator the host."""

from pathlib import Path
from typing import Any

import pytest

from grants import a_grant
from http_api.doors import LOCAL_TOKEN, Doors, open_doors
from paddock.host.people.principals import Operators, Principal
from paddock.ports import ApiKeyRow
from paddock.rules.rows.rows import AuditRow
from paddock.settings import SettingsError, load
from paddock.storage.sqlite import SqliteStore
from paddock.telemetry.metrics import MAX_WORKSPACES, Metrics
from telemetry.test_metrics import numbers

pytestmark = pytest.mark.anyio

LOCAL = {"Authorization": f"Bearer {LOCAL_TOKEN}"}


def busy() -> Metrics:
    """Three runs of acme, one of other, each with a call."""
    metrics = Metrics("1")
    for number, workspace in enumerate(("acme", "acme", "acme", "other")):
        metrics.run_started(a_grant(run_id=f"r{number}", workspace_id=workspace), 1.0)
        metrics.host_call(f"r{number}", "history.page", "", "allowed", 1.0, 1.5)
        metrics.run_ended(f"r{number}", "completed", 2.0)
    return metrics


async def seen(doors: Doors, path: str, headers: dict[str, str]) -> Any:
    answer = await doors.client.get(path, headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.text if path == "/metrics" else answer.json()


@pytest.mark.spec("http/metrics")
async def test_an_administrator_reads_the_numbers_of_their_workspace_and_an_operator_those_of_the_host() -> None:
    async with open_doors(metrics=busy(), operators=["ops@acme"]) as doors:
        told: dict[str, dict[str, float]] = {}
        for user, workspace in (("ann", "acme"), ("eve", "other"), ("new", "third"), ("ops", "acme")):
            headers = await doors.key_for(user, workspace, "admin")
            told[user] = numbers(await seen(doors, "/metrics", headers))
        told["local"] = numbers(await seen(doors, "/metrics", LOCAL))
    runs, calls = 'paddock_runs_total{status="completed"}', 'paddock_host_call_seconds_count{action="history.page"}'
    assert {who: (page.get(runs, 0), page.get(calls, 0)) for who, page in told.items()} == {
        "ann": (3, 3),
        "eve": (1, 1),
        "new": (0, 0),
        "ops": (4, 4),
        "local": (4, 4),
    }


def test_numbers_of_workspaces_that_were_quiet_for_long_stay_in_those_of_the_host() -> None:
    metrics = Metrics("1")
    for number in range(MAX_WORKSPACES + 10):
        metrics.run_started(a_grant(run_id=f"r{number}", workspace_id=f"w{number}"), 1.0)
        metrics.run_ended(f"r{number}", "completed", 2.0)
    assert numbers(metrics.page().decode())["paddock_run_seconds_count"] == MAX_WORKSPACES + 10
    assert numbers(metrics.page("w0").decode())["paddock_run_seconds_count"] == 0
    assert numbers(metrics.page("w500").decode())["paddock_run_seconds_count"] == 1


@pytest.mark.spec("http/audit")
async def test_what_hosts_decide_is_on_record_for_operators_only() -> None:
    async with open_doors(operators=["key:pdk_ops_default_admin"]) as doors:
        await doors.house.store.write([AuditRow(1.0, "", "host", "hosts.gone", "8", "hosts", "decided", "silent")])
        admin, ops = [await doors.key_for(user, "default", "admin") for user in ("ann", "ops")]
        listed = [await seen(doors, "/api/v1/audit?action=hosts.*", who) for who in (admin, ops, LOCAL)]
        assert [len(page["decisions"]) for page in listed] == [0, 1, 1]


@pytest.mark.spec("http/operators")
async def test_nobody_makes_themselves_an_operator_by_a_key_for_one() -> None:
    async with open_doors(operators=["ops@acme"]) as doors:
        admin, ops = [await doors.key_for(user, "acme", "admin") for user in ("ann", "ops")]
        asked = {"user": "ops", "workspace": "acme", "role": "admin"}
        answers = [await doors.client.post("/api/v1/api-keys", json=asked, headers=who) for who in (admin, ops, LOCAL)]
        assert [answer.status_code for answer in answers] == [403, 201, 201]


@pytest.mark.spec("http/operators")
async def test_a_key_that_an_administrator_made_before_somebody_was_named_makes_nobody_an_operator(
    tmp_path: Path,
) -> None:
    made: dict[str, str] = {}
    async with open_doors(SqliteStore(tmp_path)) as doors:
        ann = await doors.key_for("ann", "acme", "admin")
        for maker, who in (("ann", ann), ("host", LOCAL)):
            answer = await doors.client.post("/api/v1/api-keys", json={"user": "ops", "workspace": "acme"}, headers=who)
            made[maker] = answer.json()["key"]
    async with open_doors(SqliteStore(tmp_path), operators=["ops@acme"]) as doors:
        asked = [
            await doors.client.get("/api/v1/take-over", headers={"Authorization": f"Bearer {made[maker]}"})
            for maker in ("ann", "host")
        ]
        assert [answer.status_code for answer in asked] == [403, 200]


@pytest.mark.spec("http/operators")
def test_operators_are_named_by_key_or_by_person_and_workspace() -> None:
    named = Operators.named(["key:k1", "ann@mail.example@acme"])
    keys = {name: ApiKeyRow(name, name.encode(), "w", "u", "user", 0.0) for name in ("k1", "k2")}
    everybody = [("acme", "ann@mail.example", None), ("other", "bob", "k1"), ("acme", "ann", None), ("k1", "key", "k2")]
    found = [
        named.recognise(Principal(workspace, user), keys.get(key or "")).operator for workspace, user, key in everybody
    ]
    assert found == [True, True, False, False]
    assert named.recognise(Principal("other", "bob"), keys["k1"]).role == "admin"


@pytest.mark.parametrize("name", ["ann", "key:", "@acme", "ann@", "key:a@b", "a b@c"])
def test_a_name_of_an_operator_that_names_nobody_is_refused(name: str) -> None:
    with pytest.raises(SettingsError, match="operators"):
        load({"operators": [name]}, environ={})
