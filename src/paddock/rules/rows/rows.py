"""The rows that follow from facts: what `projection.py` computes and every storage plug writes beside them."""

from typing import Literal, get_args

import msgspec

from paddock.rules.rows.automation import AboutCalendars, AboutJobs
from paddock.rules.rows.calls import Calls, ModelUsageRow
from paddock.rules.rows.deliveries import AboutPlatforms
from paddock.rules.rows.forgetting import Forgetting, Moving
from paddock.rules.values import Value

RunEnd = Literal["completed", "failed", "cancelled"]
RunStatus = Literal["queued", "running", RunEnd]
RUN_STATUSES: tuple[str, ...] = get_args(RunStatus)
TERMINAL_STATUSES = frozenset(get_args(RunEnd))


class RunRow(Value, frozen=True):
    """One run, whole: written again when it changes. JSON columns hold bytes; empty means none."""

    run_id: str
    session_id: str
    workspace_id: str
    user_id: str
    client_run_id: str
    agent_id: str
    runner_id: str
    status: str
    code: str | None
    message: str | None
    created_at: float
    started_at: float | None
    ended_at: float | None
    deadline_at: float | None
    first_seq: int
    last_seq: int
    grant: bytes
    usage: bytes
    subthread_id: str | None = None
    """The platform's thread inside the conversation that it happens in."""
    begun_seq: int | None = None
    """The fact that ended the wait of its input: it went to an agent, was taken in by another run, or was refused."""


class TranscriptRow(Value, frozen=True):
    """One item of the conversation. `seq` counts per session and is the fact's number, so order and cursors agree."""

    session_id: str
    seq: int
    item_id: str
    run_id: str | None
    role: str
    item_type: str
    agent_id: str | None
    content: str
    content_json: bytes
    created_at: float
    metadata: bytes
    subthread_id: str | None = None


class View(Value, frozen=True):
    """The part of a conversation that is asked for: of one of its platform's threads, as it stood at some moment."""

    subthread_id: str | None = None
    """None: what was said in none of them."""
    all_subthreads: bool = False
    as_of: int | None = None
    """The number of the fact that began a run: its own input, and what waited in line then, are left out."""

    def shows(self, subthread_id: str | None) -> bool:
        return self.all_subthreads or subthread_id == self.subthread_id


WHOLE = View(all_subthreads=True)


class StateRow(Value, frozen=True):
    """One value a runner keeps with the host; `value` None deletes it."""

    scope_key: str
    key: str
    value: bytes | None
    updated_at: float
    expected: str | None = None
    """Write it only if the value there has this version (`rules/log/chain.py`); None writes it in any case."""


class ArtifactRow(Value, frozen=True):
    """One file as it is known: whose it is, what it is, and the hash its bytes are kept under."""

    artifact_id: str
    workspace_id: str
    user_id: str | None
    conversation_id: str | None
    thread_id: str | None
    run_id: str | None
    agent_id: str | None
    runner_id: str | None
    source: str
    artifact_type: str
    mime_type: str
    name: str | None
    size: int
    sha256: str
    published: bool
    """Mentioned in the conversation; until then only the agent that made it may read it."""
    created_at: float
    expires_at: float | None
    metadata: bytes


class ArtifactAttached(Value, frozen=True):
    """An upload becomes part of a conversation, and is kept as long as files are. One that already is part of one stays
    where it is."""

    artifact_id: str
    conversation_id: str
    expires_at: float | None
    subthread_id: str | None = None


class ArtifactGone(Value, frozen=True):
    """Forget an artifact. Its bytes go when no row needs them any more."""

    artifact_id: str


class StorageRow(Value, frozen=True):
    """One blob a plugin keeps in an area; `sha256` None deletes it."""

    area_key: str
    key: str
    sha256: str | None
    size: int
    updated_at: float


class ArtifactsCap(Value, frozen=True):
    """A condition: with what is written beside it, a workspace's artifacts hold at most so many bytes."""

    workspace_id: str
    max_bytes: int


class UploadsCap(Value, frozen=True):
    """A condition: with what is written beside it, what one user uploaded holds at most so many bytes."""

    workspace_id: str
    user_id: str
    max_bytes: int


class StorageCap(Value, frozen=True):
    """A condition: with what is written beside it, an area holds at most so many bytes."""

    area_key: str
    max_bytes: int


class AuditRow(Value, frozen=True):
    """One decision: who asked for what, and what came of it. The reason stays here and is told to nobody else."""

    time: float
    workspace_id: str
    actor: str
    action: str
    resource: str
    scope: str
    result: str
    reason: str
    run_id: str | None = None
    runner_id: str | None = None
    session_id: str | None = None


class InboxRow(Value, frozen=True):
    """A request that a door accepted for a session: idempotent by `key`, with the answer given."""

    session_id: str
    key: str
    body_hash: bytes
    """Salted (`rules/log/chain.py`); empty when words of the request were erased."""
    run_id: str
    created_at: float
    opened_session: bool = False
    """Whether accepting it opened the session: part of the answer that a repeated request gets again."""


class SessionRow(Value, frozen=True):
    """To whom a session belongs; written once, when it is opened."""

    session_id: str
    workspace_id: str
    user_id: str
    created_at: float


class UserRow(Value, frozen=True):
    """A user's own settings; written whole. None: not set."""

    workspace_id: str
    user_id: str
    time_zone: str | None
    locale: str | None
    updated_at: float


class FeedbackRow(Value, frozen=True):
    """A rating of an answer by the conversation's owner; `rating` None takes it back."""

    session_id: str
    item_id: str
    rating: str | None
    comment: str
    updated_at: float


class LeftBehindRow(Value, frozen=True):
    """Items that the conversation left behind when its head was moved; they stay on record and are not read with it."""

    session_id: str
    first_seq: int
    last_seq: int


class ThreadNameRow(Value, frozen=True):
    """A client's name for a conversation; unique per user, deleted with the conversation."""

    workspace_id: str
    user_id: str
    name: str
    session_id: str


class AgentRow(Value, frozen=True):
    """One agent made over the API. `body` is its definition as JSON; empty takes the agent away."""

    workspace_id: str
    agent_id: str
    body: bytes
    updated_at: float
    updated_by: str


class PluginRow(Value, frozen=True):
    """One plugin that all hosts on a store have. `body` is its files as one archive; empty takes it away."""

    plugin: str
    """author/name"""
    version: str
    sha256: str
    """Of its files, as a person agreed to them."""
    body: bytes
    installed_at: float
    installed_by: str


class KeptMemberRow(Value, frozen=True):
    """State of an agent that was removed from a session, kept until it is invited again."""

    session_id: str
    agent_id: str
    left_at: float
    info: bytes


class TransactionRow(Value, frozen=True):
    """A transaction of a session that is under way; written again with `over` when it has ended, which forgets it."""

    tx_id: str
    session_id: str
    kind: str
    created_at: float
    over: bool = False


class SessionDetailsRow(Value, frozen=True):
    """Details that people set on a conversation. None leaves a field as it is."""

    session_id: str
    title: str | None = None
    archived: bool | None = None
    closed: bool | None = None
    suggested: bool = False
    """An agent's title: it counts only where there is none."""


BEGINS_CHARS = 200
BEGINS_FACTS = 200


ERASED_WORDS = "This message was erased."
"""What is shown in the place of erased words where a client knows no mark for them."""


def is_erased(item: TranscriptRow) -> bool:
    return b'"erased":true' in item.metadata and msgspec.json.decode(item.metadata).get("erased") is True


class SessionSummary(Value, frozen=True):
    """A conversation in a list. `number` is the order in which conversations were opened.

    `begins`: the first `BEGINS_CHARS` characters of the first thing its user says in its present course, where that is
    among the first `BEGINS_FACTS` facts; looked up only where there is no title.
    """

    session_id: str
    workspace_id: str
    user_id: str
    created_at: float
    updated_at: float
    items: int
    number: int
    title: str | None = None
    archived: bool = False
    closed: bool = False
    begins: str | None = None
    automation_id: str | None = None
    """The job that talks in it."""


WORDS_CHARS = 60
READ_CHARS = 4_000
"""Of a message, for its beginning."""


def session_name(session: SessionSummary) -> str | None:
    """None while nothing was said in it."""
    return session.title or shortened(session.begins or "") or None


def shortened(text: str) -> str:
    """The beginning of a message on one line, cut between words where there are any; whom it calls is left out."""
    line = " ".join("".join(char if char.isprintable() else " " for char in text[:READ_CHARS]).split())
    called, _, rest = line.partition(" ")
    line = rest if called.startswith("@") and rest else line
    if len(line) <= WORDS_CHARS:
        return line
    whole, _, _ = line[:WORDS_CHARS].rpartition(" ")
    return (whole if len(whole) > WORDS_CHARS // 2 else line[: WORDS_CHARS - 1]) + "…"


AboutSessions = KeptMemberRow | TransactionRow | SessionDetailsRow | Forgetting
Kept = (
    ArtifactRow | ArtifactAttached | ArtifactGone | StorageRow | ArtifactsCap | UploadsCap | StorageCap | AboutSessions
)
"""Rows about bytes that are kept outside the log, and conditions on them: one that fails fails its writer alone."""
AboutPeople = UserRow | FeedbackRow | LeftBehindRow | ThreadNameRow
Apart = (
    AgentRow
    | PluginRow
    | AuditRow
    | StateRow
    | Calls
    | AboutPeople
    | AboutJobs
    | AboutPlatforms
    | AboutCalendars
    | Moving
    | Kept
)
"""Rows that may be written without any fact of a session."""
Row = RunRow | TranscriptRow | InboxRow | SessionRow | Apart
NotedRow = AuditRow | ModelUsageRow
"""What may follow shortly after the thing it tells of, and is on record before the end of its run is."""
