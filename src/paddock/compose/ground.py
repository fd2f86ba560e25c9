"""What the rest of the house stands on, and what a run can be granted. Two stages of `build`, in their order."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from paddock.compose.cluster import Neighbourhood, blobs_of, neighbourhood_of
from paddock.compose.house import Tasks
from paddock.compose.named import NamedParts
from paddock.compose.parts import (
    NamedAgents,
    artifact_limits,
    attachments_of,
    budgets_of,
    named_agents,
    platforms_of,
    tool_calls_of,
    tools_of,
)
from paddock.host.agents.agents import Agents
from paddock.host.agents.files import AgentFiles, first_of
from paddock.host.automation.calendar import Calendars
from paddock.host.calls.artifacts import Artifacts
from paddock.host.calls.embeddings import Embeddings
from paddock.host.calls.events import Events
from paddock.host.calls.knowledge import DocumentOriginals
from paddock.host.calls.models import ModelCalls
from paddock.host.calls.tools import ToolCalls
from paddock.host.calls.workspace_resources import Offers
from paddock.host.conversations.attachments import UserAttachments
from paddock.host.keeping.audit import Audit
from paddock.host.people.approvals import Approvals
from paddock.host.people.metering import Metering
from paddock.host.platforms.deliveries import Deliveries
from paddock.host.platforms.platforms import Platforms
from paddock.host.runs.outcomes import Outcomes
from paddock.host.streams.tails import Tails
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.models.demo import NAME as DEMO
from paddock.platforms.webhooks import HttpWebhooks
from paddock.ports import Store
from paddock.ports.artifacts import Blobs
from paddock.rules.cluster.secret import ClusterSecret
from paddock.settings import Settings
from paddock.storage.chosen import knowledge_in, store_at
from paddock.storage.files.cluster_secret import find as find_secret
from paddock.tools.catalog import ToolCatalog


@dataclass(frozen=True, slots=True)
class Ground:
    """The store and what reads it for everybody."""

    settings: Settings
    clock: Callable[[], float]
    tasks: Tasks
    files: AgentFiles
    named: NamedAgents
    store: Store
    near: Neighbourhood
    tails: Tails
    audit: Audit
    outcomes: Outcomes
    blobs: Blobs
    events: Events
    artifacts: Artifacts
    secret: ClusterSecret

    @property
    def agents(self) -> Agents:
        return self.named.agents


def lay_ground(settings: Settings, url: str) -> Ground:
    tasks, files = Tasks(), AgentFiles()
    named = named_agents(settings, files)
    store = store_at(settings.store, settings.data, serving=True, url=settings.own_url or url)
    near, blobs, events = neighbourhood_of(settings, store), blobs_of(settings), Events(store)
    clock = near.hosts.clock if near.hosts is not None else time.time
    raw = first_of(events.raw, files.raw)
    return Ground(
        settings=settings,
        clock=clock,
        tasks=tasks,
        files=files,
        named=named,
        store=store,
        near=near,
        tails=Tails(store, near.live),
        audit=Audit(store, tasks.spawn),
        outcomes=Outcomes(store),
        blobs=blobs,
        events=events,
        artifacts=Artifacts(store, blobs, clock=clock, limits=artifact_limits(settings), raw=raw),
        secret=find_secret(settings.data),
    )


@dataclass(frozen=True, slots=True)
class Resources:
    """Models, tools, knowledge, files of users, and the platforms a run may act on."""

    beside: NamedParts
    calendars: Calendars
    model_calls: ModelCalls
    tools: ToolCatalog
    tool_calls: ToolCalls
    ingest: Ingest
    bases: Bases
    offers: Offers
    attachments: UserAttachments
    webhooks: HttpWebhooks
    platforms: Platforms
    deliveries: Deliveries
    approvals: Approvals


def gather_resources(ground: Ground, url: str) -> Resources:
    settings, store, clock, spawn = ground.settings, ground.store, ground.clock, ground.tasks.spawn
    beside = NamedParts(settings, ground.named.resources, ground.named.functions, clock=clock, spawn=spawn)
    models, kept = beside.models, knowledge_in(store)
    calendars, tools = tools_of(beside.functions, beside.servers, store, clock)
    budgets = budgets_of(settings, store, clock)
    metering = Metering(models, note=ground.audit.soon, clock=clock, budgets=budgets)
    embed = Embeddings(models, metering)
    originals = DocumentOriginals(ground.artifacts, store, ground.blobs)
    ingest = Ingest(kept, embed=embed, clock=clock, originals=originals)
    bases = Bases(kept, ingest, embed=embed, clock=clock, originals=originals)
    attachments = attachments_of(settings, ground.artifacts, store, clock)
    webhooks, platforms, deliveries = platforms_of(settings, store, ground.outcomes, clock, attachments, url)
    return Resources(
        beside=beside,
        calendars=calendars,
        model_calls=ModelCalls(models, metering, clock=clock),
        tools=tools,
        tool_calls=tool_calls_of(settings, tools, ground.artifacts, store, ground.outcomes, clock),
        ingest=ingest,
        bases=bases,
        offers=Offers(
            models=models, tools=tools, knowledge=bases, clock=clock, default_model=settings.default_model or DEMO
        ),
        attachments=attachments,
        webhooks=webhooks,
        platforms=platforms,
        deliveries=deliveries,
        approvals=Approvals(store, platforms, outcomes=ground.outcomes, clock=clock, spawn=spawn),
    )
