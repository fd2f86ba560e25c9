"""Builds the gate, the runners behind it, and the runs. Follows the foundation and the resources."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import TYPE_CHECKING

from paddock.compose import parts
from paddock.compose.ground import Foundation, Resources
from paddock.host.agents.agents import Agents
from paddock.host.agents.file import in_force
from paddock.host.calls.history import History
from paddock.host.calls.host_calls import HostCalls
from paddock.host.calls.knowledge import KnowledgeCalls
from paddock.host.calls.observed_calls import ObservedCalls
from paddock.host.calls.state import RunnerState
from paddock.host.calls.steering import Steering
from paddock.host.calls.storage_areas import StorageAreas
from paddock.host.calls.work import CallHandler
from paddock.host.cluster.attaching import addresses_of
from paddock.host.runs.authority import Authority, Granting
from paddock.host.runs.briefing import Briefing
from paddock.host.runs.live_run import ResultHandling
from paddock.host.runs.runs import Runs
from paddock.host.runs.surroundings import RunEndpoints, RunSurroundings
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.http_api.mcp.door import McpDoor
from paddock.rules.access.limits import Rates
from paddock.runners.gateway import Gateway
from paddock.runners.processes.isolation import Confinement
from paddock.runners.processes.shared import ProcessTimes, RunnerGate
from paddock.telemetry.metrics import Metrics, Together

if TYPE_CHECKING:
    from paddock.telemetry.traces import Traces


@dataclass(frozen=True, slots=True)
class Machinery:
    """The gate, the runners behind it, and the runs."""

    plugins: parts.Plugins
    agents: Agents
    gateway: Gateway
    endpoints: RunEndpoints
    run_door: McpDoor
    directories: WorkingDirectories
    runs: Runs
    metrics: Metrics
    traces: "Traces | None"


def set_up_runs(ground: Foundation, granted: Resources) -> Machinery:
    """Build the gate first, then the runners that call it, then the runs."""
    settings, clock, spawn = ground.settings, ground.clock, ground.tasks.spawn
    metrics, traces = Metrics(version("paddock")), parts.traces_of(settings)
    observer = metrics if traces is None else Together([metrics, traces])
    calls = _gate(ground, granted)
    on_call = ObservedCalls(calls.on_wire, observer, clock)
    plugins, directories = parts.plugins_of(settings), parts.directories_of(settings)
    endpoints = RunEndpoints(settings.run_address)
    gateway = _gateway(ground, plugins, RunnerGate(on_call, calls.foreign, calls.overloaded), endpoints)
    agents = in_force(
        ground.named.defined, settings.max_queue, partial(gateway.names, installed=settings.agents is None)
    )
    surroundings = RunSurroundings(gateway, endpoints, directories, spawn)
    authority = Authority(
        gateway=gateway,
        agents=agents,
        offered=calls.offered,
        resources=granted.of_workspaces,
        opened=settings.api_agents,
    )
    handling = ResultHandling(granted.artifacts, clock, spawn, granted.outside.approvals, observer)
    return Machinery(
        plugins=plugins,
        agents=agents,
        gateway=gateway,
        endpoints=endpoints,
        run_door=McpDoor(endpoints, calls, on_call=on_call, note=ground.audit.soon, clock=clock, spawn=spawn),
        directories=directories,
        runs=_runs(ground, gateway, agents, authority, handling, surroundings),
        metrics=metrics,
        traces=traces,
    )


def _runs(
    ground: Foundation,
    gateway: Gateway,
    agents: Agents,
    authority: Authority,
    handling: ResultHandling,
    surroundings: RunSurroundings,
) -> Runs:
    live, settings = ground.present.runs, ground.settings
    return Runs(
        gateway=gateway,
        granting=Granting(
            authority=authority,
            agents=agents,
            live=live,
            handling=handling,
            deadline_seconds=settings.run_deadline_seconds,
        ),
        briefing=Briefing(
            ground.store, ground.present.outage, host_version=version("paddock"), surroundings=surroundings
        ),
        live=live,
        handling=handling,
        timeouts=parts.timeouts_of(settings),
    )


def work_of_calls(ground: Foundation, granted: Resources) -> Mapping[str, CallHandler]:
    """The work of every host call, by its name."""
    settings, store, live = ground.settings, ground.store, ground.present.runs
    return {
        **History(store).work,
        **RunnerState(store).work,
        **granted.model_calls.work,
        **granted.tool_calls.work,
        **KnowledgeCalls(granted.documents.bases).work,
        **granted.outside.approvals.work,
        **granted.events.work,
        **granted.artifacts.work,
        **StorageAreas(store, ground.blobs, area_bytes=settings.storage_area_mib * parts.MIB).work,
        **Steering(store, live).work,
    }


def _gate(ground: Foundation, granted: Resources) -> HostCalls:
    return HostCalls(
        work=work_of_calls(ground, granted),
        live=ground.present.runs,
        outage=ground.present.outage,
        records=ground.store,
        audit=ground.audit,
        clock=ground.clock,
        rates=Rates.of_a_run(ground.settings.host_call_rate),
    )


def _gateway(ground: Foundation, plugins: parts.Plugins, gate: RunnerGate, endpoints: RunEndpoints) -> Gateway:
    settings = ground.settings
    confinement = Confinement(
        home=settings.data / "homes",
        mark=parts.mark_of(settings.data),
        data=settings.data,
        isolation=settings.isolation,
        env_allow=settings.env_allow,
        memory_mb=settings.plugin_memory_mb,
        run_socket=lambda: endpoints.socket,
        network_refused=partial(parts.why_no_network, ground.store),
    )
    times = ProcessTimes(
        retire_seconds=settings.run_deadline_seconds,
        spare_seconds=settings.spare_process_seconds,
        host_time=ground.clock,
    )
    return Gateway(
        plugins.catalog,
        confinement,
        gate,
        host_version=version("paddock"),
        times=times,
        elsewhere=partial(addresses_of, ground.near.members),
    )
