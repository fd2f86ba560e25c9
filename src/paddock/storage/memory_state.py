"""The part of the memory store that keeps state: small values by scope and key, with the versions they replace."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from paddock.ports import ScopeState
from paddock.rules.log.versions import check_version
from paddock.rules.rows.rows import Row, StateRow
from paddock.storage.room import scopes_in


class MemoryState:
    def __init__(self) -> None:
        super().__init__()
        self._state: dict[tuple[str, str], StateRow] = {}

    async def state(self, scope_key: str, key: str) -> bytes | None:
        row = self._state.get((scope_key, key))
        return row.value if row else None

    async def state_snapshot(self, scope_keys: Sequence[str], *, max_bytes: int) -> Mapping[str, ScopeState]:
        found = (
            (scope, key, len(value), value) for scope in scope_keys for key, value in sorted(self._values_of(scope))
        )
        return scopes_in(found, scope_keys, max_bytes)

    async def state_size(self, scope_key: str) -> int:
        return sum(len(value) for _, value in self._values_of(scope_key))

    def _check_state(self, rows: Sequence[Row]) -> None:
        """Values that were expected to be others, before anything is written."""
        now: dict[tuple[str, str], bytes | None] = {}
        for row in rows:
            if isinstance(row, StateRow):
                known = self._state.get((row.scope_key, row.key))
                check_version(row.expected, now.get((row.scope_key, row.key), known and known.value), row.key)
                now[row.scope_key, row.key] = row.value

    def _write_state(self, row: StateRow) -> None:
        if row.value is None:
            self._state.pop((row.scope_key, row.key), None)
        else:
            self._state[row.scope_key, row.key] = row

    def _forget_state(self, scope_keys: Collection[str]) -> None:
        self._state = {key: row for key, row in self._state.items() if key[0] not in scope_keys}

    def _values_of(self, scope_key: str) -> Iterable[tuple[str, bytes]]:
        return ((key, row.value or b"") for (scope, key), row in self._state.items() if scope == scope_key)
