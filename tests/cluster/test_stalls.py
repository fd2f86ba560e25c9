"""Hosts that stall past their lease and wake up, a hundred times: none writes, and each refusal is on record."""

import os
import signal
from collections import Counter

import pytest

from cluster.conftest import Hosts
from cluster.test_hosts_go import TAKE_OVER_SECONDS, begun
from postgres_server import Server, database_of, shared_server
from walk.hosts import HostProcess, start_together, wait_until

pytestmark = pytest.mark.long

SLEEPERS, ROUNDS = 4, 25
PATIENT = 60.0


@pytest.mark.timeout(3000)
def test_a_hundred_stalls_leave_no_stale_write_and_a_refusal_on_record_each(new_host: Hosts, database: str) -> None:
    hosts = [new_host("awake"), *(new_host(f"sleeper-{n}") for n in range(SLEEPERS))]
    start_together(hosts)
    server, why = shared_server(), Counter[str]()
    for _ in range(ROUNDS):
        why.update(stall(hosts[0], hosts[1:], server, database_of(database)))
    print(f"{why.total()} stalls, 0 stale writes, {why.total()} refusals on record: {dict(why)}")
    assert why.total() == SLEEPERS * ROUNDS


def stall(awake: HostProcess, sleepers: list[HostProcess], server: Server, name: str) -> list[str]:
    """Why each of them was refused, as the audit tells it."""
    tasks = [begun(host)[0] for host in sleepers]
    threads = [awake.run(task)["threadId"] for task in tasks]
    for host in sleepers:
        os.kill(host.pid, signal.SIGSTOP)
    try:
        ends = [awake.finished(task, TAKE_OVER_SECONDS + PATIENT) for task in tasks]
    finally:
        before = written(server, name, threads)
        for host in sleepers:
            os.kill(host.pid, signal.SIGCONT)
    assert {(run["status"], run["code"]) for run in ends} == {("failed", "host_lost")}
    wait_until(lambda: len(refused(server, name, threads)) >= len(tasks), PATIENT, "each refusal being on record")
    for host in sleepers:
        wait_until(lambda host=host: host.client().get("/readyz").status_code == 200, PATIENT, "it being back")
    assert written(server, name, threads) == before
    rows = refused(server, name, threads)
    assert sorted(thread for thread, _ in rows) == sorted(threads)
    return [why for _, why in rows]


def refused(server: Server, name: str, threads: list[str]) -> list[tuple[str, str]]:
    """Which of these had an owner that was too late, and why it was refused; one for each refusal on record."""
    these = ", ".join(f"'{thread}'" for thread in threads)
    found = server.sql(
        f"select session_id, reason from audit where result = 'stale_owner' and session_id in ({these})", name
    )
    lines = (line.split("|", 1) for line in found.splitlines())
    return [(thread, why.replace(thread, "...")) for thread, why in lines]


def written(server: Server, name: str, threads: list[str]) -> str:
    """Where the log of each ends, by number and digest, and how many facts it has."""
    facts = "(select count(*) from facts where facts.session_no = sessions.session_no)"
    these = ", ".join(f"'{thread}'" for thread in threads)
    sql = f"select session_id, head_seq, head_digest, {facts} from sessions where session_id in ({these}) order by 1"
    return server.sql(sql, name)
