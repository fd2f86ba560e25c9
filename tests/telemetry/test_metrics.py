"""Numbers: what is counted, what never becomes a label, who may read them."""

import pytest

from grants import a_grant
from http_api.doors import open_doors
from paddock.telemetry.metrics import Metrics, Now


def numbers(page: str) -> dict[str, float]:
    lines = (line for line in page.splitlines() if line and not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_runs_are_counted_by_their_end_and_timed_from_their_dispatch() -> None:
    metrics = Metrics("1")
    metrics.run_started(a_grant(run_id="r1"), 100.0)
    metrics.run_ended("r1", "completed", 100.4)
    metrics.run_ended("never-started", "failed", 101.0)
    told = numbers(metrics.page().decode())
    assert told['paddock_runs_total{status="completed"}'] == told['paddock_runs_total{status="failed"}'] == 1
    assert told["paddock_run_seconds_count"] == 1
    assert told['paddock_run_seconds_bucket{le="0.5"}'] == 1
    assert told['paddock_run_seconds_bucket{le="0.25"}'] == 0


def test_what_runners_make_up_never_becomes_a_label() -> None:
    metrics = Metrics("1")
    metrics.host_call("r1", "secrets.steal-me", "a-tool-name", "strange", 1.0, 2.0)
    metrics.host_call("r1", "tools.call", "a-tool-name", "allowed", 1.0, 1.002)
    page = metrics.page().decode()
    assert "steal-me" not in page
    assert "a-tool-name" not in page
    assert numbers(page)['paddock_host_calls_total{action="unknown",result="other"}'] == 1
    assert numbers(page)['paddock_host_calls_total{action="tools.call",result="allowed"}'] == 1


def test_what_is_true_now_is_asked_for_when_it_is_told() -> None:
    metrics, live = Metrics("1.2"), [3]
    now = Now(
        runs=lambda _workspace: live[0],
        sessions=lambda: 7,
        runners=lambda: {"ready": 2},
        store_healthy=lambda: True,
        capacity=lambda: 64,
        waiting=lambda _workspace: 5,
        turned_away=lambda: 9,
        hosts=lambda: 3,
        bus_healthy=lambda: False,
        came=lambda: {"bus": 12, "log": 1},
        stalls=lambda: 2,
        worst_stall=lambda: 0.25,
    )
    live[0] = 4
    told = numbers(metrics.page(now=now).decode())
    assert (told["paddock_runs_in_flight"], told["paddock_sessions_loaded"]) == (4, 7)
    assert (told['paddock_runners{state="ready"}'], told["paddock_store_healthy"]) == (2, 1)
    assert (told["paddock_runs_capacity"], told["paddock_runs_waiting"], told["paddock_turned_away_total"]) == (
        64,
        5,
        9,
    )
    assert (told["paddock_hosts"], told["paddock_bus_healthy"]) == (3, 0)
    assert (told['paddock_followed_total{way="bus"}'], told['paddock_followed_total{way="log"}']) == (12, 1)
    assert told['paddock_build{version="1.2"}'] == 1


@pytest.mark.anyio
async def test_only_administrators_read_them() -> None:
    async with open_doors() as doors:
        headers = await doors.key_for("ann")
        assert (await doors.client.get("/metrics", headers=headers)).status_code == 403
        assert (await doors.client.get("/metrics")).status_code == 401
        admin = await doors.key_for("root", role="admin")
        answer = await doors.client.get("/metrics", headers=admin)
        assert (answer.status_code, answer.headers["content-type"][:10]) == (200, "text/plain")
