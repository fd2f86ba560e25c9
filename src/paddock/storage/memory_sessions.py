"""The part of the memory store that knows conversations beside their logs: details, kept members, transactions."""

from collections.abc import Sequence

from paddock.rules.rows.rows import KeptMemberRow, SessionDetailsRow, TransactionRow
from paddock.rules.values import replace


class MemorySessions:
    def __init__(self) -> None:
        super().__init__()
        self._details: dict[str, SessionDetailsRow] = {}
        self._kept: dict[tuple[str, str], KeptMemberRow] = {}
        self._under_way: dict[str, TransactionRow] = {}

    async def kept_member(self, session_id: str, agent_id: str) -> KeptMemberRow | None:
        return self._kept.get((session_id, agent_id))

    async def sessions_with_transactions(self) -> Sequence[str]:
        return sorted({row.session_id for row in self._under_way.values()})

    def _write_about_session(self, row: KeptMemberRow | TransactionRow | SessionDetailsRow) -> None:
        match row:
            case KeptMemberRow():
                self._kept[row.session_id, row.agent_id] = row
            case TransactionRow(over=True):
                self._under_way.pop(row.tx_id, None)
            case TransactionRow():
                self._under_way.setdefault(row.tx_id, row)
            case SessionDetailsRow():
                known = self._details.get(row.session_id) or SessionDetailsRow(row.session_id)
                given = {"title": row.title, "archived": row.archived, "closed": row.closed}
                changes = {name: value for name, value in given.items() if value is not None}
                if row.suggested and known.title is not None:
                    changes.pop("title", None)
                self._details[row.session_id] = replace(known, **changes)

    def _forget_details(self, session_id: str) -> None:
        self._details.pop(session_id, None)
        self._kept = {key: row for key, row in self._kept.items() if key[0] != session_id}
        self._under_way = {key: row for key, row in self._under_way.items() if row.session_id != session_id}
