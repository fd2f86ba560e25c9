"""Files inside a client's message: kept here and referred to by id. No address that a client names is fetched."""

import re

from paddock.host.calls.artifacts import decoded
from paddock.host.people.principals import Principal
from paddock.ports.attachments import AttachmentRef, Attachments
from paddock.rules.conversations.client_history import Media
from paddock.rules.errors import ErrorCode, HostError

MAX_FILE_BYTES = 6 * 1024 * 1024
"""Most bytes of an inline file: larger ones are uploaded first."""
NOT_OURS = "its url is none that this host signed for you, and others are never fetched"
NO_SUCH_FILE = "there is no such attachment; upload it first"
_DATA_URL = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*;base64,", re.ASCII)
_UNUSABLE = frozenset({ErrorCode.INVALID_ARGUMENT, ErrorCode.PAYLOAD_TOO_LARGE, ErrorCode.NOT_FOUND})


class ClientFiles:
    def __init__(self, attachments: Attachments) -> None:
        self._attachments = attachments

    async def store(self, principal: Principal, session_id: str, media: Media) -> AttachmentRef | str:
        """Return the kept file, or why it cannot be used."""
        try:
            return await self._taken(principal, session_id, media)
        except HostError as error:
            if error.code not in _UNUSABLE:
                raise
            return error.message

    async def need(self, principal: Principal, session_id: str, media: Media, where: str) -> AttachmentRef:
        """Keep a file that the message cannot do without. Raises HostError that names its position."""
        try:
            found = await self._taken(principal, session_id, media)
        except HostError as error:
            text = f"{where}: {error.message}"
            raise HostError(error.code, text, retryable=error.retryable) from error
        if isinstance(found, str):
            text = NO_SUCH_FILE if media.file_id is not None else found
            raise HostError(ErrorCode.INVALID_ARGUMENT, f"{where}: {text}")
        return found

    async def _taken(self, principal: Principal, session_id: str, media: Media) -> AttachmentRef | str:
        who = {"workspace_id": principal.workspace_id, "user_id": principal.user_id}
        inline = _DATA_URL.match(media.url) if media.url else None
        if media.data is not None or inline is not None:
            given = media.data if media.data is not None else str(media.url)[inline.end() if inline else 0 :]
            return await self._attachments.keep(decoded(given, "data", MAX_FILE_BYTES), name=media.filename, **who)
        url = media.url
        if not url and media.file_id:
            url = self._attachments.signed_url(media.file_id, by=principal.credential, **who)
        if not url:
            return "it has neither data nor a url"
        found = await self._attachments.resolve(
            url, workspace_id=principal.workspace_id, user_id=principal.user_id, session_id=session_id
        )
        return found or NOT_OURS
