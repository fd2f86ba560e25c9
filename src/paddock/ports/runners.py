"""Runners as the host sees them: started, listened to, stopped, and heard when they ask for something."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, Protocol

from paddock.rules.access.permissions import Grant
from paddock.rules.errors import EndCode, HostError
from paddock.rules.run.results import Result
from paddock.rules.values import Value
from paddock_sdk.protocol.manifest import AgentRunnerManifest


class RunListener(Protocol):
    """Hears of one run. Called in order from the connection's reader; must not block; never called after `lost`."""

    def acknowledged(self) -> None: ...
    def result(self, result: Result, size: int) -> None:
        """One result of this very run, its sequence already checked. `size` is its bytes on the wire."""
        ...

    def lost(self, code: EndCode, message: str) -> None:
        """The run can say nothing more: refused, crashed, broken frames, disconnected."""
        ...


class RunHandle(Protocol):
    """The host's end of one run at its runner."""

    @property
    def connection_id(self) -> str:
        """The connection the run was started on; host calls for it must come from there."""
        ...

    async def cancel(self, reason: str) -> bool:
        """Ask the runner to stop; True when it said the run has ended. The caller bounds the wait."""
        ...

    def give_credit(self, count: int) -> None: ...
    def steering_available(self, waiting: int) -> None:
        """Tell the runner that so many inputs wait which it may take in."""
        ...

    async def force_stop(self) -> None:
        """Stop listening at once; kill the process if this was its only run or it does not answer a ping."""
        ...

    def release(self) -> None:
        """The run is over: forget it. Later frames for it are foreign."""
        ...


class Caller(Value, frozen=True):
    """Caller of a host call, as the connection knows it; never what a frame says."""

    plugin: str
    """author/name"""
    connection_id: str
    door: str = ""
    """How it came, when not over the connection itself: `mcp`."""


class Unreadable(Value, frozen=True):
    """Stands for the params of a host call that could not be read."""

    problem: str
    is_json: bool


class HostCallHandler(Protocol):
    async def __call__(self, caller: Caller, method: str, params: Any, size: int) -> Any:
        """Answer one host call (something to be encoded, JSON as it is, or chunks) or raise HostError."""
        ...


Overloaded = Callable[[Caller, str, Any, int], None]
"""Hears of a call that was refused unread: who, which method, its params, and how many more there were."""


IsolationLevel = Literal["L0", "L1"]
"""How far a runner is kept apart, the weakest first."""
RunnerState = Literal["stopped", "starting", "ready", "unhealthy", "attached"]


class RunnerStatus(Value, frozen=True):
    """One runner as an operator sees it."""

    runner_id: str
    plugin: str
    state: RunnerState
    isolation: str
    detail: str
    manifest: AgentRunnerManifest | None
    pid: int | None = None
    failing: bool = False
    """Whether it is left down for anybody, or did not start a moment ago."""
    unhealthy_for: tuple[str, ...] = ()
    """The workspaces that it is left down for because of their own crashes."""


RUN_SOCKET = "/run/paddock/mcp.sock"
"""Where a process without network finds the way to its run's own endpoint."""


class Placement(Value, frozen=True):
    """Secrets and placement that go with a run besides its context. Never logged, never stored."""

    secrets: Mapping[str, str] = MappingProxyType({})
    """What only this run may know."""
    isolation: str | None = None
    """The least it must be kept apart, whatever else is set."""
    directory: str | None = None
    """Where it works; from L1 up nothing else of the kind can be seen."""
    directory_is_ours: bool = False
    """Whether the host made it, and may give it to another user."""
    visible: tuple[str, ...] = ()
    """What it must be able to read besides."""
    checked_for: AgentRunnerManifest | None = None
    """Whose form its settings were checked against; a runner with another form must not get them."""
    conversation: str | None = None
    """Under what name its plugin keeps things of this conversation at home; from L1 up it sees no other's."""
    workspace: str = ""
    """Whose run it is: workspaces take turns at processes that were started ahead."""

    def __repr__(self) -> str:
        return f"Placement(isolation={self.isolation}, directory={self.directory}, secrets={sorted(self.secrets)})"


ANYWHERE = Placement()


class RunnerGateway(Protocol):
    """All runners, wherever they run. Processes start on demand."""

    async def manifest(self, runner_id: str, workspace: str) -> AgentRunnerManifest:
        """Raises HostError(NOT_FOUND) for a runner nobody offers, RUNTIME_ERROR when its process cannot be started."""
        ...

    def known_manifest(self, runner_id: str, workspace: str) -> AgentRunnerManifest | None:
        """Manifest of a runner without starting anything; None when it is not known."""
        ...

    async def start_run(
        self,
        runner_id: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        placement: Placement = ANYWHERE,
    ) -> RunHandle:
        """Write the `run_agent` frame (starting the process first if need be) and return; news goes to `listener`."""
        ...

    def start_at_once(
        self,
        runner_id: str,
        run_id: str,
        context: Mapping[str, Any],
        listener: RunListener,
        placement: Placement = ANYWHERE,
    ) -> RunHandle | None:
        """Start a run without waiting, when the runner is ready for it; None when it is not."""
        ...

    def isolation_of(self, runner_id: str, workspace: str, wanted: str | None = None) -> str:
        """How well a new run of this runner would be kept apart: a level, or a word for a place we do not control.

        `wanted` is the least its agent asks for; it is given when it can be.
        """
        ...

    def reaches_host(self, runner_id: str, workspace: str, wanted: str | None = None) -> bool:
        """True if such a run could reach this host over the network."""
        ...

    def trouble(self, runner_id: str, workspace: str) -> HostError | None:
        """Why a run of this runner would not begin now, if its processes keep failing; asks nobody, starts nothing."""
        ...

    async def list_runners(self) -> Sequence[RunnerStatus]: ...
    async def stop(self) -> None: ...


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
    def run_started(self, grant: Grant, at: float) -> None: ...
    def run_ended(self, run_id: str, status: str, at: float) -> None: ...
    def step(self, run_id: str, name: str, at: float, *, begins: bool) -> None: ...
    def host_call(self, run_id: str, action: str, resource: str, result: str, began: float, ended: float) -> None: ...
