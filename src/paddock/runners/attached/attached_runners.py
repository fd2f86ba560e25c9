"""Runners attached from elsewhere: who is there, for which workspace, and what they are called there."""

from collections.abc import Callable, Iterator, Mapping, Sequence

from paddock.ports import RunnerStatus
from paddock.rules.errors import ErrorCode, HostError
from paddock.runners.attached.attach import AttachedRunner, AttachTransport, Ticket
from paddock.runners.processes.shared import Surroundings
from paddock_sdk.protocol.ids import RunnerId
from paddock_sdk.protocol.manifest import AgentRunnerPermissions

MAX_OF_ONE = 50
"""Connections of runners attached for one workspace, at one host."""
MAX_GUESTS = 1000
ELSEWHERE = "elsewhere"
"""The isolation of a runner on a machine we know nothing of."""


class Guests:
    """Those who asked to come in, and those of them who have shaken hands and serve runs."""

    def __init__(
        self, around: Surroundings, *, elsewhere: Callable[[], Sequence[str]], on_change: Callable[[str], None]
    ) -> None:
        """`elsewhere` is where a runner attaches, too, that attached here; `on_change` is told the workspace that
        somebody came to, or left."""
        self._around = around
        self._elsewhere = elsewhere
        self._on_change = on_change
        self._visitors: set[AttachedRunner] = set()
        self._serving: dict[str, list[AttachedRunner]] = {}
        """By plugin, in the order they came."""

    def __iter__(self) -> Iterator[AttachedRunner]:
        return (guest for each in self._serving.values() for guest in each)

    def __len__(self) -> int:
        return sum(map(len, self._serving.values()))

    def let_in(
        self, ticket: Ticket, transport: AttachTransport, ceiling: AgentRunnerPermissions | None
    ) -> AttachedRunner:
        """It serves new runs of its plugin in its workspace once it has shaken hands. Raises HostError for too many."""
        theirs = sum(visitor.ticket.workspace == ticket.workspace for visitor in self._visitors)
        if theirs >= MAX_OF_ONE or len(self._visitors) >= MAX_GUESTS:
            said = f"as many runners are attached as may be ({MAX_OF_ONE} for a workspace); let one go first"
            raise HostError(ErrorCode.RATE_LIMITED, said, retryable=True)
        visitor = AttachedRunner(
            ticket,
            transport,
            self._around,
            ceiling=ceiling,
            peers=self._elsewhere,
            on_ready=self._arrived,
            on_gone=self._left,
        )
        self._visitors.add(visitor)
        return visitor

    def tell_peers(self) -> None:
        """Other hosts came or went."""
        for visitor in list(self._visitors):
            visitor.tell_peers()

    def show_out(self, code: str, message: str) -> None:
        for visitor in list(self._visitors):
            visitor.end(code, message)

    def serve(self, plugin: str) -> bool:
        """Whether anybody serves this plugin, for whichever workspace."""
        return bool(self._serving.get(plugin))

    def of(self, workspace: str | None) -> list[AttachedRunner]:
        """Those attached for a workspace; for any when none is named."""
        return [guest for guest in self if workspace in (None, guest.ticket.workspace)]

    def of_plugin(self, plugin: str, workspace: str | None) -> Iterator[AttachedRunner]:
        """The same of one plugin, who came last first."""
        guests = reversed(self._serving.get(plugin, ()))
        return (guest for guest in guests if workspace in (None, guest.ticket.workspace))

    def names(self, workspace: str) -> Mapping[str, str]:
        """Short names of the runners that are attached for a workspace."""
        return {_short_name(runner_id): runner_id for guest in self.of(workspace) for runner_id in guest.manifests}

    def statuses(self, workspace: str | None) -> list[RunnerStatus]:
        return [status for guest in self.of(workspace) for status in _statuses(guest)]

    def _arrived(self, visitor: AttachedRunner) -> None:
        if visitor in self._visitors:
            self._serving.setdefault(str(visitor.ticket.plugin), []).append(visitor)
            self._on_change(visitor.ticket.workspace)

    def _left(self, visitor: AttachedRunner) -> None:
        self._visitors.discard(visitor)
        guests = self._serving.get(str(visitor.ticket.plugin), [])
        if visitor in guests:
            guests.remove(visitor)
            self._on_change(visitor.ticket.workspace)


def _short_name(runner_id: str) -> str:
    known = RunnerId.parse(runner_id)
    return known.name if known.runner == "default" else f"{known.name}-{known.runner}"


def _statuses(guest: AttachedRunner) -> list[RunnerStatus]:
    plugin, detail = str(guest.ticket.plugin), f"for workspace {guest.ticket.workspace}"
    return [
        RunnerStatus(runner_id, plugin, "attached", isolation=ELSEWHERE, detail=detail, manifest=manifest)
        for runner_id, manifest in guest.manifests.items()
    ]
