"""Builds the store and the parts that read it, then everything a run can be granted. The first two stages."""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

import structlog

from paddock.compose import parts
from paddock.compose.cluster import Neighbourhood, blobs_of, neighbourhood_of
from paddock.compose.named import NamedParts
from paddock.host.agents.files import first_of
from paddock.host.audit import Audit
from paddock.host.automation.calendar import Calendars
from paddock.host.calls.artifacts import Artifacts
from paddock.host.calls.events import Events
from paddock.host.calls.knowledge import DocumentOriginals, Embeddings
from paddock.host.calls.metering import Metering
from paddock.host.calls.models import ModelCalls
from paddock.host.calls.settling import Settling
from paddock.host.calls.tool_files import ToolFiles
from paddock.host.calls.tools import ToolCalls
from paddock.host.conversations.attachments import UserAttachments
from paddock.host.outage import Outage
from paddock.host.runs.live_runs import Admission, LiveRuns
from paddock.host.runs.outcomes import Outcomes
from paddock.host.runs.workspace_resources import WorkspaceResources
from paddock.host.session.memory import SessionLoops
from paddock.host.streams.tails import Tails
from paddock.images.cleaning import ChildPictures
from paddock.knowledge.bases import Bases
from paddock.knowledge.ingest import Ingest
from paddock.models.demo import NAME as DEMO
from paddock.ports import Store
from paddock.ports.artifacts import Blobs
from paddock.rules.cluster import ClusterSecret
from paddock.settings import Settings
from paddock.storage.chosen import knowledge_in, store_at
from paddock.storage.files.cluster_secret import find as find_secret
from paddock.tools.catalog import ToolCatalog

log = structlog.get_logger("paddock.house")


class Tasks:
    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a task of the house failed", action="house.task", exc_info=error)


@dataclass(frozen=True, slots=True)
class Present:
    """The runs and sessions of this moment. Built first, because the gate, the runs, the sessions and the tails need
    it."""

    runs: LiveRuns
    loops: SessionLoops
    outage: Outage


@dataclass(frozen=True, slots=True)
class Foundation:
    """The store and the parts that everything shares."""

    settings: Settings
    clock: Callable[[], float]
    tasks: Tasks
    named: parts.NamedAgents
    store: Store
    blobs: Blobs
    secret: ClusterSecret
    near: Neighbourhood
    present: Present
    tails: Tails
    audit: Audit
    outcomes: Outcomes


def lay_foundation(settings: Settings, url: str) -> Foundation:
    tasks, named = Tasks(), parts.named_agents(settings)
    store = store_at(settings.store, settings.data, serving=True, url=settings.own_url or url)
    near = neighbourhood_of(settings, store)
    members, link = near.members, near.link
    admission, loops = Admission(settings.max_runs), SessionLoops()
    runs = LiveRuns(admission, members.held) if members is not None else LiveRuns(admission)
    return Foundation(
        settings=settings,
        clock=link.hosts.clock if link is not None else time.time,
        tasks=tasks,
        named=named,
        store=store,
        blobs=blobs_of(settings),
        secret=find_secret(settings.data),
        near=near,
        present=Present(runs, loops, Outage(store, members.held if members is not None else None)),
        tails=Tails(store, link.live if link is not None else None, loops.works_on),
        audit=Audit(store, tasks.spawn),
        outcomes=Outcomes(store),
    )


@dataclass(frozen=True, slots=True)
class Documents:
    """Knowledge bases, and the ingestion of documents."""

    ingest: Ingest
    bases: Bases


@dataclass(frozen=True, slots=True)
class Resources:
    """Models, tools, knowledge, files, and the platforms that a run may act on."""

    beside: NamedParts
    events: Events
    artifacts: Artifacts
    attachments: UserAttachments
    documents: Documents
    calendars: Calendars
    tools: ToolCatalog
    tool_calls: ToolCalls
    model_calls: ModelCalls
    settling: Settling
    of_workspaces: WorkspaceResources
    outside: parts.Outside


def gather_resources(ground: Foundation, url: str) -> Resources:
    settings, store, clock, spawn = ground.settings, ground.store, ground.clock, ground.tasks.spawn
    named, live = ground.named, ground.present.runs
    beside = NamedParts(settings, named.defined.resources, named.functions, clock=clock, spawn=spawn, live=live.ids)
    events = Events(store)
    raw = first_of(events.raw, named.files.raw)
    artifacts = Artifacts(store, ground.blobs, clock=clock, limits=parts.artifact_limits(settings), raw=raw)
    attachments = parts.attachments_of(settings, artifacts, store, clock)
    calendars, tools = parts.tools_of(beside.functions, beside.servers, store, clock)
    metering = Metering(
        beside.models, note=ground.audit.soon, clock=clock, budgets=parts.budgets_of(settings, store, clock)
    )
    documents = _documents(ground, artifacts, Embeddings(beside.models, metering))
    return Resources(
        beside=beside,
        events=events,
        artifacts=artifacts,
        attachments=attachments,
        documents=documents,
        calendars=calendars,
        tools=tools,
        tool_calls=ToolCalls(
            tools,
            records=store,
            outcomes=ground.outcomes,
            clock=clock,
            artifacts=artifacts,
            files=ToolFiles(artifacts, ChildPictures(), max_pixels=settings.image_megapixels * 1_000_000),
            goes_on=live.goes_on,
        ),
        model_calls=ModelCalls(beside.models, metering),
        settling=Settling(store, clock),
        of_workspaces=WorkspaceResources(
            models=beside.models,
            tools=tools,
            knowledge=documents.bases,
            clock=clock,
            default_model=settings.default_model or DEMO,
        ),
        outside=parts.outside_of(settings, store, ground.outcomes, clock, attachments, spawn, url),
    )


def _documents(ground: Foundation, artifacts: Artifacts, embed: Embeddings) -> Documents:
    kept, clock = knowledge_in(ground.store), ground.clock
    originals = DocumentOriginals(artifacts, ground.store, ground.blobs)
    ingest = Ingest(kept, embed=embed, clock=clock, originals=originals, may_work=ground.near.keeps_house)
    return Documents(ingest, Bases(kept, ingest, embed=embed, clock=clock, originals=originals))
