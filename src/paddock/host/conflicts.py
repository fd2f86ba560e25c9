"""Writing where somebody else may have been quicker."""

from collections.abc import Sequence

from paddock.ports import Rows
from paddock.rules.errors import ErrorCode, HostError
from paddock.rules.rows.rows import Apart


async def written_first(store: Rows, rows: Sequence[Apart]) -> bool:
    """Write these rows; False when what they rest on was changed meanwhile, and then nothing is written."""
    try:
        await store.write(rows)
    except HostError as error:
        if error.code is not ErrorCode.CONFLICT:
            raise
        return False
    return True
