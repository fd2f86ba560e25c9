"""The floor keeps the promises it is compared on: every event on disk before it is sent, and nothing left behind."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import apsw
import psutil
import pytest

from bench import growth, scripts
from bench.jobs import Job
from bench.load import load_generator
from bench.servers import ROOT, BenchError, Launch, Server, bare_floor_launch, floor_launch, free_port, serving


@pytest.fixture
def floor(tmp_path: Path) -> Iterator[Server]:
    with serving(floor_launch(tmp_path), tmp_path / "log") as server:
        yield server


@pytest.fixture(params=[floor_launch, bare_floor_launch])
def either_floor(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Server]:
    with serving(request.param(tmp_path), tmp_path / "log") as server:
        yield server


def test_every_event_is_committed_before_it_is_sent(either_floor: Server, tmp_path: Path) -> None:
    stored = apsw.Connection(str(tmp_path / "floor.db"), flags=apsw.SQLITE_OPEN_READONLY)
    body = json.dumps({"threadId": "t", "text": scripts.stream(500)}).encode()
    seen = 0
    port = either_floor.port
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client, client.makefile("rb") as answer:
        client.sendall(b"POST /run HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        for line in answer:
            if line.startswith(b"data: "):
                seen += 1
                rows = stored.execute("select body from events where seq = ?", (seen,)).fetchall()
                assert rows == [(line.removeprefix(b"data: ").decode().strip(),)]
            if b"RUN_FINISHED" in line:
                break
    assert seen == 502


def test_many_runs_at_once_get_their_own_text_and_nothing_more_is_stored(floor: Server, tmp_path: Path) -> None:
    with load_generator() as load:
        outcome = load.do(Job(text=scripts.stream(20), concurrency=8, runs=80).at("floor", floor.port))
    assert (outcome.runs, outcome.deltas, outcome.errors) == (80, 1600, 0)
    stored = apsw.Connection(str(tmp_path / "floor.db"))
    assert stored.execute("select count(*), count(distinct run) from events").fetchall() == [(80 * 22, 80)]


def test_a_paced_load_offers_the_rate_it_was_asked_for(floor: Server) -> None:
    with load_generator() as load:
        outcome = load.do(Job(text=scripts.SHORT, concurrency=8, seconds=2.0, rate=100.0).at("floor", floor.port))
    assert outcome.errors == 0
    assert 150 <= outcome.runs <= 250  # 200 wanted, 14 the spread of such a clock


def test_a_server_that_is_gone_is_an_error_and_not_a_fast_one() -> None:
    with load_generator() as load:
        outcome = load.do(Job(text=scripts.SHORT, concurrency=2, seconds=0.2).at("floor", free_port()))
    assert (outcome.runs, outcome.errors) == (0, 1)
    assert "cannot connect" in outcome.problems[0]


def test_a_server_that_cannot_start_is_reported_in_its_own_words(tmp_path: Path) -> None:
    launch = Launch("broken", (sys.executable, "-c", "raise SystemExit('no luck')"), free_port())
    with (
        pytest.raises(BenchError, match=r"broken ended with status 1(.|\n)*no luck"),
        serving(launch, tmp_path / "log"),
    ):
        pass


def test_the_agent_ends_with_the_floor(tmp_path: Path) -> None:
    with serving(floor_launch(tmp_path), tmp_path / "log") as server:
        tree = [psutil.Process(server.process.pid), *server.process.children(recursive=True)]
        assert len(tree) == 2
    assert not any(process.is_running() for process in tree)


@pytest.mark.parametrize("demand", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_bench_that_is_stopped_leaves_no_process(demand: signal.Signals, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "bench", "--systems", "floor", "--only", "growth", "--dir", str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE) as bench:
        assert bench.stderr is not None
        while b"growth" not in bench.stderr.readline():
            assert bench.poll() is None
        tree = psutil.Process(bench.pid).children(recursive=True)
        bench.send_signal(demand)
        bench.wait(20)
    assert len(tree) == 3  # the floor, its agent, the load generator
    _, alive = psutil.wait_procs(tree, timeout=30)
    assert not alive
    assert demand == signal.SIGKILL or not list(tmp_path.iterdir())


def test_growth_is_measured_in_two_threads_turn_by_turn(floor: Server, tmp_path: Path) -> None:
    with load_generator() as load:
        job = Job(text=scripts.SHORT, concurrency=1, runs=growth.RUNS, growth=True)
        outcome = load.do(job.at("floor", floor.port))
    assert (outcome.errors, len(outcome.turns_ms)) == (0, growth.RUNS)
    stored = apsw.Connection(str(tmp_path / "floor.db"))
    turns = stored.execute("select count(distinct run) from events group by thread order by 1").fetchall()
    assert turns == [(51,), (500,)]
