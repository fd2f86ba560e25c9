"""A host that is full says so at its doors and when asked whether it is ready; another takes what it does not."""

import uuid

from cluster.conftest import Hosts
from cluster.test_hosts_go import ENDLESS, begun, cancel
from walk.hosts import start_together, wait_until


def test_a_full_host_sends_people_away_until_there_is_room_and_another_takes_them(new_host: Hosts) -> None:
    small, other = new_host("small", env={"PADDOCK_MAX_RUNS": "2"}), new_host("other")
    start_together([small, other])
    tasks = [begun(small, ENDLESS)[0] for _ in range(2)]
    ready = small.client().get("/readyz")
    assert (ready.status_code, ready.json()["reason"]) == (503, "full: as many runs as max_runs allows")
    thread, run = str(uuid.uuid4()), "the same everywhere"
    refused = small.post("hello", thread=thread, run=run)
    assert (refused.status_code, refused.json()["code"], refused.headers["Retry-After"]) == (503, "unavailable", "2")
    assert other.client().get("/readyz").status_code == 200
    accepted = other.post("hello", thread=thread, run=run)
    assert accepted.status_code == 202
    assert other.finished(accepted.json()["taskId"])["status"] == "completed"
    cancel(other, tasks[0])
    wait_until(lambda: small.client().get("/readyz").status_code == 200, 30, "room")
    assert small.post("hello").status_code == 202
    cancel(small, tasks[1])
