"""Files a runner announces with `artifact.created`: kept if they came along, published, or refused and on record."""

import asyncio
from typing import Any

import structlog

from paddock.host.calls.artifacts import Artifacts, RawContent, decoded, small_json
from paddock.rules.access.artifacts import described, may_publish, of_run
from paddock.rules.access.limits import MAX_ARTIFACT_INLINE_BYTES
from paddock.rules.access.permissions import Grant
from paddock.rules.errors import ErrorCode, HostError, StorageUnavailableError
from paddock.rules.rows.rows import ArtifactRow
from paddock.rules.run.results import Result
from paddock.rules.values import replace

KEEP_SECONDS = 30.0
TOLD = ("artifact_id", "artifact_type", "mime_type", "name", "size_bytes", "metadata")
"""Not its digest: a file is erased, or past its time, before the log is."""
REFUSED = "artifact.refused"

log = structlog.get_logger("paddock.artifacts")


async def keep_created(artifacts: Artifacts, grant: Grant, result: Result, now: float) -> Result:
    """The result as the conversation may hold it: by reference, never with bytes. Never raises."""
    try:
        async with asyncio.timeout(KEEP_SECONDS):
            row = await _row(artifacts, grant, result.data, now)
    except HostError as error:
        return _refused(result, error.message)
    except (StorageUnavailableError, TimeoutError):
        return _refused(result, "the host could not store it")
    except Exception:  # whatever it is, the run goes on and its end is told
        log.exception("a file could not be kept", action="artifact.created", run_id=result.run_id)
        return _refused(result, "the host failed to store it")
    about = described(row).model_dump(mode="json", include=set(TOLD), exclude_none=True)
    return Result(result.run_id, result.type, about, result.sequence, result.timestamp)


async def _row(artifacts: Artifacts, grant: Grant, data: dict[str, Any], now: float) -> ArtifactRow:
    encoded = data.get("content_base64")
    if encoded is not None:
        content = decoded(encoded, "data.content_base64", MAX_ARTIFACT_INLINE_BYTES)
        new = of_run(grant, "runner", artifact_type=data["artifact_type"], name=data.get("name"))
        metadata = small_json(data.get("metadata"))
        return await artifacts.keep(
            replace(new, claimed_mime=data.get("mime_type"), published=True, metadata=metadata), content
        )
    found = await artifacts.readable(grant, str(data.get("artifact_id")))
    if isinstance(found, RawContent) or not may_publish(grant, found, now):
        raise HostError(ErrorCode.NOT_FOUND, "there is no such artifact")
    return found if found.published else await artifacts.publish(found)


def _refused(result: Result, reason: str) -> Result:
    data = {"artifact_type": result.data.get("artifact_type"), "reason": reason}
    return Result(result.run_id, REFUSED, data, result.sequence, result.timestamp)
