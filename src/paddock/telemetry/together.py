"""Several observers told as one."""

from collections.abc import Sequence

from paddock.ports.runners import Observer
from paddock.rules.access.permissions import Grant


class Together:
    def __init__(self, observers: Sequence[Observer]) -> None:
        self._observers = observers

    def run_started(self, grant: Grant, at: float) -> None:
        for one in self._observers:
            one.run_started(grant, at)

    def run_ended(self, run_id: str, status: str, at: float) -> None:
        for one in self._observers:
            one.run_ended(run_id, status, at)

    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None:
        for one in self._observers:
            one.step(run_id, name, at, begins=begins)

    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None:
        for one in self._observers:
            one.host_call(run_id, action, resource, result, began, ended)
