"""A real NATS server for tests, from a wheel that carries the binary: on loopback, with a port of its own."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from loopback import free_port

BINARY = Path(sys.executable).with_name("nats-server")


@dataclass
class NatsServer:
    port: int = field(default_factory=free_port)
    process: subprocess.Popen[bytes] | None = None
    config: Path | None = None

    @property
    def url(self) -> str:
        return f"nats://127.0.0.1:{self.port}"

    def start(self) -> "NatsServer":
        assert BINARY.exists(), "the dev tools are not installed: make .venv/.installed-dev"
        command = [
            str(BINARY),
            "-a",
            "127.0.0.1",
            "-p",
            str(self.port),
            *(("-c", str(self.config)) if self.config else ()),
        ]
        self.process = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
        end = time.monotonic() + 30
        while not self._answers():
            assert time.monotonic() < end, "the NATS server did not start"
            time.sleep(0.02)
        return self

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as there:
            return there.recv(4) == b"INFO"
        return False

    def signal(self, number: signal.Signals) -> None:
        """SIGSTOP makes a server that accepts and never answers, until SIGCONT."""
        assert self.process is not None
        self.process.send_signal(number)
        if number == signal.SIGSTOP:
            os.waitid(os.P_PID, self.process.pid, os.WSTOPPED)  # on a busy machine its threads go on for a moment

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait(30)
            self.process = None
