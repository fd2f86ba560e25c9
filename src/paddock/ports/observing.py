"""Whoever watches what the host does, for operators: runs, their steps, their host calls. Never single deltas."""

from typing import Protocol

from paddock.rules.access.permissions import Grant


class Observer(Protocol):
    """Told on the event loop, so every method only takes note. Times are seconds since the epoch."""

    def run_started(self, grant: Grant, at: float) -> None: ...
    def run_ended(self, run_id: str, status: str, at: float) -> None:
        """Also told of runs that never started."""
        ...

    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None: ...
    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None:
        """A runner asked for something; `result` is "allowed", or the code of the refusal."""
        ...


class Unobserved:
    """Nobody watches."""

    def run_started(self, grant: Grant, at: float) -> None: ...
    def run_ended(self, run_id: str, status: str, at: float) -> None: ...
    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None: ...
    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None: ...
