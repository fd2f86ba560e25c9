"""Readiness of a host for new work, for load balancers and people. Numbers only: no key is needed to ask."""

from paddock.host.agents.health import AgentHealth
from paddock.host.cluster.peers import Peers
from paddock.host.people.principals import HOME
from paddock.host.runs.admission import Admission
from paddock.ports import Store
from paddock.runners.gateway import Gateway


class Readiness:
    def __init__(
        self, *, store: Store, admission: Admission, health: AgentHealth, gateway: Gateway, peers: Peers | None
    ) -> None:
        self._store = store
        self._admission = admission
        self._health = health
        self._gateway = gateway
        self._peers = peers
        self._open = False

    def opened(self) -> None:
        self._open = True

    def closing(self) -> None:
        self._open = False

    def now(self) -> tuple[bool, str]:
        if self._admission.closed:
            return False, "being stopped"
        if not self._open:
            return False, "starting"
        if not self._store.healthy():
            return False, "the store cannot write"
        if self._admission.full:
            return False, "full: as many runs as max_runs allows"
        if self._peers is not None and not self._peers.held():
            return False, "the others may take this host for gone"
        return True, "; ".join(["ready", *self._remarks()])

    def _remarks(self) -> list[str]:
        """Problems that do not keep the host from working, but that somebody should see to."""
        unable = self._health.unable(HOME)
        remarks = [f"{unable} of the agents cannot answer (GET /api/v1/agents says which)"] if unable else []
        if failing := self._gateway.failing():
            remarks.append(f"{failing} of the runners keep failing (GET /api/v1/runners says which)")
        if self._health.file_problem is not None:
            remarks.append(
                "the agents file cannot be used, so the agents stay as they were (GET /api/v1/agents says why)"
            )
        if self._peers is not None and self._peers.bus_is_away():
            remarks.append("the bus is away: streams of other hosts are read from the store")
        return remarks
