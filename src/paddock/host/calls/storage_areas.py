"""Blobs that plugins keep with the host, by area and key. Every method takes the grant that allows it.

A value larger than one call can carry comes in parts. They are collected in an area of their own, per run, and become
the value with the last part. Rows name bytes by their hash; bytes that no row names are freed.
"""

from base64 import b64encode
from collections.abc import AsyncIterator, Mapping

import structlog

from paddock.host.calls.artifacts import decoded, free
from paddock.host.calls.work import NOT_GRANTED, CallHandler
from paddock.ports import KeptRecords
from paddock.ports.artifacts import Blobs
from paddock.rules.access.limits import MAX_BLOB_BYTES, MAX_KEYS_PAGE, MAX_STORAGE_KEY_CHARS, MAX_STORAGE_VALUE_BYTES
from paddock.rules.access.permissions import Grant, area_key, upload_area
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.rows.rows import AuditRow, StorageCap, StorageRow
from paddock_sdk.protocol import host_calls

log = structlog.get_logger("paddock.storage")

READ_BYTES = MAX_STORAGE_VALUE_BYTES
MAX_UPLOADS_BYTES = 2 * MAX_BLOB_BYTES
"""Most bytes that may wait unfinished in one area of one run."""
AREA_BYTES = 256 * 1024 * 1024


class StorageAreas:
    def __init__(self, records: KeptRecords, blobs: Blobs, *, area_bytes: int = AREA_BYTES) -> None:
        self._records = records
        self._blobs = blobs
        self._area_bytes = area_bytes

    @property
    def work(self) -> Mapping[str, CallHandler]:
        return {
            "storage.get": CallHandler(read=self.get),
            "storage.set": CallHandler(write=self.set),
            "storage.delete": CallHandler(write=self.delete),
            "storage.list": CallHandler(read=self.list),
        }

    async def get(self, grant: Grant, asked: host_calls.StorageGetParams) -> host_calls.StorageGetResult:
        """Return the value, or as much as one answer can carry, with the position where the rest begins."""
        offset = asked.offset or 0
        if offset < 0:
            raise HostError(ErrorCode.INVALID_ARGUMENT, "offset must not be negative")
        row, content = await self._read(_area(asked.area, grant), asked.key, offset)
        if row is None or row.sha256 is None:
            return host_calls.StorageGetResult(found=False)
        return host_calls.StorageGetResult(
            value_base64=b64encode(content).decode(),
            found=True,
            size_bytes=row.size,
            version=row.sha256[:24],
            has_more=offset + len(content) < row.size,
        )

    async def _read(self, area: str, key: str, offset: int) -> tuple[StorageRow | None, bytes]:
        """Return a row and bytes of it. When the row was replaced in between, its bytes are gone; the new row is
        used."""
        row = await self._records.stored(area, key)
        while row is not None and row.sha256 is not None and offset < row.size:
            try:
                return row, await self._blobs.read(row.sha256, offset, min(READ_BYTES, row.size - offset))
            except HostError:
                newer = await self._records.stored(area, key)
                if newer == row:
                    raise
                row = newer
        return row, b""

    async def set(self, grant: Grant, asked: host_calls.StorageSetParams, audit: AuditRow) -> host_calls.Done:
        """Keep a value whole, or one part of it."""
        if not asked.key or len(asked.key) > MAX_STORAGE_KEY_CHARS or not asked.key.isprintable():
            text = f"a key has 1 to {MAX_STORAGE_KEY_CHARS} printable characters"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)
        content = decoded(asked.value_base64, "value_base64", MAX_STORAGE_VALUE_BYTES)
        area = _area(asked.area, grant)
        parts = upload_area(area, grant)
        begun = await self._begun(parts, asked) if asked.offset else None
        where, most = (parts, MAX_UPLOADS_BYTES) if asked.more else (area, self._area_bytes)
        old = await self._records.stored(where, asked.key)
        async with self._blobs.keep(self._joined(begun, content), max_bytes=MAX_BLOB_BYTES) as blob:
            row = StorageRow(where, asked.key, blob.sha256, blob.size, audit.time)
            done = [StorageRow(parts, asked.key, None, 0, audit.time)] if begun and not asked.more else []
            await self._records.write([row, *done, StorageCap(where, most), audit])
        await self._free(begun, old)
        return host_calls.Done(ok=True)

    async def _begun(self, parts: str, asked: host_calls.StorageSetParams) -> StorageRow:
        """Return the parts so far; the next one must begin where they end."""
        begun = await self._records.stored(parts, asked.key)
        if begun is None or begun.size != asked.offset:
            text = f"offset must be {begun.size if begun else 0}: the parts of a value follow each other"
            raise HostError(ErrorCode.INVALID_ARGUMENT, text)
        return begun

    async def delete(self, grant: Grant, asked: host_calls.StorageDeleteParams, audit: AuditRow) -> host_calls.Deleted:
        area = _area(asked.area, grant)
        row = await self._records.stored(area, asked.key)
        await self._records.write([StorageRow(area, asked.key, None, 0, audit.time), audit])
        await self._free(row)
        return host_calls.Deleted(deleted=row is not None)

    async def list(self, grant: Grant, asked: host_calls.StorageListParams) -> host_calls.StorageListResult:
        keys = await self._records.stored_keys(
            _area(asked.area, grant), prefix=asked.prefix or "", after=asked.after or "", limit=MAX_KEYS_PAGE + 1
        )
        return host_calls.StorageListResult(keys=[*keys[:MAX_KEYS_PAGE]], has_more=len(keys) > MAX_KEYS_PAGE)

    async def _free(self, *rows: StorageRow | None) -> None:
        """Remove bytes that no row names any more. The call has succeeded by now: bytes that stay are swept later."""
        hashes = [row.sha256 for row in rows if row is not None and row.sha256 is not None]
        if not hashes:
            return
        try:
            await free(self._records, self._blobs, hashes)
        except (HostError, StorageUnavailableError) as error:
            log.info("bytes that no row needs are removed later", action="storage.free", reason=str(error))

    async def _joined(self, begun: StorageRow | None, content: bytes) -> AsyncIterator[bytes]:
        offset = 0
        while begun is not None and begun.sha256 is not None and offset < begun.size:
            piece = await self._blobs.read(begun.sha256, offset, READ_BYTES)
            yield piece
            offset += len(piece)
        yield content


def _area(area: str, grant: Grant) -> str:
    key = area_key(area, grant) if area in grant.storage_areas else None
    if key is None:
        raise HostError(ErrorCode.UNAUTHORIZED, NOT_GRANTED)
    return key
