"""Makes parts from the settings, one function each."""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from paddock.agent_program import is_program, load_program
from paddock.confinement.homes import Homes
from paddock.host.agents.agents import Agents
from paddock.host.agents.file import Defined, defined_in
from paddock.host.agents.files import AgentFiles
from paddock.host.agents.watch import Mark, Marks, marks_of_tools, state_of
from paddock.host.audit import Audit
from paddock.host.automation.calendar import Calendars
from paddock.host.calls.artifacts import ArtifactLimits, Artifacts
from paddock.host.calls.metering import Budgets
from paddock.host.conversations.attachments import UserAttachments
from paddock.host.conversations.client_files import ClientFiles
from paddock.host.conversations.client_history import ClientHistory
from paddock.host.conversations.client_runs import Answers
from paddock.host.conversations.inbox import Inbox, ThreadNames
from paddock.host.people.approvals import Approvals
from paddock.host.platforms.chat_answers import ChatAnswers
from paddock.host.platforms.deliveries import Deliveries
from paddock.host.platforms.delta_stream import DeltaStream
from paddock.host.platforms.ingress import Ingress
from paddock.host.platforms.platforms import Platforms
from paddock.host.runs.live_run import Spawn
from paddock.host.runs.outcomes import Outcomes
from paddock.host.runs.working_directories import WorkingDirectories
from paddock.images.cleaning import ChildPictures
from paddock.models.catalog import ModelCatalog
from paddock.models.keys import Key
from paddock.models.loading import found_models, load_models
from paddock.platforms.webhooks import HttpWebhooks
from paddock.ports import Store
from paddock.ports.attachments import Attachments
from paddock.rules.agents.specs import McpServerSpec, ModelSpec, NamedResources
from paddock.rules.conversations.attachments import AttachmentLimits
from paddock.rules.errors import needed_for
from paddock.rules.log.forgetting import Periods
from paddock.rules.people import Budget
from paddock.rules.session.commands import SessionTimeouts
from paddock.runners.gateway import Gateway
from paddock.runners.installed.catalog import Catalog
from paddock.runners.packages.installed import RECORD_FILE
from paddock.runners.plugin_updates import PluginsWatch
from paddock.settings import Settings
from paddock.storage.files.signing_keys import KeyFile
from paddock.tools import builtin
from paddock.tools.calendar import CalendarTools
from paddock.tools.catalog import ToolCatalog
from paddock.tools.functions import FunctionTool, FunctionTools
from paddock.tools.loading import tools_in
from paddock.tools.mcp import McpTools

if TYPE_CHECKING:
    from paddock.telemetry.traces import Traces

MIB = 1024 * 1024


def periods(settings: Settings) -> Periods:
    return Periods(settings.conversation_days, settings.call_days, settings.audit_days)


def artifact_limits(settings: Settings) -> ArtifactLimits:
    return ArtifactLimits(
        keep_seconds=settings.artifact_days * 86_400.0 or None,
        workspace_bytes=settings.artifacts_mib * MIB,
        file_bytes=settings.max_file_mib * MIB,
    )


def attachments_of(
    settings: Settings, artifacts: Artifacts, store: Store, clock: Callable[[], float]
) -> UserAttachments:
    limits = AttachmentLimits(
        file_bytes=settings.attachment_mib * MIB,
        user_bytes=settings.uploads_mib * MIB,
        pixels=settings.image_megapixels * 1_000_000,
        pdf=settings.attach_pdf,
        url_seconds=settings.attachment_url_minutes * 60,
    )
    return UserAttachments(
        artifacts,
        store,
        ChildPictures(),
        keys=KeyFile(settings.signing_file, clock=clock),
        clock=clock,
        limits=limits,
        public_url=settings.public_url,
    )


def directories_of(settings: Settings) -> WorkingDirectories:
    root = settings.working_directories or settings.data / "workspaces"
    most, homes = settings.working_directory_mib * MIB, Homes(settings.data / "homes")
    return WorkingDirectories(root, apart_from=settings.data, most_bytes=most, homes=homes)


async def why_no_network(store: Store) -> str | None:
    """Return why sandboxes get no network: without a key every caller from this machine is accepted, also a sandboxed
    runner."""
    if await store.any_key():
        return None
    return "no API key exists yet, so it could call this host as anybody; create one first (paddock keys create)"


@dataclass(frozen=True, slots=True)
class NamedAgents:
    """The agents that the settings name, with the tools and files defined beside them."""

    defined: Defined
    files: AgentFiles
    functions: Sequence[FunctionTool] = ()
    watched: Path | None = None
    """The file that is read again when it changes."""
    seen: Marks = ()
    """The state of the file, and of its tools' files, before it was read."""


@dataclass(frozen=True, slots=True)
class Plugins:
    """The plugins of a host, and how to notice changes."""

    load: Callable[[], Catalog]
    mark: Callable[[], Mark]
    seen: Mark
    """The state of the list of installed plugins before it was read."""
    catalog: Catalog

    def watch(self, gateway: Gateway, audit: Audit, clock: Callable[[], float]) -> PluginsWatch:
        return PluginsWatch(gateway, load=self.load, mark=self.mark, seen=self.seen, note=audit.soon, clock=clock)


def named_agents(settings: Settings) -> NamedAgents:
    """Read the agents: from a Python program, a file, or the built-in ones. Raises AgentsFileError."""
    path, files = settings.agents, AgentFiles()
    seen = state_of(path) if path is not None else None
    if path is not None and is_program(path):
        program = load_program(path)
        return NamedAgents(program.defined, files, program.tools, watched=path, seen=(seen,))
    defined = defined_in(path, files)
    marks = (seen, *marks_of_tools(defined.resources.tools))
    return NamedAgents(defined, files, watched=path, seen=marks)


def plugins_of(settings: Settings) -> Plugins:
    path = settings.data / "plugins"

    def load() -> Catalog:
        return Catalog.load(installed=path, further=settings.plugins)

    def mark() -> Mark:
        return state_of(path / RECORD_FILE)

    return Plugins(load, mark, seen=mark(), catalog=load())


def models_of(settings: Settings, clock: Callable[[], float], named: Mapping[str, ModelSpec]) -> ModelCatalog:
    """Return the demo model, those found in the environment, those of the agents file, and those of the settings."""
    found = found_models(os.environ) if settings.discover_models else {}
    return load_models(
        {**found, **named, **settings.models}, clock=clock, environ=os.environ, default=settings.default_model
    )


def budgets_of(settings: Settings, store: Store, clock: Callable[[], float]) -> Budgets:
    user = Budget(settings.user_tokens_per_day, settings.user_cost_per_day, settings.user_model_calls)
    workspace = Budget(
        settings.workspace_tokens_per_day, settings.workspace_cost_per_day, settings.workspace_model_calls
    )
    return Budgets(store, user=user, workspace=workspace, clock=clock)


def servers_in(settings: Settings, named: NamedResources) -> Mapping[str, McpServerSpec]:
    return {**named.mcp_servers, **settings.mcp_servers}


def tools_of(
    own: FunctionTools, servers: McpTools, store: Store, clock: Callable[[], float]
) -> tuple[Calendars, ToolCatalog]:
    """Return the calendars, and all tools: the operator's own, those of MCP servers, the built-in ones. Of two with one
    name the first wins."""
    calendars = Calendars(store, clock=clock)
    given = FunctionTools(tools_in(builtin, "paddock", tool_type="builtin"), clock=clock)
    return calendars, ToolCatalog([own, servers, given, CalendarTools(calendars, clock=clock)])


@dataclass(frozen=True, slots=True)
class Outside:
    """The chat platforms, their webhooks, deliveries to them, and approvals that wait for a person."""

    webhooks: HttpWebhooks
    platforms: Platforms
    deliveries: Deliveries
    approvals: Approvals


def outside_of(
    settings: Settings,
    store: Store,
    outcomes: Outcomes,
    clock: Callable[[], float],
    attachments: Attachments,
    spawn: Spawn,
    url: str,
) -> Outside:
    webhooks = HttpWebhooks()
    platforms = Platforms(settings.platforms, reveal=revealed, webhooks=webhooks, records=store, clock=clock)
    base = settings.public_url or settings.own_url or url

    def address(workspace_id: str, user_id: str, artifact_id: str) -> str | None:
        signed = attachments.signed_url(artifact_id, workspace_id=workspace_id, user_id=user_id)
        return f"{base}{signed}" if signed is not None and signed.startswith("/") else signed

    deliveries = Deliveries(store, platforms, outcomes=outcomes, clock=clock, address=address)
    approvals = Approvals(store, platforms, outcomes=outcomes, clock=clock, spawn=spawn)
    return Outside(webhooks, platforms, deliveries, approvals)


def ingress_of(
    inbox: Inbox,
    store: Store,
    agents: Agents,
    attachments: Attachments,
    approvals: Approvals,
    pieces: DeltaStream,
    names: ThreadNames,
) -> Ingress:
    """Return the entry of platforms' events, with their files, and answers to questions asked there."""
    history = ClientHistory(store)
    return Ingress(
        inbox=inbox,
        records=store,
        agents=agents,
        files=ClientFiles(attachments),
        answers=ChatAnswers(store, history, Answers(history, approvals, clock=approvals.clock)),
        names=names,
        accepted=pieces.follow,
    )


def revealed(text: str) -> str:
    """Look up a reference to a secret; any other text is returned as it is."""
    return Key(text).read() or "" if text.startswith(("env:", "file:")) else text


def traces_of(settings: Settings) -> "Traces | None":
    """Return the traces for the collector that is set. The library is loaded only then."""
    if settings.traces is None:
        return None
    with needed_for("sending traces"):
        from paddock.telemetry.traces import traces_to

    return traces_to(settings.traces, version("paddock"))


def mark_of(data: Path) -> str:
    """Name a data directory in the environment of its processes, so that leftovers can be found."""
    return sha256(os.fsencode(data.resolve())).hexdigest()[:24]


def timeouts_of(settings: Settings) -> SessionTimeouts:
    return SessionTimeouts(
        input_ack=settings.session_input_ack_seconds,
        cancel_ack=settings.session_cancel_ack_seconds,
        manager=settings.session_manager_seconds,
        confirm=settings.session_confirm_seconds,
        queue=settings.session_queue_seconds,
    )
