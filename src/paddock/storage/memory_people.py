"""The part of the memory store that knows people: what they set, what they said of answers, what they left behind."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence

from paddock.rules.rows.rows import FeedbackRow, LeftBehindRow, SessionRow, ThreadNameRow, UserRow


class MemoryPeople:
    def __init__(self) -> None:
        super().__init__()
        self._users: dict[tuple[str, str], UserRow] = {}
        self._feedback: dict[tuple[str, str], FeedbackRow] = {}
        self._names: dict[tuple[str, str, str], str] = {}
        self._left_behind: dict[str, list[tuple[int, int]]] = {}

    async def user(self, workspace_id: str, user_id: str) -> UserRow | None:
        return self._users.get((workspace_id, user_id))

    async def feedback(self, session_id: str, item_ids: Sequence[str]) -> Mapping[str, FeedbackRow]:
        keys = ((session_id, item_id) for item_id in item_ids)
        return {key[1]: self._feedback[key] for key in keys if key in self._feedback}

    async def thread_named(self, workspace_id: str, user_id: str, name: str, first: str, old: str) -> str | None:
        if (known := self._names.get((workspace_id, user_id, name))) is not None:
            return known
        session = await self.session(old)
        if session is not None and (session.workspace_id, session.user_id) == (workspace_id, user_id):
            return old
        return None if await self.is_buried(first) else first

    @abstractmethod
    async def session(self, session_id: str) -> SessionRow | None: ...

    @abstractmethod
    async def is_buried(self, session_id: str) -> bool: ...

    def _is_present(self, session_id: str, seq: int) -> bool:
        return not any(first <= seq <= last for first, last in self._left_behind.get(session_id, ()))

    def _write_about_people(self, row: UserRow | FeedbackRow | LeftBehindRow | ThreadNameRow) -> None:
        match row:
            case UserRow():
                self._users[row.workspace_id, row.user_id] = row
            case ThreadNameRow():
                self._names[row.workspace_id, row.user_id, row.name] = row.session_id
            case LeftBehindRow():
                self._left_behind.setdefault(row.session_id, []).append((row.first_seq, row.last_seq))
            case FeedbackRow(rating=None):
                self._feedback.pop((row.session_id, row.item_id), None)
            case FeedbackRow():
                self._feedback[row.session_id, row.item_id] = row

    def _forget_opinions(self, session_id: str) -> None:
        self._feedback = {key: row for key, row in self._feedback.items() if key[0] != session_id}
        self._names = {key: held for key, held in self._names.items() if held != session_id}
        self._left_behind.pop(session_id, None)
