"""Two hosts of one cluster that a test takes for one, behind a door that always leads to the wrong one."""

import re
from dataclasses import dataclass, field, replace

from walk.detour import Detour
from walk.hosts import HostProcess

A_MESSAGE = re.compile(rb"POST /api/v1/agent/(runs|ag-ui/\S+)[? ]")
STAYS = re.compile(rb"(?i)\r\nconnection: *keep-alive")


@dataclass
class TwoHosts(HostProcess):
    """Every request goes to the host that did not get the last message: whatever is asked about something that goes on
    is asked where it does not, and the next message comes there too. `kill` ends the host where it goes on."""

    pair: list[HostProcess] = field(init=False)
    given: HostProcess = field(init=False)
    """Who got the last message."""
    door: Detour = field(init=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        first = HostProcess(self.data, self.agents, self.plugins, self.env, self.extra, self.fresh, output=self.output)
        self.pair = [first, replace(first, data=self.data.with_name(f"{self.data.name}-beside"), output=self.output)]
        self.given = first
        self.door = Detour(self._choose)
        self.url = f"http://127.0.0.1:{self.door.port}"

    def start(self, *, seconds: float = 60.0) -> "TwoHosts":
        for host in self.pair:
            if host.process is None or host.process.poll() is not None:
                host.start(seconds=seconds)
        self.process = self.pair[0].process
        return self

    @property
    def at_work(self) -> HostProcess:
        return self.given

    def kill(self) -> None:
        self.given.kill()

    def end(self) -> None:
        for host in self.pair:
            host.end()
        self.door.close()

    def stop(self) -> int:
        return max(host.stop() for host in self.pair)

    def _choose(self, first: bytes) -> tuple[bytes, int]:
        wrong = self.pair[self.given is self.pair[0]]
        if A_MESSAGE.match(first):
            self.given = wrong
        return STAYS.sub(b"\r\nConnection: close", first), wrong.port
