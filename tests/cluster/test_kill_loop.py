"""Three hosts, forty runs in flight, hosts killed and engines restarted all the time: what clients were told holds."""

import os
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import psutil
import pytest

from cluster.conftest import AGENTS
from cluster.kill_loop import Rig
from cluster.ledger import Told, Truth, broken_promises
from nats_server import NatsServer
from paddock.compose import mark_of
from postgres_server import new_server
from walk.hosts import NASTY, HostProcess

pytestmark = pytest.mark.anyio


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    postgres, nats = new_server(), NatsServer().start()
    env = {"PADDOCK_STORE": postgres.new_database(), "PADDOCK_BUS": nats.url, "PADDOCK_LOG_LEVEL": "warning"}
    hosts = [HostProcess(tmp_path / f"host-{n}", agents=AGENTS, plugins=(NASTY,), env=env) for n in range(3)]
    for host in hosts:
        host.start()
    seed = int(os.environ.get("PADDOCK_TEST_SEED") or random.randrange(1 << 30))
    print(f"PADDOCK_TEST_SEED={seed}")
    yield Rig(hosts, nats, postgres, random.Random(seed))
    for host in hosts:
        if host.process is not None and host.process.poll() is None:
            host.process.kill()
            host.process.wait(30)
    nats.kill()
    postgres.let_go()


def left_over(hosts: list[HostProcess]) -> list[str]:
    """Processes that carry a mark of these hosts."""
    marks = {mark_of(host.data) for host in hosts}
    found: list[str] = []
    for process in psutil.process_iter(["pid", "cmdline"]):
        try:
            if process.environ().get("PADDOCK_MARK") in marks and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.info["cmdline"] or ()))
        except psutil.Error:
            continue
    return found


def tell(rig: Rig) -> None:
    """What the hosts said, for whoever has to find out why a promise was broken."""
    for host in rig.hosts:
        print(f"--- {host.data.name}", "".join(host.output[-500:]), sep="\n")


async def the_loop(rig: Rig, seconds: float) -> None:
    truth = await rig.run(rig.torment(seconds))
    acknowledged = [told for told in rig.told.values() if told.tasks]
    print(f"{len(acknowledged)} runs acknowledged; {', '.join(rig.deeds)}")
    broken = broken_promises(rig.told, truth)
    if broken:
        tell(rig)
    assert broken == []
    assert len(acknowledged) > seconds / 2
    assert len(rig.deeds) >= seconds / 40  # a host that starts on a busy machine takes its time
    assert {"restarted NATS", "restarted PostgreSQL"} <= set(rig.deeds)
    for host in rig.hosts:
        host.stop()
    assert left_over(rig.hosts) == []


@pytest.mark.timeout(300)
async def test_twenty_seconds_of_kills_break_no_promise(rig: Rig) -> None:
    await the_loop(rig, 20)


@pytest.mark.long
@pytest.mark.timeout(1500)
async def test_ten_minutes_of_kills_break_no_promise(rig: Rig) -> None:
    await the_loop(rig, 600)


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_a_minute_of_restarts_of_the_database_ends_no_live_run(rig: Rig) -> None:
    truth = await rig.run(rig.restart_the_database(60))
    ended = [record for record in truth.values() if record is not None]
    failed = [record for record in ended if record.status != "completed"]
    print(f"{len(truth)} runs acknowledged, {len(failed)} failed; {', '.join(rig.deeds)}")
    broken = broken_promises(rig.told, truth)
    if broken or any(record.words for record in failed):
        tell(rig)
    assert broken == []
    assert [record for record in failed if record.words] == []  # at most one whose beginning was never acknowledged
    assert {record.code for record in failed} <= {"storage_unavailable"}
    assert len(ended) > 50
    assert len(rig.deeds) >= 5


@pytest.mark.long
@pytest.mark.timeout(400)
async def test_a_rolling_restart_of_three_hosts_loses_nothing_and_fails_only_what_it_says(rig: Rig) -> None:
    truth = await rig.run(rig.roll())
    ended = [record for record in truth.values() if record is not None]
    failed = [record.code for record in ended if record.status != "completed"]
    print(f"{len(truth)} runs acknowledged, {len(failed)} failed; {', '.join(rig.deeds)}")
    broken = broken_promises(rig.told, truth)
    if broken:
        tell(rig)
    assert broken == []
    assert set(failed) <= {"host_shutdown"}
    assert len(ended) > 50
    assert len(rig.deeds) == 3


# --- the oracle itself


def a_good_run() -> tuple[dict[str, Told], dict[str, Truth | None]]:
    heard = [("1.1.0", "RUN_STARTED", ""), ("1.2.0", "TEXT_MESSAGE_CONTENT", "one "), ("1.4.0", "RUN_FINISHED", "")]
    return {"a": Told("a", "t", "hi", {"task"}, heard)}, {"task": Truth("completed", "one ", 1)}


def test_the_ledger_finds_nothing_where_nothing_is_wrong() -> None:
    assert broken_promises(*a_good_run()) == []


@pytest.mark.parametrize(
    ("sabotage", "sentence"),
    [
        (lambda _, truth: truth.update(task=None), "is lost"),
        (lambda told, _: told["a"].tasks.add("another"), "acknowledged as 2 runs"),
        (lambda _, truth: truth.update(task=Truth("running", "one ", 0)), "is stuck"),
        (lambda _, truth: truth.update(task=Truth("completed", "one ", 2)), "2 ends on record"),
        (lambda told, _: told["a"].heard.append(("1.9.0", "RUN_ERROR", "")), "told its end 2 times"),
        (lambda told, _: told["a"].heard.insert(1, told["a"].heard[1]), "the same event twice"),
        (lambda told, _: told["a"].heard.pop(1), "has a gap"),
        (lambda told, _: told["a"].heard.pop(2), "was never told its end"),
        (lambda _, truth: truth.update(task=Truth("completed", "one two ", 1)), "has a gap"),
    ],
)
def test_a_ledger_that_was_tampered_with_does_not_pass(sabotage: object, sentence: str) -> None:
    told, truth = deepcopy(a_good_run())
    assert callable(sabotage)
    sabotage(told, truth)
    assert any(sentence in found for found in broken_promises(told, truth))
