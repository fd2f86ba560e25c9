"""Run a runner without a host: a pretend one that speaks the real frames. For tests only, never for serving.

async with pretend_host(MyRunner(), state={"conversation": {"turns": 1}}) as host:
    results = await host.run("hello")
    assert results.text == "hello"
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from paddock_sdk.runner import AgentRunner
from paddock_sdk.testing.context import a_context
from paddock_sdk.testing.host import PretendHost
from paddock_sdk.testing.memory import Handler, Memory, RecordedCall
from paddock_sdk.testing.runs import PretendRun, RunResults
from paddock_sdk.testing.transports import child_process, in_memory

__all__ = ["PretendHost", "PretendRun", "RecordedCall", "RunResults", "a_context", "pretend_host", "pretend_host_for"]


@asynccontextmanager
async def pretend_host(
    *runners: AgentRunner,
    state: Mapping[str, Mapping[str, Any]] | None = None,
    history: Sequence[tuple[str, str]] = (),
    storage: Mapping[str, Mapping[str, bytes]] | None = None,
    artifacts: Mapping[str, bytes] | None = None,
    calls: Mapping[str, Handler] | None = None,
) -> AsyncGenerator[PretendHost, None]:
    """A host that keeps state, history (role, text), storage and artifacts in memory.

    `calls` answers further methods: {"models.invoke": lambda params: {"message": {...}}}; an (async) iterable for
    streaming ones. It grants what the manifest asks for and refuses the rest, as a real one would.
    """
    host = PretendHost(Memory(state or {}, history, storage or {}, artifacts or {}, calls or {}))
    async with in_memory(runners, host.read) as host.send, host.talking():
        yield host


@asynccontextmanager
async def pretend_host_for(
    command: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    state: Mapping[str, Mapping[str, Any]] | None = None,
    history: Sequence[tuple[str, str]] = (),
    calls: Mapping[str, Handler] | None = None,
) -> AsyncGenerator[PretendHost, None]:
    """Run a program in any language against the pretend host, over its stdin and stdout."""
    host = PretendHost(Memory(state or {}, history, {}, {}, calls or {}))
    async with child_process(command, host.read, cwd=cwd, env=env) as host.send, host.talking():
        yield host
