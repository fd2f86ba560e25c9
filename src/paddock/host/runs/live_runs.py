"""The runs of this host that have not ended. Built before the gate, the runners and the runs, which all need it."""

from collections.abc import Callable, Iterator

from paddock.host.runs.admission import Admission
from paddock.host.runs.live_run import LiveRun

NO_LIMIT = 1_000_000


def always() -> bool:
    return True


class LiveRuns:
    def __init__(self, admission: Admission | None = None, held: Callable[[], bool] = always) -> None:
        """`held`: whether this host still owns what it runs, where others may have taken it over."""
        self.admission = admission or Admission(NO_LIMIT)
        self.held = held
        self.by_id: dict[str, LiveRun] = {}

    def __iter__(self) -> Iterator[LiveRun]:
        return iter(list(self.by_id.values()))

    def __len__(self) -> int:
        return len(self.by_id)

    def find(self, run_id: str) -> LiveRun | None:
        """The run, while this host may act for it."""
        return self.by_id.get(run_id) if self.held() else None

    def goes_on(self, run_id: str) -> bool:
        return self.find(run_id) is not None

    def ids(self) -> list[str]:
        return list(self.by_id)

    def add(self, run: LiveRun) -> None:
        if run.turn_id not in self.by_id:
            self.admission.entered(run.grant.scope.workspace_id)
        self.by_id[run.turn_id] = run

    def remove(self, turn_id: str) -> LiveRun | None:
        run = self.by_id.pop(turn_id, None)
        if run is not None:
            self.admission.left(run.grant.scope.workspace_id)
        return run
