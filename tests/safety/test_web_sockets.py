"""Whoever asks for a web socket and has no token is answered and goes: they keep no place, no time and no memory."""

import socket
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from walk.hosts import HostProcess, wait_until

PATH = "/api/v1/runners/attach?token="
ASKING = [
    "host: 127.0.0.1",
    "connection: Upgrade",
    "upgrade: websocket",
    "sec-websocket-version: 13",
    "sec-websocket-key: AAAAAAAAAAAAAAAAAAAAAA==",
]
UNREADABLE = {
    "a long line": (f"GET {PATH}{'x' * 9000} HTTP/1.1", []),
    "a long header": (f"GET {PATH}x HTTP/1.1", [f"x-long: {'x' * 9000}"]),
    "another method": (f"POST {PATH}x HTTP/1.1", []),
    "a body": (f"GET {PATH}x HTTP/1.1", ["content-length: 3"]),
}
PING, BEGUN, GOES_ON = b"\x89\x80\0\0\0\0", b"\x01\x80\0\0\0\0", b"\x00\x80\0\0\0\0"


@contextmanager
def asking(host: HostProcess, line: str, headers: Sequence[str] = ()) -> Generator[socket.socket]:
    with socket.create_connection(("127.0.0.1", host.port), timeout=30) as client:
        client.sendall("\r\n".join([line, *ASKING, *headers, "", ""]).encode())
        yield client


def all_of(client: socket.socket) -> bytes:
    """What is said until the end, whichever way that comes; a connection that stays open is a timeout."""
    said = b""
    with suppress(ConnectionError):
        while piece := client.recv(65_536):
            said += piece
    return said


@pytest.mark.spec("http/patience")
@pytest.mark.parametrize("what", UNREADABLE)
def test_a_web_socket_whose_request_cannot_be_read_is_refused_and_keeps_no_place(host: HostProcess, what: str) -> None:
    line, headers = UNREADABLE[what]
    with asking(host, line, headers) as client:
        answer = all_of(client)
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 405 ", b"HTTP/1.1 404 ")), answer[:100]


@pytest.mark.spec("http/connections")
def test_strangers_who_ask_for_web_sockets_do_not_keep_others_out(tmp_path: Path) -> None:
    few = HostProcess(tmp_path / "data", env={"PADDOCK_MAX_CONNECTIONS": "16"}).start()
    with few.client() as friend, ExitStack() as held:
        for _ in range(16):
            held.enter_context(asking(few, *UNREADABLE["a long line"]))
        for _ in range(16):
            held.enter_context(asking(few, f"GET {PATH}wrong HTTP/1.1"))
        wait_until(lambda: friend.get("/readyz").status_code == 200, what="room for others")
    assert few.stop() == 0


def test_a_web_socket_that_never_began_does_not_keep_a_host_from_ending_well(tmp_path: Path) -> None:
    host = HostProcess(tmp_path / "data").start()
    with asking(host, *UNREADABLE["a long line"]) as client:
        client.recv(12)
        assert host.stop() == 0


@pytest.mark.parametrize("flood", [PING, GOES_ON], ids=["pings", "empty frames"])
def test_of_whoever_was_refused_next_to_nothing_is_read(host: HostProcess, flood: bytes) -> None:
    """That the watch stays silent is looked at after every test here."""
    with asking(host, f"GET {PATH}wrong HTTP/1.1") as client:
        assert client.recv(12) == b"HTTP/1.1 101"
        with suppress(ConnectionError):  # it may be gone before all of it is sent
            client.sendall(BEGUN + flood * 400_000)
        answered = all_of(client)
    assert len(answered) < 20_000


def test_a_message_in_frames_without_end_is_not_kept(host: HostProcess) -> None:
    with host.client() as client:
        made = client.post("/api/v1/runners/attach-tokens", json={"author": "test", "name": "frames"})
        token = made.json()["token"]
    with asking(host, f"GET {PATH}{token} HTTP/1.1") as runner:
        assert runner.recv(12) == b"HTTP/1.1 101"
        runner.sendall(BEGUN)
        assert noticed(runner, GOES_ON * 10_000)


def noticed(client: socket.socket, more: bytes) -> bool:
    """Send until it is known that nobody is there any more."""
    try:
        while True:
            client.sendall(more)
    except OSError:
        return True


def test_an_upgrade_to_something_else_leaves_no_line_in_the_log(host: HostProcess) -> None:
    with host.client() as client:
        for _ in range(3):
            asked = {"connection": "upgrade", "upgrade": "h2c"}
            assert client.get("/readyz", headers=asked).status_code == 200
    with socket.create_connection(("127.0.0.1", host.port), timeout=30) as last:
        last.sendall(b"hello?\r\n\r\n")
        all_of(last)
    assert host.says("http.refused", "not a valid HTTP request")  # a later line: what was before it is there
    assert not [line for line in host.output if "upgrade request" in line]


def test_whoever_is_refused_still_hears_why(host: HostProcess) -> None:
    with connect(f"ws://127.0.0.1:{host.port}{PATH}wrong") as runner, pytest.raises(ConnectionClosed) as told:
        runner.recv(timeout=30)
    assert told.value.rcvd is not None
    assert "not valid" in told.value.rcvd.reason
