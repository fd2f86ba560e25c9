"""Hosts that stall past their lease and wake up, a hundred times: none writes, and each refusal is on record."""

import os
import signal
import threading
from collections import Counter

import pytest

from cluster.conftest import Hosts
from cluster.test_hosts_go import TAKE_OVER_SECONDS, begun
from postgres_server import Server, database_of, shared_server
from walk.hosts import HostProcess, wait_until

pytestmark = pytest.mark.long

SLEEPERS, ROUNDS = 4, 25
PATIENT = 60.0
NO_ANSWER = "storage refuses to write"
"""What a host logs that woke up in the middle of a write: its answer is late, so it is given up and nothing refused."""


@pytest.mark.timeout(3000)
def test_a_hundred_stalls_leave_no_stale_write_and_a_refusal_on_record_each(new_host: Hosts, database: str) -> None:
    hosts = [new_host("awake"), *(new_host(f"sleeper-{n}") for n in range(SLEEPERS))]
    starting = [threading.Thread(target=host.start) for host in hosts]
    for one in starting:
        one.start()
    for one in starting:
        one.join()
    server, ends = shared_server(), Counter[str]()
    for _ in range(ROUNDS):
        ends.update(stall(hosts[0], hosts[1:], server, database_of(database)))
    print(f"{ends.total()} stalls, 0 stale writes: {dict(ends)}")
    assert ends.total() == SLEEPERS * ROUNDS
    assert ends["refused"] > ends.total() / 2


def stall(awake: HostProcess, sleepers: list[HostProcess], server: Server, name: str) -> list[str]:
    """How each of them noticed that it was too late."""
    tasks = [begun(host)[0] for host in sleepers]
    threads = [awake.run(task)["threadId"] for task in tasks]
    logged = [len(host.output) for host in sleepers]
    for host in sleepers:
        os.kill(host.process.pid, signal.SIGSTOP)
    try:
        ends = [awake.finished(task, TAKE_OVER_SECONDS + PATIENT) for task in tasks]
    finally:
        before = written(server, name, threads)
        for host in sleepers:
            os.kill(host.process.pid, signal.SIGCONT)
    assert {(run["status"], run["code"]) for run in ends} == {("failed", "host_lost")}

    def noticed() -> list[str]:
        refused = server.sql("select distinct resource from audit where result = 'stale_owner'", name).split()
        late = [NO_ANSWER in "".join(host.output[since:]) for host, since in zip(sleepers, logged, strict=True)]
        found = zip(threads, late, strict=True)
        return [
            "refused" if thread in refused else "gave up" for thread, is_late in found if thread in refused or is_late
        ]

    wait_until(lambda: len(noticed()) == len(tasks), PATIENT, "each noticing that it is too late")
    for host in sleepers:
        wait_until(lambda host=host: host.client().get("/readyz").status_code == 200, PATIENT, "it being back")
    assert written(server, name, threads) == before
    return noticed()


def written(server: Server, name: str, threads: list[str]) -> str:
    """Where the log of each ends, by number and digest, and how many facts it has."""
    facts = "(select count(*) from facts where facts.session_no = sessions.session_no)"
    these = ", ".join(f"'{thread}'" for thread in threads)
    sql = f"select session_id, head_seq, head_digest, {facts} from sessions where session_id in ({these}) order by 1"
    return server.sql(sql, name)
