"""Every kind of effect under everything that can go wrong: done once at most, never told to be worth a second try when
it had begun, and on record as what it is. What is expected is the table in `effects/table.py`, which the spec shows."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import loopback
from effects import table
from effects.scene import PATIENT, Scene, Seen, a_scene, a_small_disk, full
from needs import not_run
from postgres_server import Server, new_server
from walk.hosts import wait_until

SPEC = Path(__file__).parents[2] / "docs/spec/gate.md"
Strike = Callable[[Scene], None]
RECORDED = [*table.TOOLS, *table.MODELS, *table.OUTSIDE]
Struck = dict[str, Seen]


# --- what strikes


def cancelled(scene: Scene) -> None:
    scene.begin()
    with scene.host.client() as client:
        for kind in (*table.TOOLS, *table.MODELS, *table.WRITES):
            client.post(f"/api/v1/agent/runs/{scene.tasks[kind]}/cancel")
    scene.runs_end()
    scene.settles([*table.TOOLS, *table.MODELS])
    scene.finish()
    scene.settles(RECORDED)


def late(scene: Scene) -> None:
    scene.begin("hasty")
    scene.runs_end()
    scene.settles([*table.TOOLS, *table.MODELS])
    scene.finish()
    scene.settles(RECORDED)


def without_its_runner(scene: Scene) -> None:
    scene.begin()
    os.kill(int((scene.home / "pid").read_text()), signal.SIGKILL)
    scene.runs_end()
    scene.settles([*table.TOOLS, *table.MODELS])
    scene.finish()
    scene.settles(RECORDED)


def stopped(scene: Scene) -> None:
    scene.begin()
    assert scene.host.process is not None
    began = time.monotonic()
    scene.host.process.send_signal(signal.SIGTERM)
    assert scene.host.process.wait(PATIENT) == 0
    print(f"stopped within {time.monotonic() - began:.1f} s")
    scene.settles([*table.TOOLS, *table.MODELS, "a platform action"])
    scene.finish()


def killed(scene: Scene) -> None:
    scene.begin()
    scene.host.kill()
    scene.finish()
    scene.start_host(scene.host)
    scene.settles([*table.TOOLS, *table.MODELS, "a platform action"])
    scene.settles(["a message"], 90)


def full_for(seconds: float) -> Strike:
    def strike(scene: Scene) -> None:
        scene.begin()
        with full(scene.disk, lambda: not ready(scene)):
            scene.finish()
            time.sleep(seconds)  # how long it is full is what this is about
        scene.settles(RECORDED)

    return strike


def away_for(seconds: float) -> Strike:
    def strike(scene: Scene) -> None:
        assert scene.server is not None
        scene.begin()
        scene.server.stop("fast")
        wait_until(lambda: not ready(scene), PATIENT, "the host noticing")
        scene.finish()
        time.sleep(seconds)  # the same
        scene.server.start()
        scene.settles(RECORDED)

    return strike


def silent(scene: Scene) -> None:
    assert scene.server is not None
    scene.begin()
    scene.server.signal_all(signal.SIGSTOP)
    try:
        scene.finish()
        time.sleep(8.0)  # the same
    finally:
        scene.server.signal_all(signal.SIGCONT)
    scene.settles(RECORDED)


def handed_over(scene: Scene) -> None:
    for host in scene.hosts:  # one of them was asleep before
        wait_until(lambda host=host: host.client().get("/readyz").status_code == 200, PATIENT, "being ready")
    scene.host, other = scene.hosts
    scene.begin()
    assert scene.host.process is not None
    scene.host.process.send_signal(signal.SIGTERM)
    assert scene.host.process.wait(PATIENT) == 0
    scene.host = other
    scene.settles([*table.TOOLS, *table.MODELS, "a platform action"])
    scene.finish()
    scene.settles(["a message"], 90)


def taken_over(scene: Scene) -> None:
    scene.begin()
    asleep, other = scene.hosts
    assert asleep.process is not None
    os.kill(asleep.process.pid, signal.SIGSTOP)
    scene.host = other
    scene.runs_end()
    scene.settles([*table.TOOLS, *table.MODELS], 20)
    os.kill(asleep.process.pid, signal.SIGCONT)
    wait_until(lambda: asleep.client().get("/readyz").status_code == 200, PATIENT, "the sleeper being back")
    scene.settles(["a platform action"], 90)
    scene.finish()
    scene.settles(RECORDED, 90)


def ready(scene: Scene) -> bool:
    return loopback.get(f"{scene.host.url}/readyz").status_code == 200


STRIKES: dict[str, Strike] = {
    table.CANCEL: cancelled,
    table.DEADLINE: late,
    table.RUNNER_DIES: without_its_runner,
    table.SIGTERM: stopped,
    table.KILL: killed,
    table.FULL_SHORT: full_for(1.5),
    table.FULL_LONG: full_for(11.0),
    table.AWAY_SHORT: away_for(4.0),
    table.AWAY_LONG: away_for(15.0),
    table.SILENT: silent,
    table.TAKE_OVER: taken_over,
    table.HAND_OVER: handed_over,
}


# --- where it strikes


@pytest.fixture(scope="module")
def one_host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    """A host for all faults that it survives, in the order of the table; the last one ends it."""
    with a_scene(tmp_path_factory.mktemp("one")) as scene:
        yield scene


@pytest.fixture(scope="module")
def small_disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    if os.geteuid() != 0:
        not_run("effects on a full disk, because mounting a small one needs root")
    home = tmp_path_factory.mktemp("full")
    with a_small_disk(home / "disk") as disk, a_scene(home, disk=disk) as scene:
        yield scene


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    server = new_server()
    yield server
    server.let_go()


@pytest.fixture(scope="module")
def on_postgres(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with a_scene(tmp_path_factory.mktemp("away"), server) as scene:
        yield scene


@pytest.fixture(scope="module")
def two_hosts(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with a_scene(tmp_path_factory.mktemp("two"), server, hosts=2) as scene:
        yield scene


WHERE = {
    table.FULL_SHORT: "small_disk",
    table.FULL_LONG: "small_disk",
    table.AWAY_SHORT: "on_postgres",
    table.AWAY_LONG: "on_postgres",
    table.SILENT: "on_postgres",
    table.TAKE_OVER: "two_hosts",
    table.HAND_OVER: "two_hosts",
}
_struck: dict[str, Struck] = {}


def struck(request: pytest.FixtureRequest, fault: str) -> Struck:
    """What was seen when this struck; it strikes once, at all kinds of calls together."""
    if fault not in _struck:
        scene: Scene = request.getfixturevalue(WHERE.get(fault, "one_host"))
        _struck[fault] = {}
        STRIKES[fault](scene)
        _struck[fault] = scene.seen()
    return _struck[fault]


def cells() -> Iterator[object]:
    order = [table.CANCEL, table.DEADLINE, table.RUNNER_DIES, table.KILL, table.SIGTERM]
    for fault in [*order, *(fault for fault in table.FAULTS if fault not in order)]:
        place = WHERE.get(fault, "one_host")
        marks = [pytest.mark.xdist_group(f"effects {place}"), pytest.mark.timeout(400)]
        marks += [] if fault in table.QUICK else [pytest.mark.long]
        yield from (pytest.param(fault, kind, marks=marks, id=f"{kind}, {fault}") for kind in table.KINDS)


@pytest.mark.spec("gate/effects")
@pytest.mark.parametrize(("fault", "kind"), list(cells()))
def test_an_effect_is_had_once_and_its_outcome_is_on_record(
    request: pytest.FixtureRequest, fault: str, kind: str
) -> None:
    seen = struck(request, fault)[kind]
    told, record = table.cell(kind, fault)
    print(kind, fault, seen)
    if kind in table.WRITES:
        assert (seen.effects, seen.problems) == (1, [])
        return
    assert seen.effects == 1, seen
    assert "retryable" not in seen.told, seen
    assert {*seen.told} <= {told} if told != table.NOT_HEARD else not {*seen.told} & {"ok", "retryable"}, seen
    assert {*seen.record} == {record.partition(",")[0]}, seen


def test_the_page_about_the_gate_shows_the_table() -> None:
    assert table.page() in SPEC.read_text(), "run: cd tests && ../.venv/bin/python -m effects.table"
