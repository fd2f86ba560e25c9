"""Hosts that stall past their lease and wake up, a hundred times: none writes, and each refusal is on record."""

import os
import signal
import threading

import pytest

from cluster.conftest import Hosts
from cluster.test_hosts_go import TAKE_OVER_SECONDS, begun
from postgres_server import Server, database_of, shared_server
from walk.hosts import HostProcess, wait_until

pytestmark = pytest.mark.long

SLEEPERS, ROUNDS = 4, 25
PATIENT = 60.0


@pytest.mark.timeout(3000)
def test_a_hundred_stalls_leave_no_stale_write_and_a_refusal_on_record_each(new_host: Hosts, database: str) -> None:
    hosts = [new_host("awake"), *(new_host(f"sleeper-{n}") for n in range(SLEEPERS))]
    starting = [threading.Thread(target=host.start) for host in hosts]
    for one in starting:
        one.start()
    for one in starting:
        one.join()
    server, stalled = shared_server(), 0
    for _ in range(ROUNDS):
        stalled += stall(hosts[0], hosts[1:], server, database_of(database))
    print(f"{stalled} stalls, 0 stale writes, {stalled} refusals on record")
    assert stalled == SLEEPERS * ROUNDS


def stall(awake: HostProcess, sleepers: list[HostProcess], server: Server, name: str) -> int:
    tasks = [begun(host)[0] for host in sleepers]
    threads = ", ".join(f"'{awake.run(task)['threadId']}'" for task in tasks)
    for host in sleepers:
        os.kill(host.process.pid, signal.SIGSTOP)
    try:
        ends = [awake.finished(task, TAKE_OVER_SECONDS + PATIENT) for task in tasks]
    finally:
        before = written(server, name, threads)
        for host in sleepers:
            os.kill(host.process.pid, signal.SIGCONT)
    assert {(run["status"], run["code"]) for run in ends} == {("failed", "host_lost")}
    refused = f"select count(distinct resource) from audit where result = 'stale_owner' and resource in ({threads})"
    wait_until(lambda: int(server.sql(refused, name)) == len(tasks), PATIENT, "a refusal each")
    for host in sleepers:
        wait_until(lambda host=host: host.client().get("/readyz").status_code == 200, PATIENT, "it being back")
    assert written(server, name, threads) == before
    return len(tasks)


def written(server: Server, name: str, threads: str) -> str:
    """Where the log of each ends, by number and digest, and how many facts it has."""
    facts = "(select count(*) from facts where facts.session_no = sessions.session_no)"
    sql = f"select session_id, head_seq, head_digest, {facts} from sessions where session_id in ({threads}) order by 1"
    return server.sql(sql, name)
